//! What lies in the memory that CUPTI's records come through: a head, a ring, names, in any state.

pub fn run(bytes: &[u8]) {
    assert!(gpuscope::activity::hostile::read(bytes), "there is no memory");
}
