//! Readers of what others wrote take no more memory than so many times what they are given, whatever that is.

#[path = "../../fuzz/src/memory.rs"]
mod memory;

use gpuscope::elf::ElfFile;
#[cfg(feature = "serve")]
use gpuscope::owner::kubelet::names_in;
use gpuscope::record::{Record, Taker};
use gpuscope::trace::lines::Lines;
use memory::within;
use proptest::prelude::*;

const META: &str =
    "{\"type\":\"meta\",\"tool\":\"gpuscope\",\"version\":\"0\",\"start_monotonic_ns\":1,\"start_unix_ns\":1}\n";
/// Tables that have a size of their own.
const BESIDE: usize = 256 << 10;

struct Forgets;

impl Taker for Forgets {
    fn take(&mut self, event: &Record<'_>) {
        std::hint::black_box(event.at);
    }
}

/// Why reading ended early.
fn read_lines(times: usize, lines: &str) -> Option<String> {
    let text = format!("{META}{lines}");
    // what is known of functions is read once
    drop(Lines::new(META.as_bytes()));
    within(times * text.len() + BESIDE, || {
        Lines::new(text.as_bytes()).expect("lines").read(&mut Forgets).cut
    })
}

fn call(tid: usize, depth: usize) -> String {
    format!("{{\"ts\":1,\"type\":\"userspace\",\"name\":\"f\",\"tid\":{tid},\"depth\":{depth}}}\n")
}

#[test]
fn calls_of_ever_new_threads_that_say_to_be_nested_deeply_take_no_room_for_what_is_around_them() {
    let lines: String = (0..20_000).map(|tid| call(tid, 255)).collect();
    assert!(read_lines(4, &lines).expect("no totals").contains("end is missing"));
}

#[test]
fn a_line_of_countless_members_is_refused() {
    let line = format!("{{{}}}\n", vec!["\"\":1"; 1 << 20].join(","));
    assert!(read_lines(4, &line).expect("damaged").contains("members"));
}

#[cfg(feature = "serve")]
#[test]
fn pods_and_containers_without_end_take_no_room() {
    let of = |what: &str| vec![what; 1 << 18].join(",");
    for items in [
        of("{\"metadata\":{}}"),
        format!(
            "{{\"metadata\":{{}},\"status\":{{\"containerStatuses\":[{}]}}}}",
            of("{}")
        ),
        of("{\"metadata\":{},\"status\":{\"containerStatuses\":[{},{},{},{}]}}"),
    ] {
        let text = format!("{{\"items\":[{items}]}}");
        let names = within(text.len() / 4 + BESIDE, || names_in(text.as_bytes()));
        assert_eq!(names.expect("a list").len(), 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn lines_of_any_names_and_numbers_take_bounded_room(
        members in prop::collection::vec(("[a-z_]{0,12}", any::<i64>()), 0..40),
        depth in 0..400_usize,
        threads in 1..2000_usize,
    ) {
        let members: String = members.iter().map(|(name, value)| format!(",\"{name}\":{value}")).collect();
        let lines = (0..threads).map(|tid| format!("{{\"ts\":1,\"type\":\"userspace\",\"tid\":{tid},\"depth\":{depth}{members}}}\n"));
        read_lines(8, &lines.collect::<String>());
    }

    #[test]
    fn whatever_a_header_of_an_elf_file_says_it_takes_bounded_room(bytes in prop::collection::vec(any::<u8>(), 64..4096)) {
        let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0\x01\0\0\0".to_vec();
        file.extend(bytes);
        within(64 * file.len() + BESIDE, || {
            ElfFile::from_bytes(file.clone()).map(|elf| elf.symbols().map(|symbols| symbols.len()).unwrap_or(0)).ok()
        });
    }
}
