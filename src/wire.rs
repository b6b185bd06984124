//! What crosses between the kernel programs and user space: the Rust mirror of `src/bpf/wire.h`.
//!
//! Owns the layout, not the meaning: [`crate::capture`] says what a row's words are, [`crate::decode`] reads
//! them. `src/probe/` asserts at compile time that these structures equal the ones in the BPF object.

pub const REGS: usize = 6;
pub const STACK: usize = 10;
pub const VALUES: usize = 8;
pub const BLOCK: usize = 26;
pub const TEXTS: usize = 2;
pub const TEXT: usize = 128;
pub const FACTORS: usize = 4;
pub const BUCKETS: usize = 128;
pub const COMM: usize = 16;
pub const COMMS: usize = 4;
/// Arguments that say what a call does to memory.
pub const PARTS: usize = 9;
/// Arguments that say what a call has to do with work.
pub const WORK: usize = 8;
/// Copies of one call that are told of one by one.
pub const BATCH: u32 = 256;
/// A submission that took as long may have waited for room, and is told of.
pub const SLOW_NS: u64 = 100_000;
/// Stream: the default one of a thread, as the driver numbers it.
pub const PER_THREAD: u64 = 2;
/// Grid x y z, block x y z, bytes of shared memory.
pub const SHAPE: usize = 7;
/// Bytes kept of the name of a kernel, NUL included.
pub const KERNEL_NAME: usize = 4096;
/// Bytes kept of the message of an Xid, NUL included.
pub const XID_TEXT: usize = 472;
/// Bytes of one piece of an argument that the driver was given.
pub const PIECE: usize = 64;
/// Arguments of a static probe.
pub const PLACES: usize = 12;
/// Static probes whose arguments lie in different places.
pub const KERNEL_STEPS: usize = 6;
pub const KERNEL_SITES: usize = 1024;
pub const GROUND_KERNEL: u32 = 1;
pub const GROUND_ANY_TASK: u32 = 2;
pub const KERNEL_SIGNED: u8 = 1;
pub const KERNEL_ADDRESS: u8 = 2;
pub const KERNEL_IN_RECORD: u8 = 4;
pub const PROBE_SITES: usize = 1024;
/// Library loads that can wait at the same time.
pub const WAITS: usize = 64;
/// Conditions of one row.
pub const TESTS: usize = 2;

/// First index of the stack words and of the values among a call's captured words.
pub const WORD_STACK: u8 = REGS as u8;
pub const WORD_VALUES: u8 = (REGS + STACK) as u8;
pub const WORD_NONE: u8 = 255;
/// Where a launch whose shape lies behind a pointer keeps the stream that it has found there.
pub const WORD_STREAM: u8 = WORD_VALUES + 6;

/// Where a row that asks for the stack of each call has its id.
pub const WORD_SITE: u8 = WORD_VALUES + VALUES as u8 - 1;
/// What stands for a captured word where a call is tested or summed up: nothing, as what it needs is not seen.
pub const WORD_UNKNOWN: u8 = 254;
pub const WORD_RESULT: u8 = 253;
pub const WORD_DURATION: u8 = 252;
pub const WORD_BYTES: u8 = 251;

pub const SIZE_SMALL: u8 = 0;
pub const SIZE_MEDIUM: u8 = 1;
pub const SIZE_LARGE: u8 = 2;

pub const SPEC_STREAM: u8 = 1;
pub const SPEC_RETURN: u8 = 2;
pub const SPEC_FALLIBLE: u8 = 4;
pub const SPEC_MEMORY: u8 = 8;
pub const SPEC_SITE: u8 = 16;
pub const SPEC_OUTER: u8 = 32;
/// Value 1 becomes the id of the kernel that is launched.
pub const SPEC_KERNEL: u8 = 64;
pub const SPEC_UNLOAD: u8 = 128;

/// What stands in place of a kernel's id: why it has none.
pub const KERNEL_NO_ARGS: u64 = 1;
pub const KERNEL_UNREADABLE: u64 = 2;
pub const KERNEL_FOREIGN: u64 = 3;
pub const KERNEL_NO_NAME: u64 = 4;
pub const KERNEL_FULL: u64 = 5;
/// The tag of a function of the host that launches a kernel.
pub const KERNEL_STUB: u32 = 3;
/// Ids begin here.
pub const KERNEL_FIRST_ID: u64 = 4096;

pub const CONTEXT_STAYS: u8 = 0;
pub const CONTEXT_SET: u8 = 1;
pub const CONTEXT_PUSH: u8 = 2;
pub const CONTEXT_POP: u8 = 3;
/// As a pop, if the context is the current one.
pub const CONTEXT_DROP: u8 = 4;

pub const MEMORY_CALL: u32 = 1;
pub const MEMORY_SITE: u32 = 2;
pub const MEMORY_KERNEL: u32 = 3;
pub const WORK_CALL: u32 = 4;

pub const WORK_NONE: u8 = 0;
pub const WORK_TELL: u8 = 1;
pub const WORK_SUBMIT: u8 = 2;
pub const WORK_COPY: u8 = 3;
pub const WORK_BATCH: u8 = 4;

pub const WORK_ANCHOR: u8 = 1;
pub const WORK_PER_THREAD: u8 = 2;
pub const WORK_BEGINS_CAPTURE: u8 = 4;
pub const WORK_ENDS_CAPTURE: u8 = 8;
pub const WORK_EACH: u8 = 16;
pub const WORK_SITE: u8 = 32;
pub const WORK_ENDS_LANE: u8 = 64;
pub const WORK_KERNEL: u8 = 128;

/// Offset of a [`Read`] that is no pointer: the word itself.
pub const READ_DIRECT: u16 = 0xffff;

pub const PLACE_VALUE: u8 = 0;
pub const PLACE_MEMORY: u8 = 1;

pub const EVENT_NO_RETURN: u8 = 1;
pub const EVENT_NO_ARGS: u8 = 2;
pub const EVENT_UNREADABLE: u8 = 4;
/// Not to be shown: it is none of those asked for.
pub const EVENT_HIDDEN: u8 = 8;

pub const STEP_IOCTL: u8 = 1;
pub const STEP_OPEN: u8 = 2;
pub const STEP_CLOSE: u8 = 3;
pub const STEP_MMAP: u8 = 4;
pub const STEP_POLL: u8 = 5;

/// Whose device it is; the minor number tells which.
pub const FAMILY_FRONT: u8 = 1;
pub const FAMILY_UVM: u8 = 2;
pub const FAMILY_CAPS: u8 = 3;

pub const SEEN_BEFORE: u8 = 1;
pub const SEEN_AFTER: u8 = 2;
pub const SEEN_BEHIND: u8 = 4;
pub const LAST_CLOSE: u8 = 8;

/// In a key: the number is one of UVM's.
pub const UVM_REQUEST: u32 = 1 << 31;
/// In a key: where no other size fits.
pub const ANY_SIZE: u32 = u32::MAX;
pub const NO_OFFSET: u16 = u16::MAX;
/// Variant of the totals: the lower half is the class or method that a call is about.
pub const DRIVER_SUBJECT: u64 = 1 << 32;

pub const UNREADABLE_BLOCK: u8 = 128;
pub const UNREADABLE_TEXT: [u8; TEXTS] = [64, 32];

pub const NOTICE_THREAD: u32 = 1;
pub const NOTICE_FORK: u32 = 2;
pub const NOTICE_EXEC: u32 = 3;
pub const NOTICE_EXIT: u32 = 4;
pub const NOTICE_LIBRARY: u32 = 5;

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Read {
    pub word: u8,
    pub bytes: u8,
    pub offset: u16,
}

impl Read {
    pub const NONE: Read = Read {
        word: 0,
        bytes: 0,
        offset: 0,
    };
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Factor {
    pub word: u8,
    pub bytes: u8,
}

impl Factor {
    pub const NONE: Factor = Factor {
        word: WORD_NONE,
        bytes: 0,
    };
}

/// What a row has to do with kernels.
pub const ROLE_NONE: u8 = 0;
pub const ROLE_LAUNCH: u8 = 1;
/// Launches by a function of the host; the driver's launch, which counts, lies within.
pub const ROLE_STUB: u8 = 2;
/// Has given the handle to what `name` is called.
pub const ROLE_NAME: u8 = 3;
/// Has given the handle to what handle `name` stands for.
pub const ROLE_SAME: u8 = 4;

/// What of a launch says what runs, and in what shape.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    pub kernel: Factor,
    pub name: Factor,
    pub role: u8,
    /// Points to the numbers of the shape; [`WORD_NONE`]: they are words.
    pub shape_block: u8,
    /// The first of them, which follow each other; [`WORD_NONE`]: the call does not say.
    pub shape_word: u8,
    /// What stream 0 stands for.
    pub null_stream: u8,
    pub shape_offset: u16,
    /// Whether the stream lies behind the numbers of the shape, and 4 bytes; else it is a word.
    pub stream_in_block: u16,
    /// [`WORD_NONE`]: always stream 0.
    pub stream: Factor,
    pub pad: u16,
}

impl Launch {
    pub const NONE: Launch = Launch {
        kernel: Factor::NONE,
        name: Factor::NONE,
        role: ROLE_NONE,
        shape_block: WORD_NONE,
        shape_word: WORD_NONE,
        null_stream: 0,
        shape_offset: 0,
        stream_in_block: 0,
        stream: Factor::NONE,
        pad: 0,
    };
}

/// What a call is to the stream that it names.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    pub step: u8,
    pub flags: u8,
    pub parts: u8,
    /// Bytes from one element of an array to the next.
    pub stride: u8,
    /// `bytes` 0: none.
    pub stream: Read,
    pub part: [Read; WORK],
}

impl Work {
    pub const NONE: Work = Work {
        step: WORK_NONE,
        flags: 0,
        parts: 0,
        stride: 0,
        stream: Read::NONE,
        part: [Read::NONE; WORK],
    };
}

/// Signed numbers cross with this bit flipped, so that all compare as unsigned ones.
pub const SIGN_BIT: u64 = 1 << 63;

/// A number of a call.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operand {
    pub word: u8,
    pub bytes: u8,
    pub is_signed: u8,
    pub pad: u8,
}

impl Operand {
    pub const NONE: Operand = Operand::of(WORD_NONE, 8, false);

    /// `bytes` (1 to 8) of a word.
    pub const fn of(word: u8, bytes: u8, is_signed: bool) -> Operand {
        Operand {
            word,
            bytes,
            is_signed: is_signed as u8,
            pad: 0,
        }
    }
}

pub const TEST_LESS: u8 = 0;
pub const TEST_GREATER: u8 = 1;
pub const TEST_EQUAL: u8 = 2;
pub const TEST_BITS: u8 = 3;

/// A condition.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Test {
    pub value: u64,
    pub of: Operand,
    pub kind: u8,
    /// It has to be the other way.
    pub negate: u8,
    pub pad: u16,
}

impl Test {
    pub const NONE: Test = Test {
        value: 0,
        of: Operand::NONE,
        kind: TEST_EQUAL,
        negate: 0,
        pad: 0,
    };
}

pub const HOOK_AGGREGATE: u8 = 1;
pub const HOOK_SUM: u8 = 2;
pub const HOOK_EXTREMES: u8 = 4;
/// By powers of two of the operand.
pub const HOOK_POWERS: u8 = 8;
pub const HOOK_SITE: u8 = 16;
pub const HOOK_TESTS: u8 = 32;
/// An operand is a captured word.
pub const HOOK_WORDS: u8 = 64;

pub const GROUP_NONE: u8 = 0;
pub const GROUP_OPERAND: u8 = 1;
pub const GROUP_TEXT: u8 = 2;
pub const GROUP_THREAD: u8 = 3;
pub const GROUP_COMM: u8 = 4;
pub const GROUP_SITE: u8 = 5;

/// What a user's row computes in the kernel.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hook {
    pub flags: u8,
    pub tests: u8,
    pub group: u8,
    pub pad: u8,
    pub of: Operand,
    pub by: Operand,
    pub pad2: u32,
    pub test: [Test; TESTS],
}

impl Hook {
    pub const NONE: Hook = Hook {
        flags: 0,
        tests: 0,
        group: GROUP_NONE,
        pad: 0,
        of: Operand::NONE,
        by: Operand::NONE,
        pad2: 0,
        test: [Test::NONE; TESTS],
    };
}

/// The operand is less than 0.
pub const BUCKET_BELOW: u32 = 65;
/// It could not be read.
pub const BUCKET_UNKNOWN: u32 = 66;

/// A group of calls of one row.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct AggregateKey {
    pub tgid: u32,
    pub row: u32,
    /// A number, or that of a text or stack.
    pub group: u64,
    /// 0: the operand is 0, or there is no histogram; 1 + n: it is 2^n or more, and less than 2^(n+1).
    pub bucket: u32,
    pub pad: u32,
}

/// Their sums.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Aggregate {
    pub count: u64,
    pub sum: u64,
    pub largest: u64,
    /// Its complement.
    pub smallest: u64,
}

/// A text that calls are summed up by.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AggregateText {
    pub text: [u8; TEXT],
}

/// What the kernel program does at one row of the catalogue.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    pub flags: u8,
    pub size: u8,
    pub stack_words: u8,
    pub values: u8,
    pub texts: u8,
    pub factors: u8,
    pub block_word: u8,
    pub block_qwords: u8,
    pub block_offset: u16,
    pub text_word: [u8; TEXTS],
    pub variant: [Factor; 2],
    pub factor: [Factor; FACTORS],
    pub value: [Read; VALUES],
    pub ok: i32,
    pub ground: u32,
    pub scale: u64,
    pub part: [Factor; PARTS],
    pub parts: u8,
    pub context_move: u8,
    pub pad2: u32,
    pub launch: Launch,
    pub work: Work,
    pub hook: Hook,
}

impl Spec {
    /// Captures nothing.
    pub const EMPTY: Spec = Spec {
        flags: 0,
        size: SIZE_SMALL,
        stack_words: 0,
        values: 0,
        texts: 0,
        factors: 0,
        block_word: WORD_NONE,
        block_qwords: 0,
        block_offset: 0,
        text_word: [WORD_NONE; TEXTS],
        variant: [Factor::NONE; 2],
        factor: [Factor::NONE; FACTORS],
        value: [Read::NONE; VALUES],
        ok: 0,
        ground: 0,
        scale: 0,
        part: [Factor::NONE; PARTS],
        parts: 0,
        context_move: CONTEXT_STAYS,
        pad2: 0,
        launch: Launch::NONE,
        work: Work::NONE,
        hook: Hook::NONE,
    };

    /// Counts calls (with `returns`: failures and durations, too) and captures nothing.
    pub fn counting(returns: bool) -> Spec {
        Spec {
            flags: if returns { SPEC_RETURN | SPEC_FALLIBLE } else { 0 },
            ..Spec::EMPTY
        }
    }
}

/// Where an argument of a static probe lies: `offset` plus registers is its value, or the value's address.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    pub offset: u64,
    pub kind: u8,
    pub base: u8,
    pub index: u8,
    pub scale: u8,
    pub bytes: u8,
    pub is_signed: u8,
    pub pad: u16,
}

/// One static probe.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProbeSite {
    pub places: u32,
    pub pad: u32,
    pub place: [Place; PLACES],
}

/// Where an argument in the kernel lies; see `enum kernel_place_flag` for `flags`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelPlace {
    pub base: u8,
    pub bytes: u8,
    pub steps: u8,
    pub flags: u8,
    pub shift: u32,
    pub mask: u64,
    pub offset: [u32; KERNEL_STEPS],
}

/// Where the arguments of a row in the kernel lie, and which of its calls are meant.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelSite {
    pub places: u32,
    pub only: u32,
    pub only_bytes: u32,
    pub pad: u32,
    pub only_value: u64,
    pub only_text: [u8; COMM],
    pub place: [KernelPlace; PLACES],
}

impl KernelSite {
    /// Any call, without arguments.
    pub const EMPTY: KernelSite = KernelSite {
        places: 0,
        only: WORD_NONE as u32,
        only_bytes: 0,
        pad: 0,
        only_value: 0,
        only_text: [0; COMM],
        place: [KernelPlace {
            base: 0,
            bytes: 0,
            steps: 0,
            flags: 0,
            shift: 0,
            mask: 0,
            offset: [0; KERNEL_STEPS],
        }; PLACES],
    };
}

/// Header of a call event; the words follow it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallHeader {
    pub entered: u64,
    pub duration: u64,
    pub caller: u64,
    pub result: u64,
    pub tgid: u32,
    pub tid: u32,
    pub row: u32,
    pub depth: u8,
    pub flags: u8,
    pub size: u8,
    pub unreadable: u8,
}

pub const HEADER_BYTES: usize = size_of::<CallHeader>();
pub const SMALL_BYTES: usize = HEADER_BYTES + (REGS + 2) * 8;
pub const MEDIUM_BYTES: usize = SMALL_BYTES + (STACK + VALUES - 2) * 8;
pub const LARGE_BYTES: usize = MEDIUM_BYTES + BLOCK * 8 + TEXTS * TEXT;

/// What one call did to memory.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryCall {
    pub kind: u32,
    pub row: u32,
    pub entered: u64,
    pub returned: u64,
    pub context: u64,
    pub site: u64,
    pub bytes: u64,
    pub tgid: u32,
    pub tid: u32,
    pub result: i32,
    pub unreadable: u8,
    pub pad: [u8; 3],
    pub part: [u64; PARTS],
}

/// A stream. Default streams belong to a context, or to a thread in one.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LaneKey {
    pub image: u64,
    pub context: u64,
    pub stream: u64,
    pub tgid: u32,
    pub tid: u32,
}

/// What was put into it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lane {
    pub submitted: u64,
    pub generation: u64,
    pub since: u64,
}

/// What one call has to do with the work of a device. It succeeded.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkCall {
    pub kind: u32,
    pub row: u32,
    pub entered: u64,
    pub returned: u64,
    pub context: u64,
    /// 0: the default one of the context, 2: the one of the thread.
    pub stream: u64,
    pub site: u64,
    pub bytes: u64,
    /// Calls that put something into its stream, this one included.
    pub submitted: u64,
    /// Of an anchor: at its entry; else at its return.
    pub generation: u64,
    /// At its return.
    pub generation_now: u64,
    /// Records of the process that were lost so far; changes more often than need be.
    pub lost: u64,
    pub kernel: u64,
    pub variant: u64,
    pub tgid: u32,
    pub tid: u32,
    pub unreadable: u32,
    /// Of a batch: in all.
    pub copies: u32,
    pub part: [u64; WORK],
}

/// Work calls of one process that found their ring full.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkLoss {
    pub copies: u64,
    pub bytes: u64,
    pub others: u64,
}

/// Memory calls of one process that found their ring full.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryLoss {
    pub allocations: u64,
    pub bytes: u64,
    pub others: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TotalKey {
    pub tgid: u32,
    pub row: u32,
    pub variant: u64,
}

/// A handle of a kernel in one program of one process.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelKey {
    pub image: u64,
    pub handle: u64,
}

/// What the handle stands for.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KnownKernel {
    pub name: u64,
    pub unloads: u64,
    pub id: u64,
    /// In the shape that is counted here.
    pub launches: u64,
    pub shape_state: u64,
    /// The complement of the first one; 0: none yet.
    pub stream: u64,
    pub streams: u64,
    pub tgid: u32,
    pub number: [u32; SHAPE],
}

impl KnownKernel {
    /// The shape that is counted here, and its launches.
    pub fn shape(&self) -> Option<(ShapeKey, u64)> {
        let key = ShapeKey {
            kernel: self.id,
            tgid: self.tgid,
            number: self.number,
        };
        (self.launches > 0).then_some((key, self.launches))
    }

    /// The streams that it was launched on.
    pub fn stream(&self) -> Option<KernelStream> {
        (self.stream != 0).then_some(KernelStream {
            kernel: self.id,
            tgid: self.tgid,
            stream: !self.stream,
            several: self.streams > 1,
        })
    }
}

/// On which stream a kernel was launched, and whether on others, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelStream {
    pub kernel: u64,
    pub tgid: u32,
    pub stream: u64,
    pub several: bool,
}

/// What the driver was asked for by name when it gave out a handle.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NamedHandle {
    pub id: u64,
    pub tgid: u32,
    pub pad: u32,
}

/// How often a kernel was launched in one shape.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ShapeKey {
    pub kernel: u64,
    pub tgid: u32,
    pub number: [u32; SHAPE],
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Total {
    /// Calls seen at entry only; all others are in a bucket.
    pub untimed: u64,
    pub errors: u64,
    pub total_ns: u64,
    pub max_ns: u64,
    /// Of a launch: threads.
    pub bytes: u64,
    pub bucket: [u64; BUCKETS],
}

impl Total {
    /// No call.
    pub const NONE: Total = Total {
        untimed: 0,
        errors: 0,
        total_ns: 0,
        max_ns: 0,
        bytes: 0,
        bucket: [0; BUCKETS],
    };

    /// Calls that have ended.
    pub fn calls(&self) -> u64 {
        self.untimed + self.bucket.iter().sum::<u64>()
    }

    /// Adds what another process or kernel has counted.
    pub fn add(&mut self, other: &Total) {
        self.untimed += other.untimed;
        self.errors += other.errors;
        self.total_ns += other.total_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
        self.bytes = self.bytes.wrapping_add(other.bytes);
        for (sum, more) in self.bucket.iter_mut().zip(other.bucket) {
            *sum += more;
        }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FailureKey {
    pub tgid: u32,
    pub row: u32,
    pub code: i32,
    pub pad: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowCounter {
    pub entered: u64,
    pub lost: u64,
    pub no_frame: u64,
}

impl RowCounter {
    /// This plus the counter whose bytes are `bytes`.
    pub fn plus(self, bytes: &[u8]) -> RowCounter {
        RowCounter {
            entered: self.entered + u64_at(bytes, 0),
            lost: self.lost + u64_at(bytes, 8),
            no_frame: self.no_frame + u64_at(bytes, 16),
        }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Notice {
    pub kind: u32,
    pub tgid: u32,
    pub tid: u32,
    pub parent: u32,
    pub at: u64,
    pub sequence: u64,
    pub comm: [u8; COMM],
}

/// Of the argument of a call to the driver; empty when `length` is 0.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    pub offset: u16,
    pub length: u16,
}

/// A number of the front end or, with [`UVM_REQUEST`], of UVM.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IoctlKey {
    pub nr: u32,
    pub size: u32,
}

/// What is copied of an argument of that number and size.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoctlPlan {
    pub before: [Piece; 2],
    pub after: [Piece; 2],
    /// Offset of the driver's answer, or [`NO_OFFSET`]; as are the others.
    pub status: u16,
    /// The class or method, which is counted apart.
    pub subject: u16,
    /// What lies there is copied by the class.
    pub pointer: u16,
    pub pad: u16,
    pub row: u32,
    pub pad2: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ShareKey {
    pub tgid: u32,
    pub row: u32,
}

/// Of the time of a function's calls: what system calls on the driver's devices took.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DriverShare {
    pub calls: u64,
    pub ns: u64,
}

/// What follows the header of a system call on one of the driver's devices.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriverCall {
    pub file: u64,
    pub argument: u64,
    pub word: u32,
    pub nr: u32,
    pub bytes: u32,
    pub minor: u32,
    pub family: u8,
    pub step: u8,
    pub wrapped: u8,
    pub seen: u8,
    pub pad: u32,
    pub behind: [u8; 8],
    pub before: [[u8; PIECE]; 2],
    pub after: [[u8; PIECE]; 2],
}

/// Bytes of a whole record.
pub const DRIVER_BYTES: usize = HEADER_BYTES + size_of::<DriverCall>();

impl DriverCall {
    /// Reads what follows the header; `None` when `record` is too short.
    pub fn parse(record: &[u8]) -> Option<DriverCall> {
        let bytes = record.get(HEADER_BYTES..DRIVER_BYTES)?;
        let piece = |offset: usize| bytes.get(offset..offset + PIECE)?.first_chunk().copied();
        Some(DriverCall {
            file: u64_at(bytes, 0),
            argument: u64_at(bytes, 8),
            word: u32_at(bytes, 16),
            nr: u32_at(bytes, 20),
            bytes: u32_at(bytes, 24),
            minor: u32_at(bytes, 28),
            family: bytes[32],
            step: bytes[33],
            wrapped: bytes[34],
            seen: bytes[35],
            pad: 0,
            behind: *bytes.get(40..)?.first_chunk()?,
            before: [piece(48)?, piece(48 + PIECE)?],
            after: [piece(48 + 2 * PIECE)?, piece(48 + 3 * PIECE)?],
        })
    }
}

/// Little-endian reader of a byte slice with known bounds; out of range reads yield 0.
pub fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    bytes
        .get(offset..offset + 8)
        .and_then(|b| b.try_into().ok())
        .map_or(0, u64::from_le_bytes)
}

/// See [`u64_at`].
pub fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    bytes
        .get(offset..offset + 4)
        .and_then(|b| b.try_into().ok())
        .map_or(0, u32::from_le_bytes)
}

impl CallHeader {
    /// Reads the header of an event; `None` when `bytes` is too short for the size it claims.
    pub fn parse(bytes: &[u8]) -> Option<CallHeader> {
        if bytes.len() < SMALL_BYTES {
            return None;
        }
        let header = CallHeader {
            entered: u64_at(bytes, 0),
            duration: u64_at(bytes, 8),
            caller: u64_at(bytes, 16),
            result: u64_at(bytes, 24),
            tgid: u32_at(bytes, 32),
            tid: u32_at(bytes, 36),
            row: u32_at(bytes, 40),
            depth: bytes[44],
            flags: bytes[45],
            size: bytes[46],
            unreadable: bytes[47],
        };
        let claimed = match header.size {
            SIZE_SMALL => SMALL_BYTES,
            SIZE_MEDIUM => MEDIUM_BYTES,
            SIZE_LARGE => LARGE_BYTES,
            _ => return None,
        };
        (bytes.len() >= claimed).then_some(header)
    }
}

impl MemoryCall {
    /// Reads a record; `None` when `bytes` is too short or of another kind.
    pub fn parse(bytes: &[u8]) -> Option<MemoryCall> {
        if bytes.len() < size_of::<MemoryCall>() || u32_at(bytes, 0) != MEMORY_CALL {
            return None;
        }
        Some(MemoryCall {
            kind: MEMORY_CALL,
            row: u32_at(bytes, 4),
            entered: u64_at(bytes, 8),
            returned: u64_at(bytes, 16),
            context: u64_at(bytes, 24),
            site: u64_at(bytes, 32),
            bytes: u64_at(bytes, 40),
            tgid: u32_at(bytes, 48),
            tid: u32_at(bytes, 52),
            result: u32_at(bytes, 56) as i32,
            unreadable: bytes[60],
            pad: [0; 3],
            part: std::array::from_fn(|part| u64_at(bytes, 64 + part * 8)),
        })
    }
}

impl WorkCall {
    /// Reads a record; `None` when `bytes` is too short or of another kind.
    pub fn parse(bytes: &[u8]) -> Option<WorkCall> {
        if bytes.len() < size_of::<WorkCall>() || u32_at(bytes, 0) != WORK_CALL {
            return None;
        }
        Some(WorkCall {
            kind: WORK_CALL,
            row: u32_at(bytes, 4),
            entered: u64_at(bytes, 8),
            returned: u64_at(bytes, 16),
            context: u64_at(bytes, 24),
            stream: u64_at(bytes, 32),
            site: u64_at(bytes, 40),
            bytes: u64_at(bytes, 48),
            submitted: u64_at(bytes, 56),
            generation: u64_at(bytes, 64),
            generation_now: u64_at(bytes, 72),
            lost: u64_at(bytes, 80),
            kernel: u64_at(bytes, 88),
            variant: u64_at(bytes, 96),
            tgid: u32_at(bytes, 104),
            tid: u32_at(bytes, 108),
            unreadable: u32_at(bytes, 112),
            copies: u32_at(bytes, 116),
            part: std::array::from_fn(|part| u64_at(bytes, 120 + part * 8)),
        })
    }
}

/// A kernel that is launched for the first time through a handle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelEvent<'a> {
    pub tgid: u32,
    pub id: u64,
    pub handle: u64,
    /// 1: `CUfunction`, 2: `CUkernel`, 0: another handle of the driver, [`KERNEL_STUB`]: `handle` is a function of
    /// the host, and there is no name.
    pub tag: u32,
    pub name: &'a [u8],
    /// It may be longer.
    pub cut: bool,
}

impl KernelEvent<'_> {
    const HEADER: usize = 32;

    /// Reads a record; `None` when `bytes` is too short or of another kind.
    pub fn parse(bytes: &[u8]) -> Option<KernelEvent<'_>> {
        if bytes.len() < KernelEvent::HEADER || u32_at(bytes, 0) != MEMORY_KERNEL {
            return None;
        }
        let length = u32_at(bytes, 28) as usize;
        Some(KernelEvent {
            tgid: u32_at(bytes, 4),
            id: u64_at(bytes, 8),
            handle: u64_at(bytes, 16),
            tag: u32_at(bytes, 24),
            name: bytes.get(KernelEvent::HEADER..KernelEvent::HEADER + length)?,
            cut: length >= KERNEL_NAME - 1,
        })
    }
}

impl Notice {
    /// Reads a notice; `None` when `bytes` is too short.
    pub fn parse(bytes: &[u8]) -> Option<Notice> {
        if bytes.len() < size_of::<Notice>() {
            return None;
        }
        let mut comm = [0; COMM];
        comm.copy_from_slice(&bytes[32..32 + COMM]);
        Some(Notice {
            kind: u32_at(bytes, 0),
            tgid: u32_at(bytes, 4),
            tid: u32_at(bytes, 8),
            parent: u32_at(bytes, 12),
            at: u64_at(bytes, 16),
            sequence: u64_at(bytes, 24),
            comm,
        })
    }
}

/// A C array of characters up to its first NUL.
pub fn text_of(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// One Xid, from the driver's tracepoint.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XidEvent {
    pub at: u64,
    pub code: u32,
    pub pad: u32,
    pub device: [u8; 24],
    pub message: [u8; XID_TEXT],
}

impl XidEvent {
    /// Reads an event; `None` when `bytes` is too short.
    pub fn parse(bytes: &[u8]) -> Option<XidEvent> {
        if bytes.len() < size_of::<XidEvent>() {
            return None;
        }
        let mut event = XidEvent {
            at: u64_at(bytes, 0),
            code: u32_at(bytes, 8),
            pad: 0,
            device: [0; 24],
            message: [0; XID_TEXT],
        };
        event.device.copy_from_slice(&bytes[16..40]);
        event.message.copy_from_slice(&bytes[40..40 + XID_TEXT]);
        Some(event)
    }
}
