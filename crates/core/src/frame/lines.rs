//! A call stack as a person reads it: first the line of their program that asked for the memory.

use super::{Frame, Language};
use crate::text::quantity::escaped;

/// Characters of a function's name; templates can be thousands long.
const NAME: usize = 96;
/// Frames shown outward of the line itself.
const OUTWARD: usize = 4;
/// Frames shown of the way inward: so many of its beginning, so many of its end.
const INWARD: (usize, usize) = (2, 2);

const CUDA: &[&str] = &["libcuda.so", "libcudart", "libcudadevrt"];
/// Libraries beside CUDA itself whose code asks for memory on behalf of somebody else.
const SERVANTS: &[&str] = &[
    "libcublas",
    "libcudnn",
    "libcufft",
    "libcurand",
    "libcusolver",
    "libcusparse",
    "libnvrtc",
    "libnvJitLink",
    "libnccl",
    "libtorch",
    "libc10",
    "libc.so",
    "libc-",
    "libpthread",
    "ld-linux",
    "libstdc++",
    "libdl",
];
/// Within names of such a library's functions where it is linked in statically: `libcudart_static_5382377d5c772c9d…`.
const LINKED_IN: &str = "_static_";
/// Functions that a program or a thread begins in, before anything of its own.
const STARTS: &[&str] = &[
    "_start",
    "__libc_start_main",
    "__libc_start_call_main",
    "start_thread",
    "clone",
    "__clone3",
    "execute_native_thread_routine",
];
/// Runtime libraries: of C, and of C++ and its threads.
const RUNTIMES: &[&str] = &["libc.", "libstdc++."];
/// Where sources of standard libraries lie: their code is compiled into programs.
const STANDARD: &[&str] = &["/rustc/", "/include/c++/"];
const INSTALLED: &[&str] = &["/site-packages/", "/dist-packages/", "/lib/python3", "<frozen "];

/// The frame that a person looks for, as `train.py:42 forward`.
pub fn frame_place(stack: &[Frame]) -> Option<String> {
    stack.get(own(stack)).map(named)
}

/// The frame that a person looks for, those that led to it, and last the way from there into the driver.
pub fn frame_lines(stack: &[Frame]) -> Vec<String> {
    let own = own(stack);
    let (inward, outward) = stack.split_at(own.min(stack.len()));
    let inward = without_end(inward);
    let outward = without_start(outward);
    let mut lines: Vec<String> = outward.iter().take(1 + OUTWARD).map(named).collect();
    let rest = outward.len().saturating_sub(1 + OUTWARD);
    if rest > 0 {
        lines.push(format!("… {rest} more"));
    }
    if !inward.is_empty() {
        lines.push(format!("by {}", way(inward)));
    }
    lines
}

/// Up to the function of CUDA that was called: what that calls within CUDA has no names.
fn without_end(inward: &[Frame]) -> &[Frame] {
    let says_little = |frame: &Frame| is_nameless(frame) && is_cuda(frame) || is_linked_in_of_cuda(frame);
    let named = inward.iter().position(|frame| !says_little(frame));
    &inward[named.unwrap_or(0)..]
}

/// Without the frames that every program begins with; at least one is left.
fn without_start(outward: &[Frame]) -> &[Frame] {
    let begins = |frame: &Frame| {
        let is_native = frame.language == Language::Native;
        starts(frame) || is_native && (is_standard(frame) || is_nameless(frame) && is_of_runtime(frame))
    };
    let last = outward.iter().rposition(|frame| !begins(frame)).unwrap_or(0);
    &outward[..outward.len().min(last + 1)]
}

fn starts(frame: &Frame) -> bool {
    frame.language == Language::Native && STARTS.contains(&frame.function.as_str())
}

/// From the outermost of these frames to the innermost.
fn way(inward: &[Frame]) -> String {
    let inward: Vec<&Frame> = inward.iter().rev().collect();
    let names: Vec<String> = inward.chunk_by(|a, b| nameless_together(a, b)).map(step).collect();
    let left_out = names.len().saturating_sub(INWARD.0 + INWARD.1);
    if left_out < 2 {
        return names.join(" → ");
    }
    let (first, last) = (&names[..INWARD.0], &names[names.len() - INWARD.1..]);
    format!("{} → … {left_out} more → {}", first.join(" → "), last.join(" → "))
}

/// Frames of one library that tell a person nothing.
fn nameless_together(a: &Frame, b: &Frame) -> bool {
    let native = |frame: &Frame| frame.language == Language::Native && is_nameless(frame);
    native(a) && native(b) && a.module.is_some() && a.module == b.module
}

/// An address stands in the place of its name.
pub(super) fn is_nameless(frame: &Frame) -> bool {
    frame.function.starts_with("0x")
}

fn step(frames: &[&Frame]) -> String {
    match frames {
        [one] => brief(one),
        [first, ..] => format!(
            "{} ({} frames without names)",
            escaped(first.module.as_deref().unwrap_or_default()),
            frames.len()
        ),
        [] => String::new(),
    }
}

/// Which frame a person looks for: the innermost of the program's own Python, else of any Python, else of native
/// code that is no library of CUDA or a framework, else of a framework, else of whatever has a name. Python that could not be
/// read has no file.
fn own(stack: &[Frame]) -> usize {
    let python = |frame: &Frame| frame.language == Language::Python && !is_unread(frame);
    let find = |is: &dyn Fn(&Frame) -> bool| stack.iter().position(is);
    find(&|frame| python(frame) && is_of_program(frame))
        .or_else(|| find(&python))
        .or_else(|| find(&is_of_program))
        .or_else(|| find(&is_unread))
        .or_else(|| find(&|frame| !is_nameless(frame) && !is_cuda(frame) && !begins_or_waits(frame)))
        .or_else(|| find(&|frame| !is_nameless(frame) && !is_linked_in_of_cuda(frame)))
        .or_else(|| find(&|frame| !is_nameless(frame)))
        .unwrap_or(0)
}

/// Of what threads begin in, and sleep in.
fn begins_or_waits(frame: &Frame) -> bool {
    starts(frame) || is_standard(frame) || is_of_runtime(frame)
}

/// Of Python, and nobody knows which.
fn is_unread(frame: &Frame) -> bool {
    frame.language == Language::Python && frame.file.is_none()
}

/// That frame, as text, and outward of it those of the same kind: what the program itself does, without what it calls
/// itself through.
pub fn own_path(stack: &[Frame]) -> impl Iterator<Item = String> {
    let first = own(stack);
    let all = stack.get(first).is_some_and(|frame| !is_of_program(frame));
    let outward = stack.iter().skip(first);
    outward.filter(move |frame| all || is_of_program(frame)).map(named)
}

/// Neither of what is installed, nor of what begins a program.
fn is_of_program(frame: &Frame) -> bool {
    match frame.language {
        Language::Python => !is_unread(frame) && !is_installed(frame),
        Language::Native => !serves(frame) && !starts(frame) && !is_standard(frame),
    }
}

/// Of the standard library of Rust or C++: whoever sleeps sleeps in there.
fn is_standard(frame: &Frame) -> bool {
    let file = frame.file.as_deref().unwrap_or_default();
    frame.function.starts_with("std::") || STANDARD.iter().any(|part| file.contains(part))
}

/// Of the runtime library of a language: whoever waits waits in there.
fn is_of_runtime(frame: &Frame) -> bool {
    let module = frame.module.as_deref().unwrap_or_default();
    RUNTIMES.iter().any(|runtime| module.starts_with(runtime))
}

fn is_installed(frame: &Frame) -> bool {
    let file = frame.file.as_deref().unwrap_or_default();
    INSTALLED.iter().any(|part| file.contains(part))
}

pub(super) fn serves(frame: &Frame) -> bool {
    is_cuda(frame) || SERVANTS.iter().any(|servant| is_of(frame, servant))
}

/// Of a library whose name begins so, also where that is linked in.
fn is_of(frame: &Frame, library: &str) -> bool {
    let module = frame.module.as_deref().unwrap_or_default();
    module.starts_with(library) || is_linked_in(frame, library)
}

fn is_linked_in(frame: &Frame, library: &str) -> bool {
    let name = frame.function.trim_start_matches('_');
    name.contains(LINKED_IN) && name.starts_with(library)
}

fn is_linked_in_of_cuda(frame: &Frame) -> bool {
    CUDA.iter().any(|library| is_linked_in(frame, library))
}

/// Whether a module of that name is CUDA's own: its driver, its runtime.
#[must_use]
pub fn is_cuda_module(module: &str) -> bool {
    CUDA.iter().any(|library| module.starts_with(library))
}

/// CUDA itself: its driver, its runtime, and whatever has the name of one of their functions.
fn is_cuda(frame: &Frame) -> bool {
    let name = frame.function.trim_start_matches('_');
    let api = name
        .strip_prefix("cu")
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()));
    api || name.starts_with("cuda") || CUDA.iter().any(|library| is_of(frame, library))
}

/// `train.py:42 forward`, `step (app)`, `0x7f12 (app+0x7f12)`.
pub(super) fn named(frame: &Frame) -> String {
    let name = cut(&frame.function);
    match (base(frame), frame.line, frame.module.as_deref()) {
        (Some(file), Some(line), _) => format!("{file}:{line} {name}"),
        (Some(file), None, _) => format!("{file} {name}"),
        (None, _, Some(module)) => format!("{name} ({})", located(frame, module)),
        (None, _, None) => name,
    }
}

fn located(frame: &Frame, module: &str) -> String {
    match frame.offset.filter(|_| is_nameless(frame)) {
        Some(offset) => format!("{}+{offset:#x}", escaped(module)),
        None => escaped(module),
    }
}

/// A frame among many.
fn brief(frame: &Frame) -> String {
    match frame.language {
        Language::Native if !is_nameless(frame) => cut(&frame.function),
        _ => named(frame),
    }
}

fn base(frame: &Frame) -> Option<String> {
    let file = frame.file.as_deref()?;
    Some(escaped(file.rsplit('/').next().unwrap_or(file)))
}

fn cut(name: &str) -> String {
    match name.char_indices().nth(NAME) {
        Some((end, _)) => format!("{}…", escaped(&name[..end])),
        None => escaped(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn native(function: &str, module: &str) -> Frame {
        Frame {
            function: function.to_owned(),
            module: Some(module.to_owned()),
            offset: Some(0x1234),
            file: None,
            line: None,
            language: Language::Native,
            inlined: false,
        }
    }

    fn python(function: &str, file: &str, line: u32) -> Frame {
        Frame {
            module: None,
            offset: None,
            file: Some(file.to_owned()),
            line: Some(line),
            language: Language::Python,
            ..native(function, "")
        }
    }

    #[test]
    fn where_a_framework_alone_asks_its_function_is_named_and_not_cudas() {
        let stack = [
            native("cudaMemcpyAsync", "libcudart.so.13"),
            native("0x12", "libtorch_cuda.so"),
            native("at::native::select_backward_symint", "libtorch_cpu.so"),
            native("start_thread", "libc.so.6"),
        ];
        let of_torch = "at::native::select_backward_symint (libtorch_cpu.so)";
        assert_eq!(frame_place(&stack).as_deref(), Some(of_torch));
        assert_eq!(
            frame_place(&stack[..2]).as_deref(),
            Some("cudaMemcpyAsync (libcudart.so.13)")
        );
    }

    #[test]
    fn where_a_framework_alone_waits_its_function_is_named_and_not_that_of_the_c_library() {
        let stack = [
            native("0x98e51", "libc.so.6"),
            native("pthread_cond_wait", "libc.so.6"),
            native("std::condition_variable::wait", "libstdc++.so.6"),
            native("torch::autograd::ReadyQueue::pop", "libtorch_cpu.so"),
            native("torch::autograd::Engine::thread_main", "libtorch_cpu.so"),
            native("start_thread", "libc.so.6"),
        ];
        let of_torch = "torch::autograd::ReadyQueue::pop (libtorch_cpu.so)";
        assert_eq!(frame_place(&stack).as_deref(), Some(of_torch));
        assert_eq!(
            frame_place(&stack[..2]).as_deref(),
            Some("pthread_cond_wait (libc.so.6)"),
            "nothing else is known"
        );
    }

    #[test]
    fn frames_without_names_are_one_step() {
        let nameless = |offset: u64| Frame {
            function: format!("{offset:#x}"),
            module: Some("libcublas.so.13".to_owned()),
            offset: Some(offset),
            file: None,
            line: None,
            language: Language::Native,
            inlined: false,
        };
        let mut stack: Vec<Frame> = [1, 2, 3].map(nameless).to_vec();
        let line = Frame {
            file: Some("train.py".to_owned()),
            line: Some(42),
            language: Language::Python,
            function: "forward".to_owned(),
            ..nameless(0)
        };
        stack.push(Frame { module: None, ..line });
        assert_eq!(
            frame_lines(&stack),
            ["train.py:42 forward", "by libcublas.so.13 (3 frames without names)"]
        );
    }

    #[test]
    fn python_of_the_program_comes_before_that_of_a_framework() {
        let stack = [
            native("cuMemAlloc_v2", "libcuda.so.1"),
            native("at::native::empty", "libtorch_cpu.so"),
            python("linear", "/usr/lib/python3.12/site-packages/torch/nn/functional.py", 9),
            python("forward", "/home/me/train.py", 42),
            python("<module>", "/home/me/train.py", 99),
        ];
        let shown = frame_lines(&stack);
        let expected = [
            "train.py:42 forward",
            "train.py:99 <module>",
            "by functional.py:9 linear → at::native::empty → cuMemAlloc_v2",
        ];
        assert_eq!(shown, expected);
        assert_eq!(frame_place(&stack).as_deref(), Some("train.py:42 forward"));
    }

    #[test]
    fn what_every_program_begins_in_is_left_out() {
        let begin = [
            native("0x2a1c9", "libc.so.6"),
            native("__libc_start_main", "libc.so.6"),
            native("_start", "python3.12"),
        ];
        let mut stack = vec![
            native("cuMemAlloc_v2", "libcuda.so.1"),
            python("<module>", "train.py", 33),
        ];
        stack.extend(begin.clone());
        assert_eq!(frame_lines(&stack), ["train.py:33 <module>", "by cuMemAlloc_v2"]);
        assert_eq!(own_path(&stack).collect::<Vec<_>>(), ["train.py:33 <module>"]);
        stack.remove(1);
        assert_eq!(frame_lines(&stack), ["cuMemAlloc_v2 (libcuda.so.1)"]);
        let thread_of_cpp = [
            native("worker", "app"),
            native(
                "std::thread::_State_impl<std::thread::_Invoker<std::tuple<worker>>>::_M_run",
                "app",
            ),
            native("0xecdb3", "libstdc++.so.6.0.33"),
            native("start_thread", "libc.so.6"),
        ];
        assert_eq!(frame_lines(&thread_of_cpp), ["worker (app)"]);
        assert_eq!(
            frame_lines(&begin)[0],
            "__libc_start_main (libc.so.6)",
            "nothing else is known"
        );
    }

    #[test]
    fn python_that_could_not_be_read_comes_behind_what_has_a_name() {
        let unread = Frame {
            file: None,
            line: None,
            ..python("[Python function at 0x7f02]", "", 0)
        };
        let stack = [
            native("dlopen", "libc.so.6"),
            unread.clone(),
            python("<module>", "/x/train.py", 1),
            unread.clone(),
        ];
        assert_eq!(frame_place(&stack).as_deref(), Some("train.py:1 <module>"));
        assert_eq!(frame_place(&[unread]).as_deref(), Some("[Python function at 0x7f02]"));
    }

    #[test]
    fn native_code_of_the_program_comes_before_that_of_libraries() {
        let stack = [
            native("cuMemCreate", "libcuda.so.1"),
            native("cudaMalloc", "app"),
            native("step", "app"),
        ];
        assert_eq!(frame_lines(&stack), ["step (app)", "by cudaMalloc → cuMemCreate"]);
    }

    #[test]
    fn what_a_standard_library_does_is_done_by_who_calls_it() {
        let of_standard = |function: &str, file: &str| Frame {
            file: Some(file.to_owned()),
            line: Some(80),
            ..native(function, "app")
        };
        let inward = [
            native("clock_nanosleep", "libc.so.6"),
            native("std::sys::thread::unix::sleep", "app"),
            of_standard(
                "core::ops::function::FnOnce::call_once",
                "/rustc/5980/library/core/src/ops/function.rs",
            ),
            of_standard("sleep_for<long>", "/usr/include/c++/14/bits/this_thread_sleep.h"),
        ];
        let stack = [&inward[..], &[native("load_batch", "app"), native("main", "app")]].concat();
        assert_eq!(frame_place(&stack).as_deref(), Some("load_batch (app)"));
        assert_eq!(own_path(&stack).collect::<Vec<_>>(), ["load_batch (app)", "main (app)"]);
        let known = frame_place(&inward).unwrap();
        assert_eq!(known, "clock_nanosleep (libc.so.6)", "nothing else is known");
    }

    #[test]
    fn functions_of_a_runtime_that_is_linked_in_are_none_of_the_program() {
        let stack = [
            native("libcudart_static_5382377d5c772c9d197c0cda9fd9742ee6ad893c", "app"),
            native("cudaMalloc", "app"),
            native("main", "app"),
        ];
        assert_eq!(frame_lines(&stack), ["main (app)", "by cudaMalloc"]);
    }

    #[test]
    fn where_nothing_else_is_known_the_call_is_named_and_not_what_it_calls_within() {
        let stack = [
            native("libcudart_static_5382377d5c772c9d197c0cda9fd9742ee6ad893c", "app"),
            native("cudaStreamSynchronize", "app"),
            native("std::thread::_State_impl<work()::{lambda()#1}>::_M_run", "app"),
            native("execute_native_thread_routine", "libstdc++.so.6"),
        ];
        assert_eq!(frame_place(&stack).as_deref(), Some("cudaStreamSynchronize (app)"));
    }

    #[test]
    fn a_name_comes_before_an_address() {
        let stack = [
            native("0x1376c", "libcudart.so.13"),
            native("at::native::gpu_reduce_kernel", "libtorch_cuda.so"),
            native("torch::autograd::Engine::thread_main", "libtorch_cpu.so"),
        ];
        assert_eq!(
            frame_place(&stack).as_deref(),
            Some("at::native::gpu_reduce_kernel (libtorch_cuda.so)")
        );
        assert_eq!(
            frame_place(&stack[..1]).as_deref(),
            Some("0x1376c (libcudart.so.13+0x1234)")
        );
    }

    #[test]
    fn the_way_into_cuda_ends_at_the_function_that_is_called() {
        let stack = [
            native("0x12002", "libcudart.so.13"),
            native("cudaStreamSynchronize", "libcudart.so.13"),
            native("at::native::_local_scalar_dense_cuda", "libtorch_cuda.so"),
            python("main", "walker.py", 42),
        ];
        assert_eq!(
            frame_lines(&stack),
            [
                "walker.py:42 main",
                "by at::native::_local_scalar_dense_cuda → cudaStreamSynchronize"
            ]
        );
        let nameless = [native("0x12002", "libcudart.so.13"), python("main", "walker.py", 42)];
        assert_eq!(frame_lines(&nameless)[1], "by 0x12002 (libcudart.so.13+0x1234)");
    }

    #[test]
    fn a_stack_of_libraries_alone_is_shown_from_its_innermost_frame() {
        let stack = [
            native("cuMemAlloc_v2", "libcuda.so.1"),
            native("0x1234", "libcublas.so.12"),
        ];
        assert_eq!(
            frame_lines(&stack),
            ["cuMemAlloc_v2 (libcuda.so.1)", "0x1234 (libcublas.so.12+0x1234)"]
        );
        assert!(frame_lines(&[]).is_empty() && frame_place(&[]).is_none());
    }

    #[test]
    fn long_stacks_and_names_are_cut_and_say_so() {
        let deep: Vec<Frame> = (0..300).map(|line| python("f", "a.py", line)).collect();
        let shown = frame_lines(&deep);
        assert_eq!((shown.len(), shown.last().map(String::as_str)), (6, Some("… 295 more")));
        let inner = (0..9).map(|number| native(&format!("n{number}"), "libtorch.so"));
        let stack: Vec<Frame> = inner.chain([python("f", "a.py", 1)]).collect();
        assert_eq!(frame_lines(&stack)[1], "by n8 → n7 → … 5 more → n1 → n0");
        let huge = frame_lines(&[native(&"x".repeat(9000), "app")]);
        assert!(huge[0].chars().count() < 120 && huge[0].contains('…'));
    }

    #[test]
    fn hostile_names_drive_no_terminal() {
        let stack = [python("f\u{1b}[2J", "/x\u{1b}]0;\u{7}.py", 1), native("g\n", "m\u{9b}")];
        assert!(!frame_lines(&stack).join("").contains(char::is_control));
    }
}
