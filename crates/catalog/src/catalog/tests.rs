use super::arg::parse_arg;
use super::location::{Lowering, Shape};
use super::pattern::Majors;
use super::*;
use proptest::prelude::*;
use proptest::sample::Index;

const HOOKS: &str = r#"
[[enum]]
name = "status"
values = ["0=OK", "7=BROKEN"]

[[struct]]
name = "box"
size = 24
fields = ["w: u32 @0", "h: u32 @4", "data: ptr @8"]

[[library]]
name = "mine"
match = "libmine.so*"
errors = "status"

[[function]]
library = "mine"
symbol = "mine_copy_*"
class = "copy"
args = ["b: *struct:box (in)", "n: size"]
bytes = "b.w*b.h*4"
direction = "HtoD"
ok = [7]

[[function]]
library = "mine"
symbol = "mine_scale"
args = ["x: f64 (unreadable)", "n: u32"]
"#;

fn builtin() -> Catalog {
    Catalog::builtin().expect("built-in tables")
}

fn of_aarch64() -> Catalog {
    Catalog::builtin_by(Convention::Aapcs64).expect("built-in tables")
}

fn row<'a>(catalog: &'a Catalog, library: &str, symbol: &str, major: Option<u32>) -> &'a Row {
    let library = catalog.library(library).expect("library");
    let id = catalog
        .find(library, symbol, major)
        .unwrap_or_else(|| panic!("no row {symbol}"));
    catalog.row(id).expect("row")
}

fn places(catalog: &Catalog, library: &str, symbol: &str) -> Vec<String> {
    row(catalog, library, symbol, None)
        .args
        .iter()
        .map(|arg| arg.loc.to_string())
        .collect()
}

fn refusal(text: &str) -> String {
    let mut catalog = builtin();
    catalog
        .add_hooks("hooks.toml", text)
        .expect_err("must be refused")
        .to_string()
}

#[test]
fn symbols_are_unique_per_major() {
    let catalog = builtin();
    let mut seen = std::collections::HashMap::<_, Vec<Majors>>::new();
    for row in &catalog.rows {
        let ranges = seen.entry((row.library, row.symbol.clone())).or_default();
        for other in &*ranges {
            assert!(
                other.last < row.majors.first || row.majors.last < other.first,
                "{}",
                row.symbol
            );
        }
        ranges.push(row.majors);
    }
    let of = |name: &str| {
        let library = catalog.library(name).expect("library");
        seen.keys().filter(|(id, _)| *id == library).count()
    };
    assert_eq!((of("runtime"), of("driver")), (502, 739));
}

#[test]
fn copies_and_fills_say_how_many_bytes() {
    let catalog = builtin();
    for row in &catalog.rows {
        let counted = matches!(row.class, Class::Copy | Class::Memset);
        let listed = ["Batch", "3DWithAttributes"]
            .iter()
            .any(|part| row.symbol.contains(part));
        if counted && !listed {
            assert!(row.bytes.is_some(), "{}", row.symbol);
        }
        let sized = !row.symbol.contains("Array");
        if row.class == Class::Alloc && sized {
            assert!(row.bytes.is_some(), "{}", row.symbol);
            assert!(row.args.iter().any(Arg::is_out), "{}", row.symbol);
        }
        if row.class == Class::Launch || row.class == Class::Free {
            assert!(!row.args.is_empty(), "{}", row.symbol);
        }
    }
}

#[test]
fn arguments_fit_the_fixed_capture() {
    let catalog = builtin();
    for row in &catalog.rows {
        for arg in &row.args {
            match arg.loc {
                Loc::Reg { index, bytes } => assert!(index < 6 && (1..=8).contains(&bytes)),
                Loc::Regs { first, .. } => assert!(first < 5),
                Loc::Float { .. } => assert!(matches!(arg.kind, Kind::F32 | Kind::F64)),
                Loc::Stack { offset, bytes } => {
                    let large = row.symbol.contains("EGLStreamProducerPresentFrame");
                    assert!(large || (offset <= 80 && offset + bytes <= 88), "{}", row.symbol);
                }
            }
        }
    }
}

#[test]
fn aarch64_has_two_more_registers_and_passes_large_structures_by_address() {
    let catalog = of_aarch64();
    let at = |symbol| places(&catalog, "runtime", symbol).join(" ");
    // words 6 and 7 are x6 and x7
    assert_eq!(
        at("cudaLaunchKernel"),
        "rdi:8 rsi:8+rdx:4 rcx:8+r8:4 r9:8 stack+8:8 stack+16:8"
    );
    assert_eq!(at("cudaMalloc3D"), "rdi:8 rsi:8");
    assert_eq!(at("cudaIpcOpenMemHandle"), "rdi:8 rsi:8 rdx:4");
    let extent = &row(&catalog, "runtime", "cudaMalloc3D", None).args[1];
    assert_eq!(extent.pass, Pass::In, "read behind its address");
}

#[test]
fn a_structure_that_does_not_fit_ends_the_registers_of_aarch64() {
    let placed = |convention, shapes: &[Shape]| -> Vec<String> {
        let mut lowering = Lowering::by(convention);
        let place = |shape: &Shape| lowering.place(*shape).expect("a place").to_string();
        shapes.iter().map(place).collect()
    };
    let word = Shape::Integer(8);
    let seven = [[word; 7].as_slice(), &[Shape::Aggregate(16), Shape::Integer(4)]].concat();
    let arm = placed(Convention::Aapcs64, &seven);
    assert_eq!(arm[6..], ["stack+8:8", "stack+24:16", "stack+40:4"]);
    let five = [[word; 5].as_slice(), &[Shape::Aggregate(16), Shape::Integer(4)]].concat();
    assert_eq!(placed(Convention::SystemV, &five)[5..], ["stack+8:16", "r9:4"]);
    assert_eq!(placed(Convention::Aapcs64, &five)[5..], ["r9:8+?:8", "stack+16:4"]);
}

#[test]
fn known_functions_have_their_places() {
    let catalog = builtin();
    let at = |library, symbol| places(&catalog, library, symbol).join(" ");
    let launch = "rdi:8 rsi:8+rdx:4 rcx:8+r8:4 r9:8 stack+8:8 stack+16:8";
    assert_eq!(at("runtime", "cudaLaunchKernel"), launch);
    assert_eq!(at("runtime", "__cudaLaunchKernel_ptsz"), launch);
    assert_eq!(
        at("driver", "cuLaunchKernel"),
        "rdi:8 rsi:4 rdx:4 rcx:4 r8:4 r9:4 stack+8:4 stack+16:4 stack+24:8 stack+32:8 stack+40:8"
    );
    let copy = "rdi:8 rsi:8 rdx:8 rcx:8 r8:8 r9:8 stack+8:4";
    assert_eq!(at("runtime", "cudaMemcpy2D"), copy);
    assert_eq!(at("runtime", "cudaMemcpy2DAsync"), format!("{copy} stack+16:8"));
    assert_eq!(at("runtime", "cudaMalloc3D"), "rdi:8 stack+8:24");
    assert_eq!(at("runtime", "cudaMemset3D"), "stack+8:32 rdi:4 stack+40:24");
    assert_eq!(at("runtime", "cudaIpcOpenMemHandle"), "rdi:8 stack+8:64 rsi:4");
    assert_eq!(at("driver", "cuParamSetf"), "rdi:8 rsi:4 xmm0");
}

#[test]
fn struct_fields_resolve_to_offsets() {
    let catalog = builtin();
    let bytes = |library, symbol| row(&catalog, library, symbol, None).bytes.clone();
    let path = |field| Factor::Path {
        arg: 0,
        field: Some(field),
    };
    let expected = vec![path((128, 8)), path((136, 8)), path((144, 8))];
    assert_eq!(bytes("runtime", "cudaMemcpy3D"), Some(expected));
    let expected = vec![path((112, 8)), path((120, 8))];
    assert_eq!(bytes("driver", "cuMemcpy2D_v2"), Some(expected));
    let place = |offset| Place {
        arg: 0,
        field: Some((offset, 4)),
    };
    let expected = Direction::MemoryTypes {
        from: place(32),
        to: place(120),
    };
    assert_eq!(
        row(&catalog, "driver", "cuMemcpy3DAsync_v2", None).direction,
        Some(expected)
    );
    let config = catalog
        .struct_names
        .get("CUlaunchConfig")
        .copied()
        .expect("launch config");
    let config = catalog.layout(config, None).expect("layout");
    assert_eq!(config.field("hStream").map(|field| field.offset), Some(32));
    let attributes = catalog
        .struct_names
        .get("cudaPointerAttributes")
        .copied()
        .expect("struct");
    let size = |major| catalog.layout(attributes, major).map(|table| table.size);
    assert_eq!(
        (size(Some(12)), size(Some(13)), size(None)),
        (Some(24), Some(88), Some(88))
    );
}

#[test]
fn runtime_signatures_depend_on_the_major() {
    let catalog = builtin();
    let count = |symbol, major| row(&catalog, "runtime", symbol, major).args.len();
    assert_eq!(count("cudaMemPrefetchAsync", Some(12)), 4);
    assert_eq!(count("cudaMemPrefetchAsync", Some(13)), 5);
    assert_eq!(count("cudaMemPrefetchAsync", None), 5);
    assert_eq!(count("cudaGraphInstantiate", Some(11)), 5);
    assert_eq!(count("cudaGraphInstantiate", Some(12)), 3);
    assert_eq!(count("cudaMemcpyBatchAsync", Some(12)), 9);
}

#[test]
fn error_tables_are_complete() {
    let catalog = builtin();
    for (name, count) in [("cudaError_t", 139), ("CUresult", 106)] {
        let id = catalog.enum_names.get(name).copied().expect("error enum");
        assert_eq!(catalog.enums[usize::from(id.0)].values().len(), count);
    }
    let malloc = row(&catalog, "runtime", "cudaMalloc", None);
    assert_eq!(catalog.error_name(malloc, 2), Some("cudaErrorMemoryAllocation"));
    assert!(catalog.is_failure(malloc, 2));
    assert!(!catalog.is_failure(malloc, 0xdead_0000_0000), "only eax is defined");
    let query = row(&catalog, "driver", "cuStreamQuery", None);
    assert!(!catalog.is_failure(query, 600));
    assert!(catalog.is_failure(query, 1));
    assert!(!catalog.is_failure(malloc, 4), "the runtime is being unloaded");
    assert!(
        catalog.is_refusal(malloc, 4) && !catalog.is_refusal(malloc, 0),
        "nothing was allocated"
    );
    let attribute = row(&catalog, "driver", "cuPointerGetAttribute", None);
    assert!(!catalog.is_failure(attribute, 1), "memory that CUDA does not know");
    assert!(catalog.is_failure(attribute, 2));
    let text = row(&catalog, "runtime", "cudaGetErrorString", None);
    assert!(!catalog.is_failure(text, 5) && catalog.error_name(text, 5).is_none());
}

#[test]
fn kinds_read_back_what_they_write() {
    let catalog = builtin();
    let kinds = catalog.rows.iter().flat_map(|row| row.args.iter().map(|arg| arg.kind));
    for kind in kinds.chain(kind::PLAIN.iter().map(|(_, kind)| *kind)) {
        assert_eq!(Kind::parse(&kind.text(&catalog), &catalog), Ok(kind));
    }
}

#[test]
fn every_class_has_rows_and_its_name() {
    let mut catalog = builtin();
    catalog.add_driver(crate::driver::Dialect::unknown()).expect("room");
    for class in Class::ALL {
        assert!(catalog.rows.iter().any(|row| row.class == *class), "{}", class.name());
        assert_eq!(Class::from_name(class.name()), Some(*class));
    }
}

#[test]
fn hooks_add_a_library() {
    let mut catalog = builtin();
    catalog.add_hooks("hooks.toml", HOOKS).expect("hooks");
    let copy = row(&catalog, "mine", "mine_copy_async", None);
    assert!(copy.is_glob() && copy.args.len() == 2);
    assert_eq!(copy.bytes.as_ref().map(Vec::len), Some(3));
    assert!(!catalog.is_failure(copy, 7) && catalog.is_failure(copy, 8));
    assert_eq!(catalog.error_name(copy, 7), Some("BROKEN"));
    assert_eq!(places(&catalog, "mine", "mine_scale"), ["xmm0", "rdi:4"]);
    let library = catalog.libraries.last().expect("library");
    assert!(library.matches("/opt/lib/libmine.so.3") && !library.matches("/opt/libmine.so/x"));
    assert_eq!(library.layer, Layer::Custom);
}

#[test]
fn hooks_replace_a_builtin_row() {
    let mut catalog = builtin();
    let text = "[[function]]\nlibrary = \"runtime\"\nsymbol = \"cudaMalloc\"\nclass = \"other\"\n";
    catalog.add_hooks("hooks.toml", text).expect("hooks");
    assert_eq!(row(&catalog, "runtime", "cudaMalloc", Some(12)).class, Class::Other);
}

#[test]
fn no_major_stands_for_the_newest_row() {
    let mut catalog = builtin();
    let row_of = |symbol: &str, majors: &str, class: &str| {
        format!(
            "[[function]]\nlibrary = \"mine\"\nsymbol = \"{symbol}\"\n\
             majors = \"{majors}\"\nclass = \"{class}\"\n"
        )
    };
    let text = format!(
        "[[library]]\nname = \"mine\"\nmatch = \"m.so\"\n{}{}{}",
        row_of("f", "3", "copy"),
        row_of("f", "-2", "free"),
        row_of("g*", "1", "sync"),
    );
    catalog.add_hooks("hooks.toml", &text).expect("hooks");
    assert_eq!(row(&catalog, "mine", "f", None).class, Class::Copy);
    assert_eq!(row(&catalog, "mine", "f", Some(1)).class, Class::Free);
    assert_eq!(row(&catalog, "mine", "gg", None).class, Class::Sync);
    let mine = catalog.library("mine").expect("library");
    assert_eq!(catalog.find(mine, "f", Some(4)), None);
    assert_eq!(catalog.find(mine, "h", None), None);
}

#[test]
fn refusals_name_file_line_and_remedy() {
    let says = |from: &str, to: &str, expected: &str| {
        let said = refusal(&HOOKS.replace(from, to));
        assert!(said.starts_with("hooks.toml:") && said.contains(expected), "{said}");
    };
    says(
        "class = \"copy\"",
        "class = \"cpy\"",
        ":19: unknown class \"cpy\"; expected one of alloc",
    );
    says("class = \"copy\"", "class = \"cpy\"", "hint: did you mean \"copy\"?");
    says("class = ", "clas = ", ":19: unknown field `clas`");
    says("class = ", "clas = ", "hint: did you mean \"class\"?");
    says("\"n: size\"", "\"n: sise\"", ":20: argument `n`: unknown kind \"sise\"");
    says(
        "struct:box",
        "struct:bax",
        "undefined struct \"bax\"; hint: did you mean \"box\"?",
    );
    says("b.w*", "b.width*", ":21: undefined field \"width\"");
    says(
        "b.w*",
        "c.w*",
        ":21: undefined argument \"c\"; hint: did you mean \"b\"?",
    );
    says("HtoD", "HtoX", ":22: undefined argument \"HtoX\"; a direction is HtoD");
    says(" (unreadable)", "", "write `x: f64 (unreadable)`");
    says(" (in)", "", "argument `b`: a pointer needs (in), (out) or (inout)");
    says("libmine.so*", "lib/mine.so", "neither a file name");
    says(
        "name = \"mine\"",
        "name = \"driver\"",
        "library \"driver\" is already defined",
    );
    says("@8", "@20", ":9: field `data` reaches beyond the struct's 24 bytes");
    says("7=BROKEN", "BROKEN", ":4: value \"BROKEN\" is not of the form");
    says("ok = [7]", "ok = [7", "hooks.toml:");
    says(
        "7=BROKEN",
        "7=\\u001b[2J",
        r#":4: "7=\u{1b}[2J" holds a control character"#,
    );
}

#[test]
fn majors_are_ranges() {
    let any = |text| Majors::parse(text).map(|m| (m.first, m.last));
    assert_eq!(any("12"), Some((12, 12)));
    assert_eq!(any("11-12"), Some((11, 12)));
    assert_eq!(any("13-"), Some((13, u32::MAX)));
    assert_eq!(any("-11"), Some((0, 11)));
    for wrong in ["", "-", "12-11", "x", "1-2-3"] {
        assert_eq!(any(wrong), None, "{wrong}");
    }
}

/// An error points at a line that the file has.
fn is_read_or_names_its_line(text: &str) {
    let Err(error) = Catalog::default().add_hooks("my hooks.toml", text) else {
        return;
    };
    let said = error.to_string();
    let rest = said.strip_prefix("my hooks.toml:").expect("the file");
    let (line, what) = rest.split_once(": ").expect("a line");
    let line: usize = line.parse().expect("a number");
    assert!((1..=text.split('\n').count()).contains(&line), "{said}");
    assert!(!what.is_empty(), "{said}");
}

proptest! {
    #[test]
    fn any_argument_text_is_read_or_refused(text in "\\PC*") {
        let _ = parse_arg(&text, &Catalog::default());
    }

    #[test]
    fn nearly_right_arguments_are_read_or_refused(
        text in "[a-z]{0,3}:? ?\\*?(u8|size|bytes:|enum:|struct:|f64|text)?[0-9]{0,6} ?\\(?(in|out|x)?\\)?"
    ) {
        let _ = parse_arg(&text, &Catalog::default());
    }

    #[test]
    fn any_file_is_read_or_refused(text in "\\PC*") {
        is_read_or_names_its_line(&text);
    }

    #[test]
    fn a_file_with_any_damage_is_read_or_refused(
        changes in proptest::collection::vec((any::<Index>(), "[\"\\[\\]=#:*.>@0-9a-z\n]{0,3}"), 1..6)
    ) {
        let mut text = HOOKS.to_owned();
        for (place, part) in changes {
            let at = place.index(text.len());
            text.replace_range(at..at + 1, &part);
        }
        is_read_or_names_its_line(&text);
    }

    #[test]
    fn any_row_of_a_file_is_read_or_refused(
        symbol in "\\PC{0,12}", args in "\\PC{0,30}", bytes in "[a-z.*0-9]{0,20}", direction in "[a-zA-Z.>]{0,12}"
    ) {
        let text = format!(
            "[[library]]\nname = \"mine\"\nmatch = \"m.so\"\n[[function]]\nlibrary = \"mine\"\n\
             symbol = {symbol:?}\nargs = [{args:?}]\nbytes = {bytes:?}\ndirection = {direction:?}\n"
        );
        is_read_or_names_its_line(&text);
    }
}

const PROBE: &str = r#"[[library]]
name = "mine"
match = "m.so"
[[function]]
library = "mine"
probe = "mine:handed_out"
args = ["a: devptr", "b: i8", "c: size", "d: i64", "e: *u32 (in)", "f: cstr", "g: i32"]
bytes = "c"
"#;

#[test]
fn a_static_probes_arguments_are_the_words_of_its_note() {
    let mut catalog = Catalog::default();
    let text = format!("{PROBE}\n[[function]]\nlibrary = \"mine\"\nsymbol = \"*\"\n");
    catalog.add_hooks("hooks.toml", &text).expect("hooks");
    let mine = catalog.library("mine").expect("library");
    let probe = catalog.find_probe(mine, "mine:handed_out", None).expect("a row");
    let row = catalog.row(probe).expect("a row");
    assert!(row.site == SiteKind::StaticProbe && row.entry_only && !row.raw);
    let places: Vec<String> = row.args.iter().map(|arg| arg.loc.to_string()).collect();
    let expected = ["rdi:8", "rsi:1", "rdx:8", "rcx:8", "r8:8", "r9:8", "stack+8:4"];
    assert_eq!(places, expected, "numbered like registers and words of the stack");
    assert_eq!(
        catalog.find_probe(mine, "mine:other", None),
        None,
        "a function's glob is no probe's"
    );
    assert_ne!(catalog.find(mine, "mine:handed_out", None), Some(probe));
}

#[test]
fn what_a_static_probe_cannot_have_is_refused_with_its_line() {
    let says = |from: &str, to: &str, expected: &str| {
        let said = refusal(&PROBE.replace(from, to));
        assert!(said.contains(expected), "{said}");
    };
    says(
        "bytes = \"c\"",
        "returns = \"i32\"",
        "hooks.toml:6: probe \"mine:handed_out\": `returns` is for functions",
    );
    says("bytes = \"c\"", "ok = [1]", "`ok` is for functions");
    says("bytes = \"c\"", "forwards = \"x\"", "`forwards` is for functions");
    says("bytes = \"c\"", "symbol = \"x\"", "one of `symbol`, `probe`");
    says("probe = ", "api = ", "hooks.toml:5: missing field `symbol`, or `probe`");
    says("mine:handed_out", "handed_out", "not of the form \"PROVIDER:NAME\"");
    says("mine:handed_out", ":handed_out", "not of the form \"PROVIDER:NAME\"");
    says(
        "d: i64",
        "d: dim3",
        "argument `d`: arguments of a static probe are integers and addresses",
    );
    says(
        "d: i64",
        "d: f64 (unreadable)",
        "argument `d`: arguments of a static probe",
    );
    let args = PROBE.lines().find(|line| line.starts_with("args")).expect("a line");
    says(args, "", "missing field `args`");
    let many: Vec<String> = (0..13).map(|at| format!("\"a{at}: u8\"")).collect();
    let many = format!("args = [\"c: u8\", {}]", many.join(", "));
    says(args, &many, "at most 12 arguments");
}

const LAUNCH: &str = r#"[[library]]
name = "mine"
match = "m.so"
[[function]]
library = "mine"
symbol = "run"
args = ["f: handle", "x: u32", "y: u32", "z: u32", "bx: u32", "by: u32", "bz: u32", "shared: u32"]
kernel = "f"
shape = "x y z bx by bz shared"
"#;

const KERNEL_AND_SHAPE: &str = "kernel = \"f\"\nshape = \"x y z bx by bz shared\"\n";

#[test]
fn a_launch_says_what_runs_and_in_what_shape() {
    let mut catalog = builtin();
    catalog.add_hooks("hooks.toml", LAUNCH).expect("hooks");
    let launch = catalog
        .rows
        .last()
        .and_then(|row| row.launch.as_ref())
        .expect("a launch");
    assert_eq!(launch.kernel, Place { arg: 0, field: None });
    let arguments = launch.shape.expect("a shape").map(|place| place.arg);
    assert_eq!(arguments, [1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn every_launch_of_a_kernel_by_the_driver_says_so() {
    let catalog = builtin();
    let driver = catalog.library("driver").expect("the driver");
    let with = |role: Role| move |row: &&Row| row.launch.as_ref().is_some_and(|launch| launch.role == role);
    let launches = catalog.rows.iter().filter(with(Role::Launch));
    let mut names: Vec<&str> = launches
        .inspect(|row| assert_eq!(row.library, driver, "{}", row.symbol))
        .map(|row| row.symbol.as_str())
        .collect();
    names.sort_unstable();
    let expected = [
        "cuLaunch",
        "cuLaunchCooperativeKernel",
        "cuLaunchCooperativeKernel_ptsz",
        "cuLaunchGrid",
        "cuLaunchGridAsync",
        "cuLaunchKernel",
        "cuLaunchKernelEx",
        "cuLaunchKernelEx_ptsz",
        "cuLaunchKernel_ptsz",
    ];
    assert_eq!(names, expected);
}

#[test]
fn launches_of_the_runtime_say_which_function_of_the_host_they_launch() {
    let catalog = builtin();
    let runtime = catalog.library("runtime").expect("the runtime");
    let of_one_kernel = |row: &&Row| {
        let many = row.api.contains("MultiDevice") || row.api.contains("Graph");
        row.library == runtime && row.class == Class::Launch && !row.raw && !many && row.api != "cudaLaunch"
    };
    let launches: Vec<&Row> = catalog.rows.iter().filter(of_one_kernel).collect();
    assert!(launches.len() >= 8, "{}", launches.len());
    for row in launches {
        let role = row.launch.as_ref().map(|launch| launch.role);
        assert_eq!(role, Some(Role::Stub), "{}", row.symbol);
    }
}

#[test]
fn functions_that_give_out_kernels_say_how_they_are_called() {
    let mut catalog = builtin();
    catalog
        .add_hooks(
            "hooks.toml",
            &LAUNCH.replace(KERNEL_AND_SHAPE, "names = \"f from=x\"\n"),
        )
        .expect("hooks");
    let role = |row: &Row| row.launch.as_ref().map(|launch| launch.role);
    let same = Role::Same(Place { arg: 1, field: None });
    assert_eq!(catalog.rows.last().and_then(role), Some(same));
    for (symbol, argument) in [("cuModuleGetFunction", 2), ("cuLibraryGetKernel", 2)] {
        let row = catalog.rows.iter().find(|row| row.symbol == symbol).expect("a row");
        let name = Role::Name(Place {
            arg: argument,
            field: None,
        });
        assert_eq!(role(row), Some(name), "{symbol}");
    }
    let refused = |names: &str| refusal(&LAUNCH.replace(KERNEL_AND_SHAPE, names));
    assert!(refused("names = \"f\"\n").contains("hooks.toml:8: names \"f\" is not of the form"));
    assert!(refused("names = \"f x\"\n").contains("`x` is no cstr"));
    assert!(refused("stub = \"f\"\nkernel = \"f\"\n").contains("only one of"));
}

#[test]
fn a_launch_that_is_not_understood_is_refused_with_its_line() {
    let says = |from: &str, to: &str, expected: &str| {
        let said = refusal(&LAUNCH.replace(from, to));
        assert!(said.contains(expected), "{said}");
    };
    says("kernel = \"f\"", "kernel = \"g\"", "hooks.toml:8: ");
    says("kernel = \"f\"\n", "", "hooks.toml:8: `shape` needs `kernel`");
    says("bx by bz shared\"", "bx by bz\"", "needs 7 arguments");
    says("bz shared\"", "bz size\"", "size");
}

fn kernel_row(text: &str) -> Result<Row, String> {
    let mut catalog = Catalog::default();
    let added = catalog.add_hooks("k.toml", &format!("[[function]]\n{text}"));
    added.map_err(|error| error.to_string())?;
    Ok(catalog.rows.pop().expect("a row"))
}

#[test]
fn a_function_of_the_kernel_needs_no_library_and_has_arguments_by_order_or_by_name() {
    let ordered = kernel_row("kprobe = \"vfs_read\"\nargs = [\"file: ptr\", \"buf: ptr\", \"count: size\"]").unwrap();
    assert_eq!(ordered.site, SiteKind::KernelFunction);
    assert_eq!(ordered.in_kernel.unwrap().arguments, Arguments::Ordered);
    let named = kernel_row("kprobe = \"vfs_read\"\nargs = [\"inode: u64 = file->f_inode.i_ino\", \"count\"]").unwrap();
    let Arguments::Named(args) = named.in_kernel.unwrap().arguments else {
        panic!("not by name");
    };
    assert_eq!(args[0].path, ["file", "f_inode", "i_ino"]);
    assert_eq!((args[1].kind, args[1].path.len()), (None, 1));
    let all = kernel_row("tracepoint = \"irq:irq_handler_entry\"\nprocess = false").unwrap();
    assert!(all.entry_only && all.in_kernel.as_ref().unwrap().any_task);
    assert_eq!(all.in_kernel.unwrap().arguments, Arguments::All);
}

#[test]
fn mistakes_in_rows_of_the_kernel_are_named() {
    let said = |text: &str| kernel_row(text).unwrap_err();
    assert!(said("tracepoint = \"sched_switch\"").contains("GROUP:NAME"));
    assert!(said("kprobe = \"a\"\ntracepoint = \"b:c\"").contains("one of `symbol`, `probe`"));
    assert!(said("kprobe = \"a\"\nonly = \"x > 3\"").contains("is not of the form"));
    assert!(said("kprobe = \"a*\"\nname = \"b\"").contains("not for a pattern"));
    assert!(said("tracepoint = \"b:c\"\nreturns = \"void\"").contains("`returns` is not for"));
    assert!(said("symbol = \"f\"\nargs = []").contains("missing field `library`"));
}

#[test]
fn every_group_of_the_kernel_is_read() {
    for group in KERNEL_GROUPS {
        let mut catalog = Catalog::default();
        catalog.add_kernel_group(group.name).unwrap();
        assert!(catalog.rows.len() > 1, "{}", group.name);
    }
    assert!(
        Catalog::default()
            .add_kernel_group("ioctls")
            .unwrap_err()
            .contains("did you mean \"ioctl\"")
    );
}
