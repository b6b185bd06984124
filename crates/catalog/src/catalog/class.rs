//! What calls do, and the groups that they are filtered by.

macro_rules! classes {
    ($($variant:ident $name:literal $category:literal $doc:literal),+ $(,)?) => {
        /// What a call does.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Class { $(#[doc = $doc] $variant),+ }

        impl Class {
            /// Every class, in table order.
            pub const ALL: &'static [Class] = &[$(Class::$variant),+];

            /// The name used in tables and on the command line.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Class::$variant => $name),+ }
            }

            /// The group that it is filtered and coloured by.
            #[must_use]
            pub fn category(self) -> &'static str {
                match self { $(Class::$variant => $category),+ }
            }

            /// The class of that name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Class> {
                Class::ALL.iter().copied().find(|class| class.name() == name)
            }
        }
    };
}

classes! {
    Alloc "alloc" "memory" "Returns new memory.",
    Free "free" "memory" "Gives memory back.",
    Memory "memory" "memory" "Maps, registers, shares or advises memory.",
    Copy "copy" "copy" "Copies data.",
    Memset "memset" "memory" "Fills memory.",
    Prefetch "prefetch" "memory" "Moves managed memory ahead of use.",
    Launch "launch" "launch" "Starts kernels or graphs.",
    Sync "sync" "sync" "Waits for the device.",
    Stream "stream" "stream" "Makes streams or queues work other than kernels and copies.",
    Event "event" "event" "Makes or records events.",
    Graph "graph" "graph" "Builds or changes graphs; captures.",
    Module "module" "module" "Loads code or finds functions in it.",
    Context "context" "context" "Sets devices and contexts up.",
    Query "query" "query" "Reads state without changing it.",
    Error "error" "error" "Reads the last error or names one.",
    Ioctl "ioctl" "other" "Asks NVIDIA's kernel driver.",
    Other "other" "other" "Anything else.",
}

/// Frequent calls that can be left unseen for a while: who holds memory, which code is loaded and what a context is for is known
/// without them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Traffic {
    /// What is put into streams, and waits for it: of these all are seen, or none means anything.
    Work,
    /// Questions.
    Queries,
}

impl Traffic {
    /// Both.
    pub const ALL: [Traffic; 2] = [Traffic::Work, Traffic::Queries];

    /// As labels have it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Traffic::Work => "work",
            Traffic::Queries => "queries",
        }
    }
}

impl Class {
    /// Of what traffic such calls are, unless they do something to memory; `None`: they are always seen.
    #[must_use]
    pub fn traffic(self) -> Option<Traffic> {
        match self {
            Class::Launch | Class::Copy | Class::Memset | Class::Prefetch | Class::Sync | Class::Event => {
                Some(Traffic::Work)
            }
            Class::Query => Some(Traffic::Queries),
            Class::Alloc
            | Class::Free
            | Class::Memory
            | Class::Stream
            | Class::Graph
            | Class::Module
            | Class::Context
            | Class::Error
            | Class::Ioctl
            | Class::Other => None,
        }
    }
}
