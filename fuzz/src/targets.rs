//! What there is to fuzz, and how much memory reading it may take.

mod aarch64;
mod activity;
mod agent;
mod annotation;
mod cgroup;
mod code;
mod devices;
mod driver;
mod elf;
mod event;
mod export;
mod hooks;
mod ioctl;
mod kernel;
mod kubelet;
mod ldcache;
mod leaving;
mod lines;
mod maps;
mod memory;
mod names;
mod oci_config;
mod options;
mod parts;
mod plans;
mod podresources;
mod process;
mod prometheus;
mod python;
mod recording;
mod report;
mod rings;
mod round;
mod sections;
mod serve_config;
mod site;
mod stream;
mod stubs;
mod timeline;
mod unwind;
mod web_config;
mod web_request;
mod words;
mod work;
mod xid;

/// How many bytes a reader may have at a time, beside what it had before.
#[derive(Clone, Copy)]
pub struct Bound {
    /// For each byte of the input.
    times: usize,
    /// However short it is.
    beside: usize,
}

impl Bound {
    pub fn of(self, input: usize) -> usize {
        self.times * input + self.beside
    }
}

/// Something that reads what others write.
pub struct Target {
    pub name: &'static str,
    pub run: fn(&[u8]),
    /// Bytes of the longest input that is tried.
    pub longest: usize,
    pub bound: Bound,
}

/// Of what reads its input once, and keeps a part of it.
const USUAL: Bound = Bound {
    times: 16,
    beside: 1 << 20,
};

/// Of what follows lengths that it is told, or names that repeat what was before them, up to limits of its own.
const LIMITED: Bound = Bound {
    times: 16,
    beside: 4 << 20,
};

/// Of a recording: its reader asks once for a piece of 16 MiB, which it never touches.
const RECORDING: Bound = Bound {
    times: 256,
    beside: 24 << 20,
};

/// Of what an agent may write, whose tables and rings have sizes of their own.
const AGENT: Bound = Bound {
    times: 64,
    beside: 256 << 20,
};

/// Of what makes pages: they have much that is in none of their rows.
const PAGE: Bound = Bound {
    times: 64,
    beside: 8 << 20,
};

macro_rules! targets {
    ($($name:ident($form:ident, $longest:literal, $bound:expr)),+ $(,)?) => {
        /// All, by name.
        pub static TARGETS: &[Target] = &[$(Target {
            name: stringify!($name),
            run: |bytes| $form(bytes, $name::run),
            longest: $longest,
            bound: $bound,
        }),+];
    };
}

fn bytes(bytes: &[u8], run: fn(&[u8])) {
    run(bytes);
}

/// As far as it is text.
fn text(bytes: &[u8], run: fn(&str)) {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
    };
    run(text);
}

targets! {
    aarch64(bytes, 1024, USUAL),
    activity(bytes, 4096, USUAL),
    agent(bytes, 4096, AGENT),
    annotation(bytes, 1024, USUAL),
    cgroup(bytes, 4096, USUAL),
    code(bytes, 1024, USUAL),
    devices(bytes, 2048, USUAL),
    driver(bytes, 4096, USUAL),
    elf(bytes, 65536, USUAL),
    event(bytes, 4096, USUAL),
    export(bytes, 32768, PAGE),
    hooks(text, 16384, USUAL),
    ioctl(bytes, 8192, USUAL),
    kernel(bytes, 65536, USUAL),
    kubelet(bytes, 16384, USUAL),
    ldcache(bytes, 16384, USUAL),
    leaving(bytes, 4096, USUAL),
    lines(bytes, 32768, PAGE),
    maps(bytes, 16384, USUAL),
    memory(bytes, 16384, USUAL),
    names(text, 2048, LIMITED),
    oci_config(bytes, 16384, USUAL),
    options(text, 512, USUAL),
    parts(bytes, 8192, PAGE),
    plans(bytes, 4096, USUAL),
    podresources(bytes, 16384, USUAL),
    process(bytes, 16384, USUAL),
    prometheus(bytes, 8192, PAGE),
    python(bytes, 4096, LIMITED),
    recording(bytes, 65536, RECORDING),
    report(bytes, 32768, PAGE),
    rings(bytes, 8192, USUAL),
    round(bytes, 4096, RECORDING),
    sections(bytes, 32768, PAGE),
    serve_config(bytes, 16384, USUAL),
    site(bytes, 2048, USUAL),
    stream(bytes, 4096, RECORDING),
    stubs(bytes, 8192, USUAL),
    timeline(bytes, 8192, PAGE),
    unwind(bytes, 8192, USUAL),
    web_config(text, 16384, USUAL),
    web_request(text, 4096, USUAL),
    words(bytes, 4, USUAL),
    work(bytes, 16384, USUAL),
    xid(text, 4096, USUAL),
}
