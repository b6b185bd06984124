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
