//! What lies in the memory that an agent shares with us: tables, rings, counters, in any state.

pub fn run(bytes: &[u8]) {
    assert!(gpuscope::inside::hostile::read(bytes), "there is no memory");
}
