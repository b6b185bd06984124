//! What a process runs, by its arguments: the script or module rather than the interpreter. Pure.
//!
//! `python -u /data/train.py --lr 1` is `train.py`, `python -m pkg.train` is `pkg.train`. What only starts others, such
//! as `torchrun`, is looked through: it is called what it starts.

use super::value::clean;

/// Options of Python's that take the next argument.
const PYTHON_WITH_VALUE: [&[u8]; 3] = [b"-X", b"-W", b"--check-hash-based-pycs"];
/// Scripts and modules that run the script or module among their own arguments.
const LAUNCHERS: [&[u8]; 10] = [
    b"torchrun",
    b"torch.distributed.run",
    b"torch.distributed.launch",
    b"torch.distributed.elastic.agent",
    b"accelerate",
    b"accelerate.commands.launch",
    b"deepspeed",
    b"deepspeed.launcher.runner",
    b"deepspeed.launcher.launch",
    b"horovodrun",
];

/// The program of `/proc/PID/cmdline`: its arguments, each with a zero behind it. Empty: it has none.
pub(super) fn of_cmdline(cmdline: &[u8]) -> String {
    let mut arguments = cmdline.split(|byte| *byte == 0);
    let first = name(arguments.next().unwrap_or_default());
    let rest: Vec<&[u8]> = arguments.filter(|argument| !argument.is_empty()).collect();
    match is_python(first) {
        true => clean(of_python(first, &rest)),
        false => clean(launched(first, &rest)),
    }
}

fn of_python<'a>(interpreter: &'a [u8], arguments: &[&'a [u8]]) -> &'a [u8] {
    let mut rest = arguments;
    while let [argument, after @ ..] = rest {
        rest = after;
        match *argument {
            // what is written there may be long and secret
            b"-c" | b"-" => return interpreter,
            b"-m" => {
                return after
                    .first()
                    .map_or(interpreter, |module| launched(module, &after[1..]));
            }
            option if PYTHON_WITH_VALUE.contains(&option) => rest = after.get(1..).unwrap_or_default(),
            option if option.starts_with(b"-") => match attached_module(option) {
                Some(module) => return launched(module, after),
                None if is_command(option) => return interpreter,
                None => {}
            },
            script => return launched(name(script), after),
        }
    }
    interpreter
}

/// `-mtrain`, `-um` without what follows is Python's business.
fn attached_module(option: &[u8]) -> Option<&[u8]> {
    option.strip_prefix(b"-m").filter(|module| !module.is_empty())
}

/// `-cimport x`, `-Sc`: the next or the rest of this argument is a program.
fn is_command(option: &[u8]) -> bool {
    option.starts_with(b"-c") || (!option.starts_with(b"--") && option.len() <= 8 && option.ends_with(b"c"))
}

/// What a launcher starts, where its arguments tell; else itself.
fn launched<'a>(program: &'a [u8], arguments: &[&'a [u8]]) -> &'a [u8] {
    if !LAUNCHERS.contains(&program) {
        return program;
    }
    let module = arguments
        .iter()
        .position(|argument| matches!(*argument, b"-m" | b"--module"));
    let script = arguments.iter().position(|argument| argument.ends_with(b".py"));
    match (module, script) {
        (Some(at), script) if script.is_none_or(|script| at < script) => {
            arguments.get(at + 1).copied().unwrap_or(program)
        }
        (_, Some(at)) => name(arguments[at]),
        _ => program,
    }
}

/// The last part of a path.
fn name(path: &[u8]) -> &[u8] {
    let last = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    // a title that a program gave itself may end so
    if last.is_empty() { path } else { last }
}

/// `python`, `python3`, `python3.12`, `pypy3`, `pt_main_thread` is none.
fn is_python(name: &[u8]) -> bool {
    let version = name.strip_prefix(b"python").or_else(|| name.strip_prefix(b"pypy"));
    version.is_some_and(|version| {
        version
            .iter()
            .all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'd' | b't'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(line: &str) -> String {
        let text: String = line.split(' ').map(|word| format!("{word}\0")).collect();
        of_cmdline(text.as_bytes())
    }

    #[test]
    fn a_script_is_called_by_its_name_and_a_module_by_its_own() {
        assert_eq!(
            of("/usr/bin/python3.12 -u -X faulthandler /data/train.py --lr 1"),
            "train.py"
        );
        assert_eq!(of("python -m pkg.train --lr 1"), "pkg.train");
        assert_eq!(of("python3 -mpkg.train"), "pkg.train");
        assert_eq!(of("pypy3 -W ignore run"), "run");
        assert_eq!(of("/opt/bin/llama-server -m model.gguf"), "llama-server");
    }

    #[test]
    fn a_launcher_is_called_what_it_starts() {
        assert_eq!(
            of("python /usr/local/bin/torchrun --nproc_per_node 8 train.py --lr 1"),
            "train.py"
        );
        assert_eq!(of("torchrun --nproc_per_node=8 -m pkg.train x.py"), "pkg.train");
        assert_eq!(
            of("python -m torch.distributed.run --standalone src/train.py"),
            "train.py"
        );
        assert_eq!(
            of("python -u -m deepspeed.launcher.launch --world_info=e30= a/ft.py"),
            "ft.py"
        );
        assert_eq!(
            of("python -m accelerate.commands.launch --config c.yaml --module pkg"),
            "pkg"
        );
        assert_eq!(of("torchrun --help"), "torchrun");
        assert_eq!(of("python -m torch.distributed.run"), "torch.distributed.run");
    }

    #[test]
    fn a_program_that_is_written_on_the_command_line_is_not_shown() {
        for line in [
            "python3 -c secret",
            "python3 -Sc secret",
            "python3 -csecret",
            "python3 -",
            "python3",
        ] {
            assert_eq!(of(line), "python3", "{line}");
        }
    }

    #[test]
    fn a_process_without_arguments_has_no_program_and_a_title_is_one() {
        assert_eq!(of_cmdline(b""), "");
        assert_eq!(of("VLLM::EngineCore"), "VLLM::EngineCore");
        assert_eq!(of("python -m"), "python");
    }

    proptest! {
        #[test]
        fn any_arguments_have_a_bounded_and_harmless_name(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            let program = of_cmdline(&bytes);
            prop_assert!(program.len() <= 128 && !program.contains(char::is_control), "{program:?}");
        }
    }
}
