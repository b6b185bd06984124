//! The driver's objects of one process.

use std::collections::HashMap;

use super::client::{Client, Object};
use super::maps::Maps;
use super::resource::{Held, Named, Resources};
use super::{CallTotals, FileId};
use crate::driver::Act;
use crate::driver::tables::ClassKind;

/// How many objects ended how; exit ends the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ends {
    /// By a free of their own.
    pub freed: u64,
    /// With an object above them, or their client.
    pub with_parent: u64,
    /// With the file that they were made through.
    pub closed: u64,
}

/// References to what was there before the first call seen, or whose making was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Unseen {
    /// Clients that were used and not made.
    pub clients: u64,
    /// Frees of objects that are not known.
    pub frees: u64,
    /// Ends of ranges, maps, events and address spaces that are not known.
    pub ends: u64,
}

/// The objects of a process.
#[derive(Debug, Default)]
pub struct Process {
    pub(super) totals: CallTotals,
    resources: Resources,
    clients: HashMap<u32, Client>,
    maps: Maps,
    ends: Ends,
    unseen: Unseen,
}

impl Process {
    /// Live objects of a kind, and the bytes that the driver took for them.
    #[must_use]
    pub fn held(&self, kind: ClassKind) -> Held {
        self.resources.held(kind)
    }

    /// The most bytes of a kind that were held at a time.
    #[must_use]
    pub fn peak_bytes(&self, kind: ClassKind) -> u64 {
        self.resources.peak_bytes(kind)
    }

    /// Sums of this process's calls.
    #[must_use]
    pub fn calls(&self) -> CallTotals {
        self.totals
    }

    /// Addresses, maps and events.
    #[must_use]
    pub(crate) fn maps(&self) -> &Maps {
        &self.maps
    }

    /// How objects ended so far.
    #[must_use]
    pub fn ends(&self) -> Ends {
        self.ends
    }

    /// What referred to objects that are not known.
    #[must_use]
    pub fn unseen(&self) -> Unseen {
        self.unseen
    }

    pub(super) fn named(&self, client: u32, handle: u32) -> Option<Named> {
        let id = self.clients.get(&client)?.get(handle)?.resource;
        let (kind, bytes) = self.resources.get(id)?;
        Some(Named {
            id,
            client,
            kind,
            bytes,
        })
    }

    /// `shared`: what a duplicated handle names, where that is known.
    pub(super) fn apply(&mut self, file: FileId, act: Act, shared: Option<Named>) {
        match act {
            Act::Nothing => {}
            Act::Create {
                client, object, kind, ..
            } if client == object => self.create_client(file, client, kind),
            Act::Create {
                client,
                parent,
                object,
                kind,
                bytes,
                ..
            } => {
                let resource = self.resources.add(kind, bytes);
                self.hang(client, object, Object { parent, resource });
            }
            Act::Duplicate {
                client, parent, object, ..
            } => {
                let resource = self.duplicate(shared);
                self.hang(client, object, Object { parent, resource });
            }
            Act::Free { client, object } if client == object => self.free_client(client),
            Act::Free { client, object } => self.free(client, object),
            act => self.unseen.ends += u64::from(!self.maps.apply(file, act)),
        }
    }

    fn create_client(&mut self, file: FileId, client: u32, kind: ClassKind) {
        self.end_client(client);
        let resource = self.resources.add(kind, None);
        self.clients.insert(client, Client::new(Some(file), resource));
    }

    /// A client that was used and not made is one that was there before.
    fn hang(&mut self, client: u32, handle: u32, object: Object) {
        if !self.clients.contains_key(&client) {
            self.unseen.clients += 1;
            let resource = self.resources.add(ClassKind::Client, None);
            self.clients.insert(client, Client::new(None, resource));
        }
        if let Some(client) = self.clients.get_mut(&client) {
            let before = client.add(handle, object);
            self.release(before);
        }
    }

    /// A resource of another process, or one that is not known, counts here as one of its own.
    fn duplicate(&mut self, shared: Option<Named>) -> u64 {
        match shared {
            Some(named) if self.clients.contains_key(&named.client) && self.resources.share(named.id) => named.id,
            Some(named) => self.resources.add(named.kind, named.bytes),
            None => self.resources.add(ClassKind::Other, None),
        }
    }

    fn free(&mut self, client: u32, handle: u32) {
        let Some(of) = self.clients.get_mut(&client) else {
            self.unseen.frees += 1;
            return;
        };
        let known = u64::from(of.get(handle).is_some());
        let ended = of.remove(handle);
        self.ends.freed += known;
        self.unseen.frees += 1 - known;
        self.ends.with_parent += ended.len() as u64 - known;
        self.release(ended);
        self.unmap_gone(client);
    }

    fn free_client(&mut self, client: u32) {
        match self.end_client(client) {
            0 => self.unseen.frees += 1,
            ended => {
                self.ends.freed += 1;
                self.ends.with_parent += ended - 1;
            }
        }
    }

    /// Ends a client with all its objects; returns how many these were, itself among them.
    fn end_client(&mut self, client: u32) -> u64 {
        let ended = self
            .clients
            .remove(&client)
            .map(|client| client.all())
            .unwrap_or_default();
        let count = ended.len() as u64;
        self.release(ended);
        self.unmap_gone(client);
        count
    }

    fn release(&mut self, resources: Vec<u64>) {
        for resource in resources {
            self.resources.release(resource);
        }
    }

    /// Maps and events of objects end with them. Of a client that was there before the objects are not all known.
    fn unmap_gone(&mut self, client: u32) {
        let of = self.clients.get(&client);
        if of.is_some_and(|client| client.file.is_none()) {
            return;
        }
        self.maps
            .end_below(client, |handle| of.is_some_and(|client| client.get(handle).is_some()));
        if of.is_none() {
            self.maps.end_client(client);
        }
    }

    /// Ends what was made through a file; returns the clients among it.
    pub(super) fn close(&mut self, file: FileId) -> Vec<u32> {
        let through = |client: &Client| client.file == Some(file);
        let ended: Vec<u32> = self
            .clients
            .iter()
            .filter(|(_, c)| through(c))
            .map(|(handle, _)| *handle)
            .collect();
        for client in &ended {
            self.ends.closed += self.end_client(*client);
        }
        self.maps.close(file);
        ended
    }
}
