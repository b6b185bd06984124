//! What goes wrong on demand, of `GPUSIM_CUPTI=WORD,WORD=N,…`: `held` (another tool has subscribed), `new` (the driver is too
//! old for it), `clock` (it asks nobody for the time), `lost=N`, `zero=N`, `reversed=N`, `early=N` (each Nth record is dropped, has no
//! times, ends before it begins, or has times of a millisecond before), `shuffled=N` (what is handed over each Nth time comes after what is handed over next), `hang` (the last flush never ends), `waits` (who subscribes waits for ever, as for a kernel that does not end), `mig` (devices are parts of others), `overhead=KIND` (while a device has nothing to do for a
//! millisecond or more there is overhead of that kind, by CUPTI's number).

use std::sync::OnceLock;

fn words() -> &'static [(String, u64)] {
    static WORDS: OnceLock<Vec<(String, u64)>> = OnceLock::new();
    WORDS.get_or_init(|| {
        let text = std::env::var("GPUSIM_CUPTI").unwrap_or_default();
        let pair = |word: &str| match word.split_once('=') {
            Some((name, number)) => (name.to_owned(), number.parse().unwrap_or(0)),
            None => (word.to_owned(), 1),
        };
        text.split(',').filter(|word| !word.is_empty()).map(pair).collect()
    })
}

pub fn has(name: &str) -> bool {
    words().iter().any(|(word, _)| word == name)
}

/// The number of a word; 0: it was not said.
pub fn number(name: &str) -> u64 {
    words()
        .iter()
        .find(|(word, _)| word == name)
        .map_or(0, |(_, number)| *number)
}

/// Whether it is the turn of number `count`, from 1 on.
pub fn hits(name: &str, count: u64) -> bool {
    let every = number(name);
    every > 0 && count.is_multiple_of(every)
}
