use super::*;
use crate::catalog::Row;

const HEAD: &str = r#"
[[enum]]
name = "speed"
values = ["0=SLOW", "1=FAST"]
[[struct]]
name = "box"
size = 16
fields = ["width: u32 @0", "shift: i16 @8"]
[[library]]
name = "mine"
match = "libmine.so*"
[[function]]
library = "mine"
symbol = "f"
args = ["size: size", "speed: enum:speed", "path: cstr", "box: *struct:box (in)", "out: *u32 (out)", "delta: i64"]
"#;

/// The row of `f` with `keys` added.
fn row(keys: &str) -> Result<Row, String> {
    let mut catalog = Catalog::builtin().unwrap();
    let text = format!("{HEAD}{keys}");
    catalog.add_hooks("h.toml", &text).map_err(|error| error.to_string())?;
    Ok(catalog.rows.last().unwrap().clone())
}

fn hook(keys: &str) -> Hook {
    row(keys).unwrap().hook
}

fn refusal(keys: &str) -> String {
    row(keys).unwrap_err()
}

fn values(filter: &str) -> Vec<(Comparison, u64)> {
    let hook = hook(&format!("filter = \"{filter}\"\nreturns = \"i64\""));
    hook.filter.iter().map(|one| (one.comparison, one.value)).collect()
}

#[test]
fn a_condition_compares_a_number_with_a_size_a_time_a_name_or_bits() {
    assert_eq!(values("size > 1MiB"), [(Comparison::Greater, 1 << 20)]);
    assert_eq!(values("duration >= 1.5ms"), [(Comparison::AtLeast, 1_500_000)]);
    assert_eq!(values("speed == FAST"), [(Comparison::Equal, 1)]);
    assert_eq!(values("out & 0x10"), [(Comparison::AnyBit, 16)]);
    assert_eq!(
        values("delta < -1 && box.shift != -32768"),
        [(Comparison::Less, u64::MAX), (Comparison::Different, -32768i64 as u64)]
    );
}

#[test]
fn a_condition_that_makes_no_sense_is_refused_with_the_reason() {
    for (filter, why) in [
        ("size", "is not of the form"),
        ("sise > 1", "did you mean \\\"size\\\""),
        ("size > 1parsec", "is no number"),
        ("duration > 5", "needs a unit: 5us, 5ms or 5s"),
        ("speed == QUICK", "or a name of enum speed"),
        ("box > 1", "is no number; name a field of it"),
        ("path == 1", "is a text"),
        ("out > 0x100000000", "32 bits"),
        ("box.shift & 1", "needs an unsigned number"),
        ("size > 1 || size < 3", "one row for each"),
        ("size > 1 && size < 3 && delta > 0", "at most 2 conditions, found 3"),
        ("size > -1", "64 bits"),
    ] {
        let said = refusal(&format!("filter = \"{filter}\""));
        assert!(said.contains(&why.replace("\\\"", "\"")), "{filter}: {said}");
        assert!(said.starts_with("h.toml:16: "), "{said}");
    }
}

#[test]
fn sums_name_what_is_computed_of_what_and_by_what() {
    let sums = hook("aggregate = \"hist(size) by speed\"").aggregate.unwrap();
    assert_eq!((sums.fold, sums.of.unwrap().kind), (Fold::Hist, Kind::Size));
    assert!(matches!(sums.by, Group::Number(number) if matches!(number.kind, Kind::Enum(_))));
    for (by, group) in [
        ("process", Group::Process),
        ("thread", Group::Thread),
        ("comm", Group::Comm),
        ("stack", Group::Stack),
    ] {
        let sums = hook(&format!("aggregate = \"count by {by}\"")).aggregate.unwrap();
        assert_eq!((sums.fold, sums.by, sums.of), (Fold::Count, group, None));
    }
    let text = hook("aggregate = \"count by path\"").aggregate.unwrap();
    assert!(matches!(text.by, Group::Number(number) if number.kind == Kind::CStr));
}

#[test]
fn sums_that_make_no_sense_are_refused_with_the_reason() {
    for (sums, why) in [
        ("median(size)", "unknown aggregate"),
        ("sum", "needs a number"),
        ("count(size)", "counts calls"),
        ("sum(path)", "is a text"),
        ("sum(size", "lacks its `)`"),
        ("count by colour", "also grouped by `process`"),
        ("count by speed, size", "one row for each"),
    ] {
        let said = refusal(&format!("aggregate = \"{sums}\""));
        assert!(said.contains(why), "{sums}: {said}");
    }
}

#[test]
fn what_is_known_at_the_return_needs_the_return() {
    for keys in [
        "return = false\nfilter = \"duration > 1ms\"",
        "entry_only = true\naggregate = \"sum(out)\"",
        "return = false\nreturns = \"i64\"\naggregate = \"hist(result)\"",
        "offset = 4\naggregate = \"hist(duration)\"",
    ] {
        let said = refusal(keys);
        assert!(said.contains("is known at its return"), "{keys}: {said}");
    }
    assert!(refusal("return = true\noffset = 4").contains("does not return"));
    assert!(refusal("returns = \"void\"\nfilter = \"result == 0\"").contains("returns nothing"));
}

#[test]
fn a_summed_row_has_no_lines_unless_it_asks_for_them() {
    assert!(hook("").streams() && hook("filter = \"size > 1\"").streams());
    assert!(!hook("aggregate = \"count\"").streams());
    assert!(hook("aggregate = \"count\"\nstream = true").streams());
    assert!(refusal("aggregate = \"count\"\nstack = true").contains("by stack"));
}

#[test]
fn a_place_is_named_after_its_symbol_or_its_library() {
    let inside = row("offset = 0x1f").unwrap();
    assert_eq!((inside.symbol.as_str(), inside.hook.offset), ("f+0x1f", Some(0x1f)));
    let mut catalog = Catalog::builtin().unwrap();
    let text = "[[library]]\nname = \"l\"\nmatch = \"l.so\"\n[[function]]\nlibrary = \"l\"\noffset = 4096\n";
    catalog.add_hooks("h.toml", text).unwrap();
    let place = catalog.rows.last().unwrap();
    assert_eq!((place.symbol.as_str(), place.hook.from.as_ref()), ("l+0x1000", None));
}

proptest::proptest! {
    #[test]
    fn any_filter_and_any_sums_are_read_or_refused(filter in "[a-z<>=!&| 0-9.]{0,24}", sums in "[a-z() ]{0,24}") {
        drop(row(&format!("filter = '{filter}'")));
        drop(row(&format!("aggregate = '{sums}'")));
    }
}
