//! Rows of a trace out of bytes: valid ones, whose fields say anything that fields can.

use crate::Numbers;
use gpuscope::catalog::HostMemory;
use gpuscope::catalog::{Class, CopyKind};
use gpuscope::clock::Clock;
use gpuscope::record::{Kind, Meta, Record, Taker};

const NAMES: [&str; 26] = [
    "cudaMalloc",
    "cudaFree",
    "cudaMemcpy",
    "cudaMemcpyAsync",
    "cudaLaunchKernel",
    "cudaStreamSynchronize",
    "cudaDeviceSynchronize",
    "cuInit",
    "cuMemAlloc_v2",
    "cuMemFree_v2",
    "cuLaunchKernel",
    "cuGraphLaunch",
    "cuStreamSynchronize",
    "cuModuleLoadData",
    "cuGetProcAddress_v2",
    "NV_ESC_RM_ALLOC",
    "fork",
    "exec",
    "exit",
    "gpu.idle_at_least_ns",
    "gpu.busy_at_most_ns",
    "rss",
    "step 7",
    "cupti.0.multiprocessors",
    "",
    "\u{1b}[2J\u{202e}<b>=A1,\"`|\n\\",
];
const TEXTS: [&str; 10] = [
    "",
    "python",
    "node-7",
    "CUDA_ERROR_OUT_OF_MEMORY",
    "CUDA_ERROR_NOT_READY",
    "gemm<float,128>",
    "</script><script>",
    "=HYPERLINK(\"x\")",
    "\u{1b}]0;x\u{7}\u{0}\r\n",
    "[x](y) | `z` **é** 𝄞",
];
const LAYERS: [&str; 6] = ["runtime", "driver", "kernel", "gpu", "NCCL", "\u{1b}"];
const STACKS: [&str; 5] = [
    "[]",
    "[{\"function\":\"f\",\"module\":\"m\",\"offset\":7,\"file\":null,\"line\":null,\"language\":\"native\",\"inlined\":false}]",
    "[{\"function\":\"g\",\"file\":\"/a/b.py\",\"line\":50,\"language\":\"python\"},{\"function\":\"<module>\",\"file\":\"/a/b.py\",\"line\":18446744073709551615,\"language\":\"python\"}]",
    "{\"function\":[[[[[[]]]]]]}",
    "[{\"function\":\"\\u001b<b>\"},7,null]",
];
const ARGS: [&str; 14] = [
    "{}",
    "{\"size\":64,\"flags\":\"0x1\"}",
    "{\"xid\":79,\"pci\":\"0000:17:00.0\",\"message\":\"fallen off the bus\",\"pid\":7}",
    "{\"signal\":9,\"status\":137}",
    "{\"parent\":7,\"child\":8,\"image\":\"python3\"}",
    "{\"dptr\":\"0x7f0000000000\",\"bytesize\":18446744073709551615}",
    "{\"activity\":\"kernel\",\"device\":0,\"context\":1,\"grid\":[4294967295,4294967295,2],\"block\":[256,1,1],\"registers\":32,\"shared_bytes\":0,\"call_tid\":1,\"call_ts_ns\":2,\"match\":\"ordered\"}",
    "{\"activity\":\"copy\",\"device\":4294967296,\"graph\":1,\"call_tid\":0,\"call_ts_ns\":-1,\"match\":\"ordered\"}",
    "{\"domain\":\"\",\"color\":\"#ff00ff00\",\"started\":true,\"end_tid\":2}",
    "{\"domain\":\"\\u001b</script>\",\"nvtx_category\":7,\"open\":true,\"name_unread\":true}",
    "{\"a\":{\"b\":[1,2,{\"c\":null}]},\"a\":1e308}",
    "[1]",
    "{\"a\":",
    "\u{0}",
];
const KINDS: [Kind; 4] = [Kind::Call, Kind::Call, Kind::Call, Kind::Kernel];
const HOSTS: [HostMemory; 4] = [
    HostMemory::Pinned,
    HostMemory::Pageable,
    HostMemory::Managed,
    HostMemory::Unknown,
];

/// Bytes of one row.
pub const ROW: usize = 32;

/// What describes the trace.
pub fn meta(first: u8) -> Meta {
    let number = |is: bool| if is { u64::MAX } else { 1_000_000_000 };
    Meta {
        clock: Clock {
            start_monotonic_ns: number(first & 1 != 0),
            start_unix_ns: number(first & 2 != 0),
        },
        command: TEXTS.map(str::to_owned).to_vec(),
        tier: "uprobe.session".to_owned(),
        host: TEXTS[usize::from(first) % TEXTS.len()].to_owned(),
        tool: "0.1.0".to_owned(),
    }
}

/// The row of these bytes; `now` is when the one before it began, and becomes when it does.
fn row(bytes: &[u8], now: &mut i64) -> Record<'static> {
    let mut from = Numbers(bytes);
    let flags = [from.byte(), from.byte()];
    let number = |from: &mut Numbers<'_>, flag: u8| Some(from.number()).filter(|_| flags[0] & flag != 0);
    let kind = match flags[1] & 3 {
        0 => from.of(Kind::ALL),
        _ => from.of(&KINDS),
    };
    let thread = u32::from(from.byte());
    let step = from.number();
    *now = match flags[1] & 4 {
        0 => now.wrapping_add_unsigned(step),
        _ => now.wrapping_sub_unsigned(step),
    };
    Record {
        ns: number(&mut from, 1),
        tid: thread >> 2,
        comm: from.of(&TEXTS),
        layer: from.of(&LAYERS),
        name: from.of(&NAMES),
        class: from.of(Class::ALL),
        depth: if flags[1] & 8 == 0 { 0 } else { from.byte() },
        count: if flags[1] & 16 == 0 { 1 } else { from.number() },
        since_caller: number(&mut from, 2),
        result: number(&mut from, 4).map(u64::cast_signed),
        error: from.maybe(&TEXTS),
        failed: flags[1] & 32 != 0,
        bytes: number(&mut from, 8),
        direction: from.maybe(&CopyKind::ALL),
        host: from.maybe(&HOSTS),
        blocking: flags[1] & 64 != 0,
        stream: number(&mut from, 16),
        address: number(&mut from, 32),
        held: number(&mut from, 64),
        kernel: from.maybe(&TEXTS),
        stack: from.maybe(&STACKS),
        args: from.maybe(&ARGS),
        ..Record::new(kind, *now, thread & 3)
    }
}

/// Hands the rows of these bytes to `taker`; how many they were.
pub fn give(bytes: &[u8], taker: &mut dyn Taker) -> u64 {
    let mut now = 0;
    let rows = bytes.chunks_exact(ROW);
    let count = rows.len() as u64;
    rows.for_each(|bytes| taker.take(&row(bytes, &mut now)));
    count
}

/// An input as how to begin, a summary, and rows: two bytes say how long the summary is.
pub fn split(input: &[u8]) -> Option<(u8, &str, &[u8])> {
    let (&[first, low, high], rest) = input.split_first_chunk()?;
    let length = usize::from(u16::from_le_bytes([low, high])).min(rest.len());
    let (summary, rows) = rest.split_at(length);
    Some((first, std::str::from_utf8(summary).ok()?, rows))
}
