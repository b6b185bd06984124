//! How much is tried, and chance that can be repeated.

use std::time::{SystemTime, UNIX_EPOCH};

enum Effort {
    Brief,
    Short,
    Full,
    Long,
}

fn effort() -> Effort {
    match std::env::var("GPUSCOPE_TORTURE").as_deref() {
        Ok("brief") => Effort::Brief,
        Ok("short") | Err(_) => Effort::Short,
        Ok("full") => Effort::Full,
        Ok("long") => Effort::Long,
        Ok(other) => panic!("GPUSCOPE_TORTURE={other}: brief, short, full or long"),
    }
}

/// How many rounds: where processors are emulated, of a run before a commit, of an evening, of a day.
pub fn rounds(brief: u64, short: u64, full: u64, long: u64) -> u64 {
    match effort() {
        Effort::Brief => brief,
        Effort::Short => short,
        Effort::Full => full,
        Effort::Long => long,
    }
}

/// How often each command is killed; `GPUSCOPE_TORTURE_KILLS` says it for a run.
pub fn kills(brief: u64, short: u64, full: u64, long: u64) -> u64 {
    let given = std::env::var("GPUSCOPE_TORTURE_KILLS").ok();
    given.map_or_else(
        || rounds(brief, short, full, long),
        |text| text.parse().expect("a number"),
    )
}

/// All of them; where processors are emulated `brief` of them, drawn.
pub fn all_or<T: Copy>(brief: usize, of: &[T]) -> Vec<T> {
    let mut left = of.to_vec();
    if matches!(effort(), Effort::Brief) {
        let mut chance = Chance::new();
        while left.len() > brief {
            left.swap_remove(chance.below(left.len() as u64) as usize);
        }
    }
    left
}

/// How often a thread of the program `waiting` waits; it is told by `GPUSCOPE_TORTURE_WAITS`.
pub fn waits() -> u64 {
    rounds(5, 20, 20, 20)
}

/// Says what was tried and how often, for the sum of all.
pub fn tried(count: u64, what: &str) {
    println!("TRIED {count} {what}");
}

/// Numbers that follow from a seed, which is printed (`GPUSCOPE_TORTURE_SEED` sets it).
pub struct Chance(u64);

impl Chance {
    pub fn new() -> Chance {
        let given = std::env::var("GPUSCOPE_TORTURE_SEED").ok();
        let seed = given.map_or_else(seed_of_now, |text| text.parse().expect("a number"));
        let test = std::thread::current().name().unwrap_or_default().to_owned();
        println!("seed {seed} of {test}");
        Chance(seed | 1)
    }

    /// At least 0, less than `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end.max(1)
    }

    pub fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}

fn seed_of_now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    now.as_nanos() as u64
}
