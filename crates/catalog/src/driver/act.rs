//! What a call does to the driver's objects, as far as it says; whether it succeeded is told elsewhere.

use super::layout::Role;
use super::tables::{self, ClassKind};
use super::value::Value;

/// A change of the driver's objects. Handles are of a client, clients are of the whole machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// Changes no object that is kept account of, or does not say which.
    Nothing,
    Create {
        /// For a client: itself.
        client: u32,
        parent: u32,
        object: u32,
        class: u32,
        kind: ClassKind,
        /// Bytes as the driver took them; `None` when they could not be read or the class has none.
        bytes: Option<u64>,
    },
    Duplicate {
        client: u32,
        parent: u32,
        object: u32,
        from_client: u32,
        from: u32,
    },
    /// Of an object with all below it; of a client when `object` is the client itself.
    Free {
        client: u32,
        object: u32,
    },
    /// The right to mmap a piece of an object's memory.
    MapCpu {
        client: u32,
        object: u32,
        bytes: u64,
    },
    UnmapCpu {
        client: u32,
        object: u32,
    },
    /// Addresses on the GPU that the resource manager gives; CUDA maps through UVM.
    MapGpu {
        client: u32,
        space: u32,
        address: u64,
        bytes: u64,
    },
    UnmapGpu {
        client: u32,
        space: u32,
        address: u64,
    },
    /// Makes a file descriptor ready when the GPU reports something.
    OpenEvent {
        client: u32,
        descriptor: i32,
    },
    CloseEvent {
        client: u32,
        descriptor: i32,
    },
    /// Addresses that UVM sets aside.
    OpenRange {
        base: u64,
        bytes: u64,
    },
    CloseRange {
        base: u64,
    },
    /// Memory of an object, laid under addresses of a range.
    MapRange {
        base: u64,
        bytes: u64,
    },
    /// A GPU's address space, put under UVM; one for each GPU and process.
    OpenSpace {
        gpu: [u8; 16],
    },
    CloseSpace {
        gpu: [u8; 16],
    },
}

/// What a call of that role does; `bytes` as read behind its argument.
pub(super) fn act(role: Role, args: &[(&'static str, Value)], bytes: Option<u64>) -> Act {
    let fields = Fields(args);
    fields.act(role, bytes).unwrap_or(Act::Nothing)
}

struct Fields<'a>(&'a [(&'static str, Value)]);

impl Fields<'_> {
    fn act(&self, role: Role, bytes: Option<u64>) -> Option<Act> {
        Some(match role {
            Role::Alloc => self.create(bytes)?,
            Role::Duplicate => self.duplicate()?,
            Role::Free => Act::Free {
                client: self.handle("hRoot")?,
                object: self.handle("hObjectOld")?,
            },
            Role::MapCpu => Act::MapCpu {
                client: self.client()?,
                object: self.handle("hMemory")?,
                bytes: self.bytes()?,
            },
            Role::UnmapCpu => Act::UnmapCpu {
                client: self.client()?,
                object: self.handle("hMemory")?,
            },
            Role::MapGpu | Role::UnmapGpu => self.gpu_map(role)?,
            Role::EventOpen => Act::OpenEvent {
                client: self.client()?,
                descriptor: self.descriptor()?,
            },
            Role::EventClose => Act::CloseEvent {
                client: self.client()?,
                descriptor: self.descriptor()?,
            },
            Role::RangeOpen => Act::OpenRange {
                base: self.address("base")?,
                bytes: self.bytes()?,
            },
            Role::RangeClose => Act::CloseRange {
                base: self.address("base")?,
            },
            Role::RangeMap => Act::MapRange {
                base: self.address("base")?,
                bytes: self.bytes()?,
            },
            Role::SpaceOpen => Act::OpenSpace { gpu: self.uuid()? },
            Role::SpaceClose => Act::CloseSpace { gpu: self.uuid()? },
            Role::Control | Role::Wrapper | Role::Dead | Role::Other => return None,
        })
    }

    fn create(&self, bytes: Option<u64>) -> Option<Act> {
        let Some(&Value::Class(class, _)) = self.find("hClass") else {
            return None;
        };
        let kind = tables::class(class).map_or(ClassKind::Other, |class| class.kind);
        let (parent, object) = (self.handle("hObjectParent")?, self.handle("hObjectNew")?);
        let client = if kind == ClassKind::Client {
            object
        } else {
            self.handle("hRoot")?
        };
        Some(Act::Create {
            client,
            parent,
            object,
            class,
            kind,
            bytes: bytes.or_else(|| self.bytes()),
        })
    }

    fn duplicate(&self) -> Option<Act> {
        let (client, parent, object) = (self.client()?, self.handle("hParent")?, self.handle("hObject")?);
        let (from_client, from) = (self.handle("hClientSrc")?, self.handle("hObjectSrc")?);
        Some(Act::Duplicate {
            client,
            parent,
            object,
            from_client,
            from,
        })
    }

    fn gpu_map(&self, role: Role) -> Option<Act> {
        let (client, space, address) = (self.client()?, self.handle("hDma")?, self.address("dmaOffset")?);
        if role == Role::UnmapGpu {
            return Some(Act::UnmapGpu { client, space, address });
        }
        Some(Act::MapGpu {
            client,
            space,
            address,
            bytes: self.bytes()?,
        })
    }

    fn find(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|arg| arg.0 == name).map(|arg| &arg.1)
    }

    fn client(&self) -> Option<u32> {
        self.handle("hClient")
    }

    fn handle(&self, name: &str) -> Option<u32> {
        match self.find(name)? {
            Value::Handle(handle) => Some(*handle),
            _ => None,
        }
    }

    fn address(&self, name: &str) -> Option<u64> {
        match self.find(name)? {
            Value::Address(address) => Some(*address),
            _ => None,
        }
    }

    fn bytes(&self) -> Option<u64> {
        self.0.iter().find_map(|(_, value)| match value {
            Value::Bytes(bytes) => Some(*bytes),
            _ => None,
        })
    }

    fn descriptor(&self) -> Option<i32> {
        self.0.iter().find_map(|(_, value)| match value {
            Value::Descriptor(descriptor) => Some(*descriptor),
            _ => None,
        })
    }

    fn uuid(&self) -> Option<[u8; 16]> {
        self.0.iter().find_map(|(_, value)| match value {
            Value::Uuid(uuid) => Some(*uuid),
            _ => None,
        })
    }
}
