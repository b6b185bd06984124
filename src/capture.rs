//! From a row of the catalogue to what the kernel copies for it, and where each argument then lies.
//!
//! Owns the one mapping that both sides follow: the kernel program gets [`Plan::spec`], [`crate::decode`]
//! follows [`Plan::fields`]. Pure.

use crate::catalog::{
    Arg, Catalog, Class, CopyKind, Direction, Effect, Factor, Kind, Launch, Layer, Loc, Pass, Place, Returns, Role,
    Row, Step, StructId, Verb, Work, WorkPart,
};
use crate::wire;

mod hook;

/// Where decode finds one argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Show {
    /// The value itself, `bytes` of word `word`.
    Word { word: u8, bytes: u8 },
    /// A structure or dim3 by value, from word `word` on.
    Words { word: u8 },
    /// What pointer `pointer` pointed to: value `value`.
    Pointee { pointer: u8, value: u8, bytes: u8 },
    /// The C string at pointer `pointer`.
    Text { pointer: u8, text: u8 },
    /// The structure at pointer `pointer`, copied from its start.
    Block { pointer: u8 },
    /// In a vector register, or beyond what is captured.
    Unreadable,
}

/// One argument of a row, ready to be read from an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    pub name: String,
    pub kind: Kind,
    pub show: Show,
    /// Meaningless when the call failed.
    pub out: bool,
}

/// What is captured of one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    pub spec: wire::Spec,
    pub fields: Vec<Field>,
}

/// How a row is used in this run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Use {
    /// Send an event for each call.
    pub stream: bool,
    /// Put a probe at its return.
    pub returns: bool,
    /// Follow what it does to memory.
    pub memory: bool,
    /// And from where it is called, if it allocates.
    pub stacks: bool,
    /// Tell launches apart by kernel.
    pub kernels: bool,
    /// Follow what is put into streams.
    pub work: bool,
    /// And from where: of launches, of what waits.
    pub launch_stacks: bool,
    pub sync_stacks: bool,
}

impl Use {
    /// For nothing but counts and lines.
    pub fn counting(stream: bool, returns: bool) -> Use {
        Use {
            stream,
            returns,
            memory: false,
            stacks: false,
            kernels: false,
            work: false,
            launch_stacks: false,
            sync_stacks: false,
        }
    }
}

/// Plans the capture of `row`.
pub fn plan(catalog: &Catalog, row: &Row, used: Use) -> Plan {
    let mut planner = Planner {
        catalog,
        spec: wire::Spec::EMPTY,
        used,
    };
    planner.spec.flags = flags(catalog, row, used);
    planner.spec.ground = ground(row);
    planner.spec.ok = row.ok.first().copied().unwrap_or(0);
    planner.size(row);
    planner.direction(row);
    if let Some(effect) = row.memory.as_ref().filter(|_| used.memory) {
        planner.memory(row, effect);
    }
    if let Some(launch) = row.launch.as_ref().filter(|_| used.kernels) {
        planner.launch(row, launch);
    }
    if let Some(work) = row.work.as_ref().filter(|_| used.work && used.returns) {
        planner.work(row, work);
    }
    hook::plan(&mut planner, row);
    let fields = if row.raw {
        raw_fields()
    } else {
        row.args.iter().map(|arg| planner.field(arg)).collect()
    };
    planner.settle();
    Plan {
        spec: planner.spec,
        fields,
    }
}

/// The direction that the kernel's `variant` number of a call stands for; `None`: not a copy, or by address.
pub fn direction(row: &Row, variant: u64) -> Option<CopyKind> {
    let words = variant.checked_sub(1);
    match row.direction? {
        Direction::Constant(kind) => Some(kind),
        Direction::MemcpyKind(_) => match words? & 15 {
            0 => Some(CopyKind::HtoH),
            1 => Some(CopyKind::HtoD),
            2 => Some(CopyKind::DtoH),
            3 => Some(CopyKind::DtoD),
            _ => None,
        },
        Direction::MemoryTypes { .. } => match (words? & 15, words? >> 4) {
            (1, 1) => Some(CopyKind::HtoH),
            (1, 2 | 3) => Some(CopyKind::HtoD),
            (2 | 3, 1) => Some(CopyKind::DtoH),
            (2 | 3, 2 | 3) => Some(CopyKind::DtoD),
            _ => None,
        },
    }
}

fn flags(catalog: &Catalog, row: &Row, used: Use) -> u8 {
    let typed = catalog
        .library_with(row.library)
        .is_some_and(|library| library.errors.is_some());
    let fallible = typed && used.returns && row.returns == Returns::Error && row.class != Class::Error;
    u8::from(used.stream) * wire::SPEC_STREAM
        + u8::from(used.returns) * wire::SPEC_RETURN
        + u8::from(fallible) * wire::SPEC_FALLIBLE
        + u8::from(row.unloads && used.kernels) * wire::SPEC_UNLOAD
}

fn ground(row: &Row) -> u32 {
    let any_task = row.in_kernel.as_ref().is_some_and(|row| row.any_task);
    u32::from(row.site.is_in_kernel()) * wire::GROUND_KERNEL + u32::from(any_task) * wire::GROUND_ANY_TASK
}

fn raw_fields() -> Vec<Field> {
    (0..wire::REGS as u8)
        .map(|word| Field {
            name: format!("arg{word}"),
            kind: Kind::Ptr,
            show: Show::Word { word, bytes: 8 },
            out: false,
        })
        .collect()
}

struct Planner<'a> {
    catalog: &'a Catalog,
    spec: wire::Spec,
    used: Use,
}

impl Planner<'_> {
    fn field(&mut self, arg: &Arg) -> Field {
        let show = self.show(arg).unwrap_or(Show::Unreadable);
        let address_only = arg.pass != Pass::Value && matches!(show, Show::Word { .. });
        Field {
            name: arg.name.clone(),
            kind: if address_only { Kind::Ptr } else { arg.kind },
            show,
            out: arg.is_out(),
        }
    }

    fn show(&mut self, arg: &Arg) -> Option<Show> {
        let (word, bytes) = self.word(arg.loc)?;
        if arg.pass == Pass::Value {
            return Some(match arg.kind {
                Kind::CStr => self.text(word).unwrap_or(Show::Word { word, bytes }),
                Kind::Text if self.used.returns => self.text(word).unwrap_or(Show::Word { word, bytes }),
                Kind::Dim3 | Kind::Struct(_) | Kind::Bytes(_) | Kind::Chars(_) => Show::Words { word },
                _ => Show::Word { word, bytes },
            });
        }
        Some(self.pointee(arg, word).unwrap_or(Show::Word { word, bytes: 8 }))
    }

    /// What to read behind a pointer; `None`: only the address is shown.
    fn pointee(&mut self, arg: &Arg, word: u8) -> Option<Show> {
        if arg.is_out() && !self.used.returns {
            return None;
        }
        match arg.kind {
            Kind::Struct(id) => self.block(word, id),
            Kind::Text => self.text(word),
            Kind::CStr | Kind::Bytes(_) | Kind::Chars(_) | Kind::Dim3 | Kind::F64 => None,
            // an input pointer to a scalar is most often an array: its first element says little
            _ if !arg.is_out() => None,
            kind => {
                let bytes = kind_bytes(kind)?;
                let value = self.value(word, 0, bytes)?;
                Some(Show::Pointee {
                    pointer: word,
                    value,
                    bytes,
                })
            }
        }
    }

    fn block(&mut self, word: u8, id: StructId) -> Option<Show> {
        if self.spec.block_qwords != 0 {
            return None;
        }
        let size = usize::from(self.catalog.layout(id, None)?.size);
        let qwords = size.div_ceil(8).min(wire::BLOCK);
        // a last partial word might lie on the next page: keep to whole ones, at least one
        let whole = if size % 8 == 0 || size > wire::BLOCK * 8 {
            qwords
        } else {
            (size / 8).max(1)
        };
        if size < 8 {
            return None;
        }
        self.spec.block_word = word;
        self.spec.block_qwords = whole.min(wire::BLOCK) as u8;
        Some(Show::Block { pointer: word })
    }

    fn text(&mut self, word: u8) -> Option<Show> {
        let text = self.spec.texts;
        *self.spec.text_word.get_mut(usize::from(text))? = word;
        self.spec.texts += 1;
        Some(Show::Text { pointer: word, text })
    }

    /// The index of the value read at `offset` behind `word`, shared with an equal earlier read.
    fn value(&mut self, word: u8, offset: u16, bytes: u8) -> Option<u8> {
        let read = wire::Read { word, bytes, offset };
        let used = usize::from(self.spec.values);
        if self.spec.hook.flags & wire::HOOK_SITE != 0 && used + 1 >= wire::VALUES {
            return None; // the last is the stack's
        }
        if let Some(index) = self.spec.value[..used].iter().position(|known| *known == read) {
            return Some(index as u8);
        }
        *self.spec.value.get_mut(used)? = read;
        self.spec.values += 1;
        Some(used as u8)
    }

    /// The first captured word of an argument and the bytes of it that are defined.
    fn word(&mut self, loc: Loc) -> Option<(u8, u8)> {
        match loc {
            Loc::Reg { index, bytes } => Some((index, bytes)),
            Loc::Regs { first, .. } => Some((first, 8)),
            Loc::Float { .. } => None,
            Loc::Stack { offset, bytes } => {
                let first = usize::from(offset / 8).checked_sub(1)?;
                let last = first + usize::from(bytes).div_ceil(8);
                if last > wire::STACK {
                    return None;
                }
                self.spec.stack_words = self.spec.stack_words.max(last as u8);
                Some((wire::WORD_STACK + first as u8, bytes.min(8) as u8))
            }
        }
    }

    fn size(&mut self, row: &Row) {
        let Some(factors) = &row.bytes else { return };
        let mut spec = (1u64, Vec::new());
        for factor in factors {
            match *factor {
                Factor::Constant(value) => spec.0 *= value,
                Factor::Path { arg, field } => match self.number(row, Place { arg, field }) {
                    Some(word) => spec.1.push(word),
                    None => return,
                },
            }
        }
        if spec.1.len() > wire::FACTORS {
            return;
        }
        self.spec.scale = spec.0;
        self.spec.factors = spec.1.len() as u8;
        self.spec.factor[..spec.1.len()].copy_from_slice(&spec.1);
    }

    fn direction(&mut self, row: &Row) {
        let places = match row.direction {
            Some(Direction::MemcpyKind(place)) => [Some(place), None],
            Some(Direction::MemoryTypes { from, to }) => [Some(from), Some(to)],
            _ => return,
        };
        let mut variant = [wire::Factor::NONE; 2];
        for (slot, place) in variant.iter_mut().zip(places) {
            if let Some(place) = place {
                let Some(word) = self.number(row, place) else { return };
                *slot = word;
            }
        }
        self.spec.variant = variant;
    }

    /// The captured word that holds a number of the call.
    fn number(&mut self, row: &Row, place: Place) -> Option<wire::Factor> {
        let arg = row.args.get(place.arg)?;
        if arg.is_out() && !self.used.returns {
            return None;
        }
        let (word, bytes) = self.word(arg.loc)?;
        match (arg.pass, place.field) {
            (Pass::Value, None) => Some(wire::Factor { word, bytes }),
            (Pass::Value, Some((offset, bytes))) if offset % 8 == 0 => Some(wire::Factor {
                word: word + (offset / 8) as u8,
                bytes,
            }),
            (Pass::Value, Some(_)) => None,
            (_, field) => {
                let (offset, bytes) = field.or_else(|| Some((0, kind_bytes(arg.kind)?)))?;
                let value = self.value(word, offset, bytes)?;
                Some(wire::Factor {
                    word: wire::WORD_VALUES + value,
                    bytes,
                })
            }
        }
    }

    /// By which words launches are told apart.
    fn launch(&mut self, row: &Row, launch: &Launch) {
        let Some(kernel) = self.number(row, launch.kernel) else {
            return;
        };
        let Some((role, name)) = self.kernel_role(row, launch.role) else {
            return;
        };
        let mut spec = wire::Launch {
            kernel,
            role,
            name,
            ..wire::Launch::NONE
        };
        match launch.shape.map(|shape| (self.shape_block(row, shape), shape)) {
            None => {}
            Some((Some((word, offset)), _)) => (spec.shape_block, spec.shape_offset) = (word, offset),
            Some((None, shape)) => {
                let Some(first) = self.shape_words(row, shape) else {
                    return;
                };
                spec.shape_word = first;
            }
        }
        if let Some(work) = &row.work {
            self.stream(row, work, &mut spec);
        }
        self.spec.launch = spec;
        if launch.role == Role::Launch {
            self.spec.flags |= wire::SPEC_KERNEL;
        }
    }

    /// What a row does with kernels, and what names them; `None`: that is known at its return only, which is not seen.
    fn kernel_role(&mut self, row: &Row, role: Role) -> Option<(u8, wire::Factor)> {
        let at_return = |role| self.used.returns.then_some(role);
        match role {
            Role::Launch => Some((wire::ROLE_LAUNCH, wire::Factor::NONE)),
            Role::Stub => Some((at_return(wire::ROLE_STUB)?, wire::Factor::NONE)),
            Role::Name(name) => Some((at_return(wire::ROLE_NAME)?, self.number(row, name)?)),
            Role::Same(other) => Some((at_return(wire::ROLE_SAME)?, self.number(row, other)?)),
        }
    }

    /// A stream beside the shape is read with it.
    fn stream(&mut self, row: &Row, work: &Work, spec: &mut wire::Launch) {
        const BEHIND: u16 = 4 * wire::SHAPE as u16 + 4;
        spec.null_stream = u8::from(work.per_thread) * wire::PER_THREAD as u8;
        let Some(place) = work.stream else { return };
        let arg = row.args.get(place.arg);
        let pointer = arg
            .filter(|arg| arg.pass != Pass::Value)
            .and_then(|arg| self.word(arg.loc));
        let beside = pointer.is_some_and(|(word, _)| word == spec.shape_block);
        if beside && place.field == Some((spec.shape_offset + BEHIND, 8)) {
            spec.stream_in_block = 1;
        } else if arg.is_some_and(|arg| arg.pass == Pass::Value) {
            spec.stream = self.number(row, place).unwrap_or(wire::Factor::NONE);
        }
    }

    /// The numbers of a shape as one piece behind one pointer: the pointer's word, and where they begin.
    fn shape_block(&mut self, row: &Row, shape: [Place; wire::SHAPE]) -> Option<(u8, u16)> {
        let (first, (start, _)) = (shape[0].arg, shape[0].field?);
        let arg = row.args.get(first).filter(|arg| arg.pass != Pass::Value)?;
        let follows = |(index, place): (usize, &Place)| {
            *place
                == Place {
                    arg: first,
                    field: Some((start + 4 * index as u16, 4)),
                }
        };
        shape.iter().enumerate().all(follows).then_some(())?;
        Some((self.word(arg.loc)?.0, start))
    }

    /// The first word of a shape whose numbers are arguments that follow each other.
    fn shape_words(&mut self, row: &Row, shape: [Place; wire::SHAPE]) -> Option<u8> {
        let words = shape.map(|place| self.number(row, place).filter(|factor| factor.bytes == 4));
        let first = words[0]?.word;
        let follows = |(index, word): (usize, &Option<wire::Factor>)| {
            word.is_some_and(|word| usize::from(word.word) == usize::from(first) + index)
        };
        words.iter().enumerate().all(follows).then_some(first)
    }

    /// What the memory ring is told; all of it or nothing.
    fn memory(&mut self, row: &Row, effect: &Effect) {
        let words: Option<Vec<wire::Factor>> = effect.parts.iter().map(|(_, place)| self.number(row, *place)).collect();
        let Some(words) = words.filter(|words| words.len() <= wire::PARTS) else {
            return;
        };
        self.spec.part[..words.len()].copy_from_slice(&words);
        self.spec.parts = words.len() as u8;
        self.spec.context_move = match effect.verb {
            Verb::ContextSet => wire::CONTEXT_SET,
            Verb::ContextPush | Verb::ContextCreate => wire::CONTEXT_PUSH,
            Verb::ContextPop => wire::CONTEXT_POP,
            Verb::ContextDestroy => wire::CONTEXT_DROP,
            _ => wire::CONTEXT_STAYS,
        };
        self.spec.flags |= self.memory_flags(row, effect.verb);
    }

    fn memory_flags(&self, row: &Row, verb: Verb) -> u8 {
        let layer = self.catalog.library_with(row.library).map(|library| library.layer);
        let allocates = self.used.stacks && matches!(verb, Verb::Alloc | Verb::GraphAlloc);
        u8::from(!verb.moves_context()) * wire::SPEC_MEMORY
            + u8::from(allocates) * wire::SPEC_SITE
            + u8::from(layer == Some(Layer::Runtime)) * wire::SPEC_OUTER
    }

    /// What the ring of work is told.
    fn work(&mut self, row: &Row, work: &Work) {
        let parts: Option<Vec<wire::Read>> = work.parts.iter().map(|(_, place)| self.read(row, *place)).collect();
        let Some(parts) = parts.filter(|parts| parts.len() <= wire::WORK) else {
            return;
        };
        let Some(stream) = self.work_stream(row, work) else {
            return;
        };
        let mut spec = wire::Work {
            step: work_step(work.step),
            flags: self.work_flags(work),
            parts: parts.len() as u8,
            stride: self.stride(row, work),
            stream,
            ..wire::Work::NONE
        };
        spec.part[..parts.len()].copy_from_slice(&parts);
        self.spec.work = spec;
    }

    /// Where the stream of a call lies; a launch whose shape is read in one piece has read it already.
    fn work_stream(&mut self, row: &Row, work: &Work) -> Option<wire::Read> {
        match work.stream {
            None => Some(wire::Read::NONE),
            Some(_) if self.spec.launch.stream_in_block == 1 => Some(wire::Read {
                word: wire::WORD_STREAM,
                bytes: 8,
                offset: wire::READ_DIRECT,
            }),
            Some(place) => self.read(row, place),
        }
    }

    /// Bytes of an element of the arrays that describe a batch.
    fn stride(&self, row: &Row, work: &Work) -> u8 {
        let first = work.parts.first().filter(|_| work.step == Step::CopyBatch);
        let kind = first.and_then(|(_, place)| row.args.get(place.arg)).map(|arg| arg.kind);
        kind.and_then(|kind| kind.bytes(self.catalog))
            .map_or(0, |bytes| bytes as u8)
    }

    /// Where a number lies, to be read when the call has returned.
    fn read(&mut self, row: &Row, place: Place) -> Option<wire::Read> {
        let arg = row.args.get(place.arg)?;
        let (word, bytes) = self.word(arg.loc)?;
        if arg.pass == Pass::Value && place.field.is_none() {
            let offset = wire::READ_DIRECT;
            return Some(wire::Read { word, bytes, offset });
        }
        let (offset, bytes) = place.field.or_else(|| Some((0, kind_bytes(arg.kind)?)))?;
        (arg.pass != Pass::Value).then_some(wire::Read { word, bytes, offset })
    }

    fn work_flags(&self, work: &Work) -> u8 {
        let blocks = work.step == Step::Copy && work.stream.is_none();
        let waits = blocks || matches!(work.step, Step::Sync | Step::Elapsed);
        let anchors = blocks || matches!(work.step, Step::Sync | Step::Query | Step::Record);
        let each = matches!(work.step, Step::GraphLaunch | Step::SubmitAnywhere)
            || work.step.submits() && self.used.launch_stacks;
        // a copy that is called asynchronous may wait, too
        let sites = (waits || work.step == Step::Copy) && self.used.sync_stacks
            || work.step.submits() && self.used.launch_stacks;
        let last = work.parts.last().map(|(part, _)| *part);
        let names_kernel = self.used.kernels && last == Some(WorkPart::Function);
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        flag(anchors, wire::WORK_ANCHOR)
            | flag(work.per_thread, wire::WORK_PER_THREAD)
            | flag(work.step == Step::CaptureBegin, wire::WORK_BEGINS_CAPTURE)
            | flag(work.step == Step::CaptureEnd, wire::WORK_ENDS_CAPTURE)
            | flag(each, wire::WORK_EACH)
            | flag(sites, wire::WORK_SITE)
            | flag(work.step == Step::StreamDestroy, wire::WORK_ENDS_LANE)
            | flag(names_kernel, wire::WORK_KERNEL)
    }

    fn settle(&mut self) {
        let spec = &mut self.spec;
        spec.size = if spec.block_qwords > 0 || spec.texts > 0 {
            wire::SIZE_LARGE
        } else if spec.stack_words > 0 || spec.values > 2 || spec.hook.flags & wire::HOOK_SITE != 0 {
            wire::SIZE_MEDIUM
        } else {
            wire::SIZE_SMALL
        };
    }
}

fn work_step(step: Step) -> u8 {
    match step {
        Step::Copy => wire::WORK_COPY,
        Step::CopyBatch => wire::WORK_BATCH,
        step if step.submits() => wire::WORK_SUBMIT,
        _ => wire::WORK_TELL,
    }
}

/// Bytes of a scalar kind; `None` for what is no scalar.
pub fn kind_bytes(kind: Kind) -> Option<u8> {
    match kind {
        Kind::U8 | Kind::I8 | Kind::Bool => Some(1),
        Kind::U16 | Kind::I16 => Some(2),
        Kind::U32 | Kind::I32 | Kind::Enum(_) | Kind::F32 => Some(4),
        Kind::U64 | Kind::I64 | Kind::Size | Kind::DevPtr | Kind::Ptr | Kind::Handle | Kind::Fn | Kind::F64 => Some(8),
        Kind::CStr | Kind::Text => Some(8),
        Kind::Dim3 | Kind::Struct(_) | Kind::Bytes(_) | Kind::Chars(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(symbol: &str, library: &str) -> Plan {
        let catalog = Catalog::builtin().unwrap();
        let library = catalog.library(library).unwrap();
        let id = catalog.find(library, symbol, None).unwrap();
        plan(
            &catalog,
            catalog.row(id).unwrap(),
            Use {
                stream: true,
                returns: true,
                memory: true,
                stacks: true,
                kernels: true,
                work: true,
                launch_stacks: false,
                sync_stacks: false,
            },
        )
    }

    #[test]
    fn launches_are_told_apart_by_handle_and_shape() {
        let plain = planned("cuLaunchKernel", "driver").spec;
        assert_eq!(plain.flags & wire::SPEC_KERNEL, wire::SPEC_KERNEL);
        assert_eq!(plain.launch.kernel, wire::Factor { word: 0, bytes: 8 });
        assert_eq!(plain.launch.shape_word, 1);
        let behind = planned("cuLaunchKernelEx", "driver").spec;
        assert_eq!(behind.launch.kernel, wire::Factor { word: 1, bytes: 8 });
        assert_eq!((behind.launch.shape_block, behind.launch.shape_offset), (0, 0));
        let stream = (behind.work.stream.word, behind.work.stream.offset);
        assert_eq!(stream, (wire::WORD_STREAM, wire::READ_DIRECT));
        assert_eq!(plain.work.stream.word, 8);
        assert_eq!((plain.launch.stream.word, plain.launch.stream_in_block), (8, 0));
        assert_eq!(
            (behind.launch.stream.word, behind.launch.stream_in_block),
            (wire::WORD_NONE, 1)
        );
        assert_eq!(planned("cuLaunchKernel_ptsz", "driver").spec.launch.null_stream, 2);
        let legacy = planned("cuLaunchGrid", "driver").spec;
        assert_eq!(
            (legacy.launch.shape_block, legacy.launch.shape_word),
            (wire::WORD_NONE, wire::WORD_NONE)
        );
        assert_eq!(
            planned("cuModuleUnload", "driver").spec.flags & wire::SPEC_UNLOAD,
            wire::SPEC_UNLOAD
        );
        assert_eq!(planned("cudaLaunchKernel", "runtime").spec.flags & wire::SPEC_KERNEL, 0);
    }

    #[test]
    fn a_launch_with_eleven_arguments_takes_its_last_five_from_the_stack() {
        let plan = planned("cuLaunchKernel", "driver");
        assert_eq!(plan.spec.stack_words, 5);
        assert_eq!(plan.fields[6].show, Show::Word { word: 6, bytes: 4 });
        assert_eq!(plan.fields[10].show, Show::Word { word: 10, bytes: 8 });
    }

    #[test]
    fn a_pointer_that_is_not_followed_is_an_address_whatever_it_points_to() {
        let plan = planned("cuLibraryLoadData", "driver");
        let options = plan.fields.iter().find(|field| field.name == "jitOptions").unwrap();
        assert_eq!(
            (options.kind, options.show),
            (Kind::Ptr, Show::Word { word: 2, bytes: 8 })
        );
    }

    #[test]
    fn the_size_of_a_3d_copy_is_read_from_the_structure_behind_its_argument() {
        let plan = planned("cudaMemcpy3D", "runtime");
        assert_eq!(plan.spec.factors, 3);
        assert_eq!(
            plan.spec.value[0],
            wire::Read {
                word: 0,
                bytes: 8,
                offset: 128
            }
        );
        assert_eq!(plan.spec.size, wire::SIZE_LARGE);
    }

    #[test]
    fn every_row_fits_the_capture_limits() {
        let catalog = Catalog::builtin().unwrap();
        for row in &catalog.rows {
            let plan = plan(
                &catalog,
                row,
                Use {
                    stream: true,
                    returns: !row.raw,
                    memory: true,
                    stacks: true,
                    kernels: true,
                    work: true,
                    launch_stacks: false,
                    sync_stacks: false,
                },
            );
            assert!(usize::from(plan.spec.stack_words) <= wire::STACK, "{}", row.symbol);
            let unreadable = plan
                .fields
                .iter()
                .filter(|field| field.show == Show::Unreadable)
                .count();
            let floats = row
                .args
                .iter()
                .filter(|arg| matches!(arg.loc, Loc::Float { .. }))
                .count();
            let known = row.symbol.starts_with("cudaEGLStreamProducerPresentFrame");
            assert!(
                unreadable == floats || known,
                "{}: {unreadable} unreadable arguments",
                row.symbol
            );
            if let Some(launch) = &row.launch {
                assert_ne!(plan.spec.launch.role, wire::ROLE_NONE, "{}", row.symbol);
                let counts = launch.role == Role::Launch;
                assert_eq!(plan.spec.flags & wire::SPEC_KERNEL != 0, counts, "{}", row.symbol);
                assert!(
                    plan.spec.values <= 1 || !launch.launches(),
                    "{}: value 1 is the kernel's",
                    row.symbol
                );
            }
            let parts = row.memory.as_ref().map_or(0, |effect| effect.parts.len());
            assert_eq!(usize::from(plan.spec.parts), parts, "{}", row.symbol);
            assert_eq!(
                row.bytes.is_some(),
                plan.spec.scale != 0,
                "{}: its size is not computed",
                row.symbol
            );
        }
    }
}
