//! What `gpuscope serve` adds to a call, by function and by what it collects. Bursts in turn, as in rounds.rs: of a
//! program that it hooks, and of its twins, whose library it does not know and which have empty probes.

use crate::Folder;
use crate::exporter::{Exporter, Series, loaded_programs, wait_for_programs};
use crate::hammer::{Burst, Hammer};
use crate::report::Table;
use crate::rounds::{Order, middle, spread};
use crate::tracer::{self, attach_empty_at};
use anyhow::Result;
use gpuscope::engine::Hooks;
use gpuscope::probe::Session;
use std::path::PathBuf;
use std::time::Duration;

const ROUNDS: usize = 21;
const CALLS: u64 = 10_000;
/// No probe costs as little.
const HOOKED_NS: f64 = 50.0;
const BETWEEN: Duration = Duration::from_millis(15);
/// Names of the programs, and so of their owners.
pub const HOOKED: &str = "serve-hooked";
const DRIVER: &str = "serve-driver";
const TWINS: [&str; 3] = ["serve-bare", "serve-pairs", "serve-alike"];

/// The words for a step.
pub const MIX: &str = "a mix: 15 getters, 6 launches, 2 copies, 1 wait";

/// A step of the simulated training loop, without the functions that CUDA's compiler adds.
pub const STEP: &str = "cudaMemcpyAsync,\
    cudaGetDevice,cudaGetDevice,cudaLaunchKernel,cudaGetDevice,cudaGetDevice,cudaGetDevice,cudaLaunchKernel,\
    cudaGetDevice,cudaGetDevice,cudaLaunchKernel,cudaGetDevice,cudaGetDevice,cudaGetDevice,cudaLaunchKernel,\
    cudaGetDevice,cudaGetDevice,cudaLaunchKernel,cudaGetDevice,cudaGetDevice,cudaGetDevice,cudaLaunchKernel,\
    cudaMemcpyAsync,cudaStreamSynchronize";

/// What is called, and its words in the table.
const CALLED: [(&str, &str); 10] = [
    ("cudaMemcpyAsync", "cudaMemcpyAsync"),
    ("cudaLaunchKernel", "cudaLaunchKernel"),
    ("cudaMalloc", "cudaMalloc"),
    ("cudaStreamSynchronize", "cudaStreamSynchronize"),
    (
        "cudaGetDevice, a getter: hooked at its entry, if at all",
        "cudaGetDevice",
    ),
    (MIX, STEP),
    ("cuMemcpyHtoDAsync", "cuMemcpyHtoDAsync_v2"),
    ("cuLaunchKernel", "cuLaunchKernel"),
    ("cuMemAlloc", "cuMemAlloc_v2"),
    ("cuStreamSynchronize", "cuStreamSynchronize"),
];

/// Every collector, getters too.
pub const ALL: &str = "api,getters,errors,memory,launches,copies,sync,nvml,xid,self";

/// What `serve` collects unless it is told otherwise.
const DEFAULT: &str = "!getters";

/// With their words in the table; those of the first table first.
const COLLECTED: [(&str, &str); 7] = [
    ("default", DEFAULT),
    ("all but driver", ALL),
    ("api, getters", "api,getters,self"),
    ("api, getters, errors", "api,getters,errors,self"),
    ("memory", "memory,self"),
    ("launches", "launches,self"),
    ("copies, sync", "copies,sync,self"),
];

/// The programs that call.
struct Programs {
    /// Of the runtime's functions, and of the driver's.
    hooked: [Hammer; 2],
    /// Calls that the first of them made of getters.
    getters: u64,
    /// Without probes, with pairs of empty ones, and with empty ones where `serve` has its own.
    twins: [Hammer; 3],
    _links: Hooks,
}

/// CPU ns a call, in each round.
#[derive(Default)]
struct Measured {
    hooked: Vec<f64>,
    bare: Vec<f64>,
    pairs: Vec<f64>,
    alike: Vec<f64>,
}

/// Measures the default, then all collectors together, then some.
///
/// # Errors
/// `serve` does not start, or counted other calls than were made.
pub fn run(folder: &Folder) -> Result<Vec<Table>> {
    let session = tracer::empty_session()?;
    let mut programs = Programs::start(folder, &session)?;
    let mut all = Vec::new();
    let programs_before = loaded_programs();
    for (name, collectors) in COLLECTED {
        wait_for_programs(programs_before)?;
        all.push((name, measure(folder, &mut programs, collectors)?));
    }
    let tables = all.iter().take(2).map(|(name, measured)| call_table(name, measured));
    Ok(tables.chain([collector_table(&all)]).collect())
}

impl Programs {
    fn start(folder: &Folder, session: &Session) -> Result<Programs> {
        let runtime = Hammer::of(&program(folder, HOOKED)?, folder.library(HOOKED)?, "cudaMalloc")?;
        let library = folder.library_as(DRIVER, "libcuda.so.1")?;
        let driver = Hammer::of(&program(folder, DRIVER)?, library, "cuMemAlloc_v2")?;
        let twin = |name: &str| -> Result<Hammer> {
            let library = folder.file("libempty.so");
            Hammer::of(
                &program(folder, name)?,
                copied(folder, &library, name)?,
                "empty_cudaMalloc",
            )
        };
        let twins = [twin(TWINS[0])?, twin(TWINS[1])?, twin(TWINS[2])?];
        let mut links = Vec::new();
        for (_, function) in CALLED.iter().filter(|(_, function)| *function != STEP) {
            let function = format!("empty_{function}");
            links.extend(attach_empty_at(session, &twins[1].library, &function, false)?);
            links.extend(attach_empty_at(
                session,
                &twins[2].library,
                &function,
                is_getter(&function),
            )?);
        }
        Ok(Programs {
            hooked: [runtime, driver],
            getters: 0,
            twins,
            _links: links,
        })
    }

    /// Calls of hooked functions so far, of the runtime and of the driver.
    fn made(&self, collectors: &str) -> [u64; 2] {
        let [runtime, driver] = self.hooked.each_ref().map(|hammer| hammer.made);
        let left_out = if collectors == DEFAULT { self.getters } else { 0 };
        [runtime - left_out, driver]
    }
}

/// Of a burst of these functions in turn.
fn getters_among(functions: &str) -> u64 {
    let called = functions.split(',').cycle().take(CALLS as usize);
    called.filter(|function| is_getter(function)).count() as u64
}

fn is_getter(function: &str) -> bool {
    function.ends_with("GetDevice")
}

/// The hammer under a name of its own.
///
/// # Errors
/// The link cannot be made.
pub fn program(folder: &Folder, name: &str) -> Result<PathBuf> {
    let own = folder.file(&format!("bin-{name}"));
    std::fs::create_dir_all(&own)?;
    let link = own.join(name);
    let _ = std::fs::remove_file(&link);
    std::os::unix::fs::symlink(folder.file("hammer"), &link)?;
    Ok(link)
}

fn copied(folder: &Folder, library: &std::path::Path, name: &str) -> Result<PathBuf> {
    let copy = folder.file(&format!("bin-{name}")).join("libempty.so");
    std::fs::copy(library, &copy)?;
    Ok(copy)
}

fn measure(folder: &Folder, programs: &mut Programs, collectors: &str) -> Result<Vec<Measured>> {
    let exporter = Exporter::start(folder, "serve", &["--collect", collectors])?;
    let before = programs.made(collectors);
    let mut all: Vec<Measured> = CALLED.iter().map(|_| Measured::default()).collect();
    for index in 0..CALLED.len() {
        strike(programs, index)?;
    }
    let mut order = Order::new(CALLED.len());
    for _ in 0..ROUNDS {
        for index in order.shuffled() {
            let [bare, pairs, alike, hooked] = strike_alone(&exporter, programs, index)?;
            all[index].bare.push(bare);
            all[index].pairs.push(pairs);
            all[index].alike.push(alike);
            all[index].hooked.push(hooked);
            std::thread::sleep(BETWEEN);
        }
    }
    let [runtime, driver] = programs.made(collectors);
    let made = [(HOOKED, runtime - before[0]), (DRIVER, driver - before[1])];
    let counts_calls = collectors == DEFAULT || collectors.starts_with("api");
    prove(&exporter.series()?, &made, counts_calls)?;
    exporter.stop()?;
    Ok(all)
}

/// Again until nobody else hooked the program meanwhile.
fn strike_alone(exporter: &Exporter, programs: &mut Programs, index: usize) -> Result<[f64; 4]> {
    loop {
        exporter.wait_until_alone()?;
        let measured = strike(programs, index)?;
        if exporter.is_alone() {
            return Ok(measured);
        }
    }
}

fn strike(programs: &mut Programs, index: usize) -> Result<[f64; 4]> {
    let function = CALLED[index].1;
    let empty: Vec<String> = function.split(',').map(|name| format!("empty_{name}")).collect();
    let empty = empty.join(",");
    let [bare, pairs, alike] = &mut programs.twins;
    let [runtime, driver] = &mut programs.hooked;
    let hooked = if function.starts_with("cuda") { runtime } else { driver };
    programs.getters += getters_among(function);
    Ok([
        bare.strike(burst(&empty))?.ns_per_call,
        pairs.strike(burst(&empty))?.ns_per_call,
        alike.strike(burst(&empty))?.ns_per_call,
        hooked.strike(burst(function))?.ns_per_call,
    ])
}

fn burst(function: &str) -> Burst<'_> {
    Burst {
        function,
        calls: CALLS,
        threads: 1,
        rate: 0,
    }
}

/// The twins were not seen; of the other programs every call was counted, and no probe was hit by another program unless
/// by one that is counted, too.
fn prove(series: &Series, made: &[(&str, u64)], counts_calls: bool) -> Result<()> {
    const CALLS: &str = "gpuscope_api_calls_total";
    for twin in TWINS {
        anyhow::ensure!(
            !series.mentions(&format!("\"{twin}\"")),
            "serve has seen the calls of {twin}"
        );
    }
    for (comm, made) in made.iter().filter(|_| counts_calls) {
        let counted = series.count(CALLS, |labels| labels.contains(&format!("comm=\"{comm}\"")));
        anyhow::ensure!(counted == *made, "{made} calls were made, {counted} were counted");
    }
    let all: u64 = made.iter().map(|(_, made)| made).sum();
    let counted = series.count(CALLS, |_| true);
    let hits = series.count("gpuscope_probe_hits_total", |_| true);
    anyhow::ensure!(
        !counts_calls || counted > all || hits == all,
        "{all} calls were made, {hits} probes were hit"
    );
    Ok(())
}

impl Measured {
    fn added(&self) -> f64 {
        middle(&self.hooked) - middle(&self.bare)
    }

    /// Of what the empty probes of a twin add, right before each.
    fn ratios(&self, twin: &[f64]) -> Vec<f64> {
        let none = middle(&self.bare);
        let pairs = self.hooked.iter().zip(twin);
        pairs.map(|(ns, base)| (ns - none) / (base - none)).collect()
    }
}

fn call_table(collectors: &str, all: &[Measured]) -> Table {
    let row = |(called, measured): (&(&str, &str), &Measured)| {
        vec![
            called.0.to_owned(),
            spread(&measured.bare, 0),
            spread(&measured.pairs, 0),
            spread(&measured.hooked, 0),
            format!("{:.0}", measured.added()),
            spread(&measured.ratios(&measured.pairs), 2),
            spread(&measured.ratios(&measured.alike), 2),
            "≤ 1.15".to_owned(),
        ]
    };
    Table {
        title: format!("`serve`, collectors {collectors}: added to one call"),
        columns: vec![
            "call",
            "CPU ns without a probe",
            "with an empty entry+return probe",
            "with `serve`, median (min–max)",
            "added ns",
            "of the empty entry+return probe (min–max)",
            "of an empty probe of the same kind (min–max)",
            "target",
        ],
        rows: CALLED.iter().zip(all).map(row).collect(),
        note: format!(
            "{ROUNDS} rounds in another order each, bursts of {CALLS} calls of one pinned thread: of three programs whose library \
             `serve` does not know (it counted no call of theirs), and right after of one that it hooks (it counted each). Of the \
             same kind: entry and return, but for getters, which are hooked at their entry alone, or not at all by default."
        ),
    }
}

fn collector_table(all: &[(&'static str, Vec<Measured>)]) -> Table {
    let mut columns = vec!["added ns (of the empty entry+return probe)"];
    columns.extend(all.iter().map(|(name, _)| *name));
    let cell = |measured: &Measured| {
        let ratio = middle(&measured.ratios(&measured.pairs));
        match measured.added() {
            added if added.abs() < HOOKED_NS => "not hooked".to_owned(),
            added => format!("{added:.0} ({ratio:.2})"),
        }
    };
    let row = |index: usize| {
        let mut row = vec![CALLED[index].0.to_owned()];
        row.extend(all.iter().map(|(_, measured)| cell(&measured[index])));
        row
    };
    Table {
        title: "`serve`: what each collector costs a call".to_owned(),
        columns,
        rows: (0..CALLED.len()).map(row).collect(),
        note: "Medians of as many rounds with one `gpuscope serve --collect` after the other. What a collector does not need is \
               not hooked."
            .to_owned(),
    }
}
