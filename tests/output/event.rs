//! Events as the kernel programs would send them, built by the names of arguments.

use gpuscope::capture::{Plan, Show, Use, plan};
use gpuscope::catalog::Catalog;
use gpuscope::decode::Call;
use gpuscope::wire;

/// A catalogue and the capture plan of each of its rows.
pub struct World {
    pub catalog: Catalog,
    pub plans: Vec<Plan>,
}

const HOOKS: &str = r#"
[[library]]
name = "mylib"
match = "libmylib.so*"

[[function]]
library = "mylib"
symbol = "my_raw"
"#;

impl World {
    /// The built-in tables and one function without a prototype.
    pub fn new() -> World {
        let mut catalog = Catalog::builtin().expect("the built-in tables");
        catalog.add_hooks("hooks.toml", HOOKS).expect("the hooks");
        let used = |raw: bool| Use {
            stream: true,
            returns: !raw,
            memory: true,
            stacks: true,
            kernels: true,
            work: true,
            launch_stacks: false,
            sync_stacks: false,
        };
        let plans = catalog
            .rows
            .iter()
            .map(|row| plan(&catalog, row, used(row.raw)))
            .collect();
        World { catalog, plans }
    }

    /// An event of the newest function of that name.
    pub fn event(&self, library: &str, symbol: &str) -> Event {
        let library = self.catalog.library(library).expect("a library");
        let row = self.catalog.find(library, symbol, None).expect("a function");
        let plan = self.plans[row.0 as usize].clone();
        Event::of(row.0, plan)
    }

    pub fn decode<'a>(&'a self, bytes: &'a [u8]) -> Call<'a> {
        Call::decode(bytes, &self.catalog, &self.plans).expect("an event of a known row")
    }
}

/// One event, ready to be changed.
pub struct Event {
    pub header: wire::CallHeader,
    pub plan: Plan,
    words: [u64; 24],
    block: [u64; wire::BLOCK],
    texts: [[u8; wire::TEXT]; wire::TEXTS],
}

impl Event {
    /// An event of row `row`, captured as `plan` says: the call of thread 1240 of process 1234 that succeeded.
    pub fn of(row: u32, plan: Plan) -> Event {
        let header = wire::CallHeader {
            entered: 1_000_000_000,
            duration: 438_200,
            tgid: 1234,
            tid: 1240,
            row,
            size: plan.spec.size,
            ..wire::CallHeader::default()
        };
        Event {
            header,
            plan,
            words: [0; 24],
            block: [0; wire::BLOCK],
            texts: [[0; wire::TEXT]; wire::TEXTS],
        }
    }

    /// Sets an argument passed by value, or what an argument points to.
    pub fn with(mut self, name: &str, value: u64) -> Event {
        match self.show(name) {
            Show::Word { word, .. } | Show::Words { word } => self.words[usize::from(word)] = value,
            Show::Pointee {
                pointer, value: place, ..
            } => {
                self.words[usize::from(pointer)] = 0x7ffc_0000_1000;
                self.words[usize::from(wire::WORD_VALUES + place)] = value;
            }
            other => panic!("{name} is {other:?}"),
        }
        self
    }

    pub fn with_dim3(mut self, name: &str, [x, y, z]: [u32; 3]) -> Event {
        let Show::Words { word } = self.show(name) else {
            panic!("{name} is no dim3 by value")
        };
        self.words[usize::from(word)] = u64::from(x) | u64::from(y) << 32;
        self.words[usize::from(word) + 1] = u64::from(z);
        self
    }

    pub fn with_text(mut self, name: &str, text: &[u8]) -> Event {
        let Show::Text { pointer, text: place } = self.show(name) else {
            panic!("{name} is no text")
        };
        self.words[usize::from(pointer)] = 0x7ffc_0000_2000;
        let kept = text.len().min(wire::TEXT - 1);
        self.texts[usize::from(place)][..kept].copy_from_slice(&text[..kept]);
        self
    }

    /// Sets the structure behind `name`, as 8-byte words from its start.
    pub fn with_block(mut self, name: &str, words: &[u64]) -> Event {
        let Show::Block { pointer } = self.show(name) else {
            panic!("{name} is no structure behind a pointer")
        };
        self.words[usize::from(pointer)] = 0x7ffc_0000_3000;
        self.block[..words.len()].copy_from_slice(words);
        self
    }

    /// The value behind `name` could not be read.
    pub fn with_unreadable(mut self, name: &str) -> Event {
        let (pointer, bit) = match self.show(name) {
            Show::Pointee { pointer, value, .. } => (pointer, 1 << value),
            Show::Text { pointer, text } => (pointer, wire::UNREADABLE_TEXT[usize::from(text)]),
            Show::Block { pointer } => (pointer, wire::UNREADABLE_BLOCK),
            other => panic!("{name} is {other:?}"),
        };
        self.words[usize::from(pointer)] = 0xdead_0000;
        self.header.unreadable |= bit;
        self.header.flags |= wire::EVENT_UNREADABLE;
        self
    }

    pub fn returning(mut self, result: u64) -> Event {
        self.header.result = result;
        self
    }

    pub fn flagged(mut self, flag: u8) -> Event {
        self.header.flags |= flag;
        self
    }

    /// Entered `us` microseconds after the first moment, at nesting `depth`.
    pub fn at(mut self, us: u64, depth: u8) -> Event {
        self.header.entered += us * 1000;
        self.header.depth = depth;
        self
    }

    pub fn show(&self, name: &str) -> Show {
        let field = self.plan.fields.iter().find(|field| field.name == name);
        field.unwrap_or_else(|| panic!("no argument {name}")).show
    }

    /// As it lies in the ring.
    pub fn bytes(&self) -> Vec<u8> {
        let header = &self.header;
        let mut out = Vec::with_capacity(wire::LARGE_BYTES);
        for word in [header.entered, header.duration, header.caller, header.result] {
            out.extend(word.to_le_bytes());
        }
        for word in [header.tgid, header.tid, header.row] {
            out.extend(word.to_le_bytes());
        }
        out.extend([header.depth, header.flags, header.size, header.unreadable]);
        let (registers, rest) = self.words.split_at(wire::REGS);
        let (stack, values) = rest.split_at(wire::STACK);
        let (near, far) = values.split_at(2);
        for word in [registers, near, stack, far, &self.block].concat() {
            out.extend(word.to_le_bytes());
        }
        out.extend(self.texts.concat());
        out.truncate(match header.size {
            wire::SIZE_SMALL => wire::SMALL_BYTES,
            wire::SIZE_MEDIUM => wire::MEDIUM_BYTES,
            _ => wire::LARGE_BYTES,
        });
        out
    }
}
