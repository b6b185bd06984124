//! `/proc/PID/stat`, `status` and `environ`: the bytes as they are, and as the name and fields of texts that are some.

use crate::memory::within;
use gpuscope::device::environment;
use gpuscope::owner::Stat;
use gpuscope::probe::machine::process::of_texts;

fn read(stat: &[u8], status: &[u8]) -> Option<Stat> {
    // each reader may write the text anew with what is no UTF-8 replaced, which takes three bytes for one
    let limit = 16 * (stat.len() + status.len()) + 4096;
    within(limit, || {
        let known = Stat::parse(stat);
        assert!(known.as_ref().is_none_or(|known| known.comm.len() < stat.len()));
        let status = String::from_utf8_lossy(status);
        let process = of_texts(7, &status, stat);
        assert!(process.inner_pid != Some(7));
        let length = environment::length_in(stat);
        let known_environment = environment::parse(stat);
        std::hint::black_box((process, length, known_environment));
        known
    })
}

pub fn run(bytes: &[u8]) {
    read(bytes, bytes);
    // whatever a program calls itself, its times are found behind
    let at = bytes.len() / 2;
    let (name, fields) = bytes.split_at(at);
    let name: Vec<u8> = name.iter().copied().take(15).filter(|byte| *byte != 0).collect();
    let stat = [
        b"7 (",
        &name[..],
        b") S 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4711 9 9 9 ",
    ]
    .concat();
    let known = read(&[&stat, fields].concat(), fields).filter(|_| !fields.contains(&b')') && fields.is_ascii());
    if let Some(known) = known {
        assert_eq!((known.comm, known.start_ticks, known.ended), (name, 4711, false));
    }
}
