//! What a call means for memory: which of its arguments names what, in the words of a row's `memory`.
//!
//! Owns the vocabulary. What follows from it (balances, leaks) is `model::memory`'s business.

use super::Catalog;
use super::arg::Arg;
use super::hint::unknown;
use super::named::named;
use super::path::{Place, place};

named! {
    /// Kinds of memory that are accounted for apart.
    Family {
        /// cuMemAlloc and its like.
        Device "device",
        /// Moves between host and device.
        Managed "managed",
        /// Ordered in a stream, out of a pool.
        Async "async",
        /// Physical memory of the virtual-memory API.
        Physical "physical",
        /// cuArrayCreate.
        Array "array",
        /// cuMipmappedArrayCreate.
        Mipmapped "mipmapped",
        /// Owned by a graph.
        Graph "graph",
        /// Host memory that the driver allocated and pinned.
        Pinned "pinned",
        /// The program's own host memory, pinned.
        Registered "registered",
        /// Addresses without memory.
        Reserved "reserved",
        /// Physical memory seen at reserved addresses.
        Mapped "mapped",
        /// Another process's allocation.
        Ipc "ipc",
        /// Another API's memory.
        External "external",
        /// A window on such memory.
        View "view",
        /// Physical memory of another process.
        Imported "imported",
        /// An object that several devices write to; its memory is bound to it and counted there.
        Multicast "multicast",
        /// What a framework hands out of memory that it has allocated before.
        Tensor "tensor",
    }
}

/// Where the bytes of a family lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Holder {
    /// On a device: part of what the process holds there.
    Device,
    /// In host memory that cannot be paged out.
    Host,
    /// Addresses, or memory that somebody else holds: shown apart.
    Nobody,
}

impl Family {
    /// Where its bytes lie.
    #[must_use]
    pub fn holder(self) -> Holder {
        match self {
            Family::Device
            | Family::Managed
            | Family::Async
            | Family::Physical
            | Family::Array
            | Family::Mipmapped
            | Family::Graph => Holder::Device,
            Family::Pinned | Family::Registered => Holder::Host,
            _ => Holder::Nobody,
        }
    }

    /// Families that one function frees alike share a name space of keys, which this family stands for.
    #[must_use]
    pub fn space(self) -> Family {
        match self {
            Family::Managed | Family::Async | Family::Graph | Family::View => Family::Device,
            Family::Imported | Family::Multicast => Family::Physical,
            other => other,
        }
    }
}

named! {
    /// What a call does to memory, or to something that owns memory.
    Verb {
        /// New memory.
        Alloc "alloc",
        /// Gives memory back.
        Free "free",
        /// Physical memory appears at addresses.
        Map "map",
        /// And disappears from them.
        Unmap "unmap",
        /// Another handle of physical memory.
        Retain "retain",
        /// A pool of the program's own.
        PoolCreate "pool_create",
        /// Its end.
        PoolDestroy "pool_destroy",
        /// The program reads a number of a pool.
        PoolRead "pool_read",
        /// A new context, current from now on.
        ContextCreate "context_create",
        /// Its end, and that of its memory.
        ContextDestroy "context_destroy",
        /// Another context is the thread's current one.
        ContextSet "context_set",
        /// The same, to be undone by a pop.
        ContextPush "context_push",
        /// Undoes a push.
        ContextPop "context_pop",
        /// Names a device's primary context, and keeps it.
        PrimaryRetain "primary_retain",
        /// Undoes a retain; the last one ends the context.
        PrimaryRelease "primary_release",
        /// Ends a device's primary context at once.
        PrimaryReset "primary_reset",
        /// The same for the current device.
        DeviceReset "device_reset",
        /// The program learns which device an ordinal stands for.
        DeviceUuid "device_uuid",
        /// A stream of the current context.
        StreamCreate "stream_create",
        /// From now on the stream's calls become a graph.
        CaptureBegin "capture_begin",
        /// And now no longer.
        CaptureEnd "capture_end",
        /// A new graph.
        GraphCreate "graph_create",
        /// A graph will allocate when it runs.
        GraphAlloc "graph_alloc",
        /// A graph will free when it runs.
        GraphFree "graph_free",
        /// A graph becomes runnable.
        GraphInstantiate "graph_instantiate",
        /// It runs: now its memory exists.
        GraphLaunch "graph_launch",
        /// The end of a graph.
        GraphDestroy "graph_destroy",
        /// The end of a runnable graph.
        ExecDestroy "exec_destroy",
    }
}

impl Verb {
    /// Whether the call only changes which context is its thread's current one.
    #[must_use]
    pub(crate) fn moves_context(self) -> bool {
        matches!(self, Verb::ContextSet | Verb::ContextPush | Verb::ContextPop)
    }

    fn has_family(self) -> bool {
        matches!(self, Verb::Alloc | Verb::Free)
    }
}

named! {
    /// What an argument is to a memory call.
    Part {
        /// Address or handle that names the memory, or the object that the verb is about.
        Key "key",
        /// Bytes; where a row lacks it, its `bytes` count.
        Size "size",
        /// Device ordinal.
        Device "device",
        /// Kind of place: 1 is a device.
        Location "location",
        /// Stream of the call.
        Stream "stream",
        /// Pool to take from.
        Pool "pool",
        /// Physical memory.
        Handle "handle",
        /// Where it is mapped.
        Address "address",
        /// In elements, as the next two; 0 in these stands for 1.
        Width "width",
        /// See `Width`.
        Height "height",
        /// See `Width`.
        Depth "depth",
        /// A `CUarray_format`: the size of a channel.
        Format "format",
        /// Channels of an element.
        Channels "channels",
        /// Bits of the first channel.
        X "x",
        /// Of the second.
        Y "y",
        /// Of the third.
        Z "z",
        /// Of the fourth.
        W "w",
        /// Levels of a mipmapped array.
        Levels "levels",
        /// The graph that owns it.
        Graph "graph",
        /// Which number of a pool.
        Attribute "attribute",
        /// That number.
        Value "value",
        /// A `CUgraphNodeType`.
        Type "type",
        /// First half of a UUID.
        Low "low",
        /// Second half.
        High "high",
    }
}

/// A row's `memory`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effect {
    /// What happens.
    pub verb: Verb,
    /// What is allocated or, by its space, freed; [`Family::Device`] where the verb needs none.
    pub family: Family,
    /// Which argument is what.
    pub parts: Vec<(Part, Place)>,
}

/// Reads `alloc device key=dptr size=bytesize`.
///
/// # Errors
/// Says what was found and what was expected.
pub(super) fn parse(text: &str, args: &[Arg], catalog: &Catalog) -> Result<Effect, String> {
    let mut words = text.split_whitespace();
    let name = words.next().unwrap_or_default();
    let verb =
        Verb::from_name(name).ok_or_else(|| unknown("memory verb", name, Verb::ALL.iter().map(|verb| verb.name())))?;
    let family = if verb.has_family() {
        let name = words.next().unwrap_or_default();
        let names = Family::ALL.iter().map(|family| family.name());
        Family::from_name(name).ok_or_else(|| unknown("memory family", name, names))?
    } else {
        Family::Device
    };
    let parts = words
        .map(|word| part(word, args, catalog))
        .collect::<Result<Vec<_>, _>>()?;
    if verb.has_family() && !parts.iter().any(|(part, _)| *part == Part::Key) {
        return Err(format!("`{text}` needs key=ARGUMENT"));
    }
    Ok(Effect { verb, family, parts })
}

fn part(word: &str, args: &[Arg], catalog: &Catalog) -> Result<(Part, Place), String> {
    let (name, path) = word
        .split_once('=')
        .ok_or_else(|| format!("`{word}` is not of the form `key=ARGUMENT`"))?;
    let names = Part::ALL.iter().map(|part| part.name());
    let part = Part::from_name(name).ok_or_else(|| unknown("part", name, names))?;
    Ok((part, place(path, args, catalog)?))
}
