//! Words of tables and outputs, as the variants of an enum.

macro_rules! named {
    ($(#[$doc:meta])* $type:ident { $($(#[$variant_doc:meta])* $variant:ident $name:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $type { $($(#[$variant_doc])* $variant),+ }

        impl $type {
            /// All, in order.
            pub const ALL: &'static [$type] = &[$($type::$variant),+];

            /// The name in tables and outputs.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $($type::$variant => $name),+ }
            }

            /// The one of that name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<$type> {
                $type::ALL.iter().copied().find(|one| one.name() == name)
            }
        }
    };
}

pub(super) use named;
