//! Where a copy goes, and which host memory it reads or writes.
//!
//! What the call says counts first, then where its addresses lie. An address in no known range is host memory; in a
//! process that ran before it was watched only beside an end that is known, and it may be pinned. Managed memory
//! counts as a device's: host to managed is HtoD, managed to host DtoH, among managed and device memory DtoD. A copy
//! with a managed end is one of managed memory whatever its other end is: its pages may be on either side, so its
//! speed is that of neither pinned nor pageable memory.

use super::{Call, Ranges};
use crate::catalog::{CopyKind, HostMemory, MemoryKind, WorkPart};
use crate::model::memory::Origin;

/// What of a call tells where one end is.
struct EndParts {
    address: WorkPart,
    memory_type: WorkPart,
    host: WorkPart,
    device: WorkPart,
    operand: WorkPart,
}

const FROM: EndParts = EndParts {
    address: WorkPart::From,
    memory_type: WorkPart::FromType,
    host: WorkPart::FromHost,
    device: WorkPart::FromDevice,
    operand: WorkPart::FromOperand,
};
const TO: EndParts = EndParts {
    address: WorkPart::To,
    memory_type: WorkPart::ToType,
    host: WorkPart::ToHost,
    device: WorkPart::ToDevice,
    operand: WorkPart::ToOperand,
};

/// Memory at one end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Memory {
    Known(MemoryKind),
    Pageable,
    /// Host memory or not: nothing is known of its address.
    Unknown,
    /// The call tells no address.
    NoAddress,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Host,
    Device,
}

#[derive(Debug, Clone, Copy)]
struct End {
    /// As the call says it.
    stated: Option<Side>,
    memory: Memory,
}

/// Direction and host memory of a copy. `None`: it cannot be told, and no end lies in host memory.
#[must_use]
pub(crate) fn classify(call: &Call<'_>, ranges: &Ranges, origin: Origin) -> (Option<CopyKind>, Option<HostMemory>) {
    let [from, to] = [FROM, TO].map(|parts| end(call, &parts, ranges, origin));
    let direction = call.stated_direction().or_else(|| by_ends(from, to));
    (direction, host_memory(direction, from.memory, to.memory))
}

/// Whether a call without a stream returns only once its bytes have left the source. Copies among devices do not:
/// CUDA driver API, "API synchronization behavior".
#[must_use]
pub(crate) fn blocks(call: &Call<'_>, direction: Option<CopyKind>) -> bool {
    call.blocks() && !matches!(direction, Some(CopyKind::DtoD | CopyKind::PtoP))
}

fn end(call: &Call<'_>, parts: &EndParts, ranges: &Ranges, origin: Origin) -> End {
    let (stated, address) = match call.part(parts.memory_type) {
        Some(1) => (Some(Side::Host), call.part(parts.host)),
        Some(2) => (Some(Side::Device), call.part(parts.device)),
        Some(3) => (Some(Side::Device), None),
        Some(4) => (None, call.part(parts.device)),
        _ if call.part(parts.operand) == Some(2) => (Some(Side::Device), None),
        _ => (None, call.part(parts.address)),
    };
    let memory = address.map_or(Memory::NoAddress, |address| match ranges.kind_at(address) {
        Some(kind) => Memory::Known(kind),
        None if origin == Origin::Start => Memory::Pageable,
        None => Memory::Unknown,
    });
    End { stated, memory }
}

fn by_ends(from: End, to: End) -> Option<CopyKind> {
    let is_known = |end: End| end.stated.is_some() || matches!(end.memory, Memory::Known(_) | Memory::Pageable);
    if !is_known(from) && !is_known(to) {
        return None;
    }
    match (side(from)?, side(to)?) {
        (Side::Host, Side::Host) => Some(CopyKind::HtoH),
        (Side::Host, Side::Device) => Some(CopyKind::HtoD),
        (Side::Device, Side::Host) => Some(CopyKind::DtoH),
        (Side::Device, Side::Device) => Some(CopyKind::DtoD),
    }
}

fn side(end: End) -> Option<Side> {
    end.stated.or(match end.memory {
        Memory::Known(MemoryKind::Device | MemoryKind::Managed) => Some(Side::Device),
        Memory::Known(MemoryKind::Pinned) | Memory::Pageable | Memory::Unknown => Some(Side::Host),
        Memory::NoAddress => None,
    })
}

fn host_memory(direction: Option<CopyKind>, from: Memory, to: Memory) -> Option<HostMemory> {
    if [from, to].contains(&Memory::Known(MemoryKind::Managed)) {
        return Some(HostMemory::Managed);
    }
    match direction {
        None => Some(HostMemory::Unknown),
        Some(CopyKind::HtoD) => Some(of(from)),
        Some(CopyKind::DtoH) => Some(of(to)),
        Some(CopyKind::HtoH) => Some(of(from).max(of(to))), // pinned < pageable < unknown
        Some(CopyKind::DtoD | CopyKind::PtoP) => None,
    }
}

fn of(memory: Memory) -> HostMemory {
    match memory {
        Memory::Known(MemoryKind::Pinned) => HostMemory::Pinned,
        Memory::Pageable => HostMemory::Pageable,
        _ => HostMemory::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::work::sample::{any_raw, decoded, raw};
    use crate::wire::WorkCall;
    use proptest::prelude::*;

    const DEVICE: u64 = 0x1000;
    const MANAGED: u64 = 0x2000;
    const PINNED: u64 = 0x3000;
    const ELSEWHERE: u64 = 0x9000;

    fn ranges() -> Ranges {
        let mut ranges = Ranges::default();
        ranges.seed(DEVICE, DEVICE + 0x100, MemoryKind::Device);
        ranges.seed(MANAGED, MANAGED + 0x100, MemoryKind::Managed);
        ranges.seed(PINNED, PINNED + 0x100, MemoryKind::Pinned);
        ranges
    }

    fn class(raw: &WorkCall, origin: Origin) -> (Option<CopyKind>, Option<HostMemory>) {
        classify(&decoded(raw), &ranges(), origin)
    }

    fn by_address(from: u64, to: u64, origin: Origin) -> (Option<CopyKind>, Option<HostMemory>) {
        let parts = [(WorkPart::From, from + 0x80), (WorkPart::To, to + 0x80)];
        class(&raw("cuMemcpy", &parts), origin)
    }

    #[test]
    fn a_copy_that_does_not_say_where_it_goes_is_told_by_its_addresses() {
        use CopyKind::*;
        use HostMemory::*;
        for (from, to, direction, host) in [
            (ELSEWHERE, DEVICE, HtoD, Some(Pageable)),
            (PINNED, DEVICE, HtoD, Some(Pinned)),
            (DEVICE, ELSEWHERE, DtoH, Some(Pageable)),
            (DEVICE, PINNED, DtoH, Some(Pinned)),
            (DEVICE, DEVICE, DtoD, None),
            (PINNED, PINNED, HtoH, Some(Pinned)),
            (PINNED, ELSEWHERE, HtoH, Some(Pageable)),
            (ELSEWHERE, ELSEWHERE, HtoH, Some(Pageable)),
            (MANAGED, ELSEWHERE, DtoH, Some(Managed)),
            (PINNED, MANAGED, HtoD, Some(Managed)),
            (MANAGED, DEVICE, DtoD, Some(Managed)),
            (MANAGED, MANAGED, DtoD, Some(Managed)),
        ] {
            assert_eq!(
                by_address(from, to, Origin::Start),
                (Some(direction), host),
                "{from:#x} to {to:#x}"
            );
        }
    }

    #[test]
    fn of_a_process_met_late_what_is_not_known_is_not_guessed() {
        let unknown = Some(HostMemory::Unknown);
        let late = |from, to| by_address(from, to, Origin::Late);
        assert_eq!(late(ELSEWHERE, DEVICE), (Some(CopyKind::HtoD), unknown));
        assert_eq!(late(PINNED, ELSEWHERE), (Some(CopyKind::HtoH), unknown));
        assert_eq!(late(ELSEWHERE, ELSEWHERE), (None, unknown));
        let stated = raw("cuMemcpyDtoHAsync_v2", &[(WorkPart::To, ELSEWHERE)]);
        assert_eq!(class(&stated, Origin::Late), (Some(CopyKind::DtoH), unknown));
    }

    #[test]
    fn what_the_call_says_counts_more_than_its_addresses() {
        let stated = raw(
            "cuMemcpyHtoD_v2",
            &[(WorkPart::From, PINNED), (WorkPart::To, ELSEWHERE)],
        );
        let expected = (Some(CopyKind::HtoD), Some(HostMemory::Pinned));
        assert_eq!(class(&stated, Origin::Start), expected);
    }

    fn described(from_type: u64, to_type: u64) -> WorkCall {
        let parts = [
            (WorkPart::FromType, from_type),
            (WorkPart::FromHost, PINNED),
            (WorkPart::FromDevice, DEVICE),
            (WorkPart::ToType, to_type),
            (WorkPart::ToHost, ELSEWHERE),
            (WorkPart::ToDevice, MANAGED),
        ];
        raw("cuMemcpy2D_v2", &parts)
    }

    #[test]
    fn a_description_says_which_of_its_addresses_count() {
        use CopyKind::*;
        let [host, device, array, by_address] = [1, 2, 3, 4];
        for (from, to, direction, memory) in [
            (host, by_address, HtoD, HostMemory::Managed),
            (by_address, host, DtoH, HostMemory::Pageable),
            (host, host, HtoH, HostMemory::Pageable),
            (by_address, by_address, DtoD, HostMemory::Managed),
            (device, by_address, DtoD, HostMemory::Managed),
            (host, array, HtoD, HostMemory::Pinned),
        ] {
            let raw = described(from, to);
            assert_eq!(
                class(&raw, Origin::Start),
                (Some(direction), Some(memory)),
                "{from} to {to}"
            );
        }
    }

    #[test]
    fn an_address_that_could_not_be_read_tells_nothing() {
        let mut raw = raw("cuMemcpy", &[(WorkPart::From, DEVICE), (WorkPart::To, DEVICE)]);
        raw.unreadable = 1;
        assert_eq!(class(&raw, Origin::Start), (None, Some(HostMemory::Unknown)));
    }

    #[test]
    fn copies_among_devices_do_not_block() {
        let told = |symbol| {
            let raw = raw(symbol, &[]);
            let call = decoded(&raw);
            blocks(&call, call.stated_direction())
        };
        assert!(told("cuMemcpyDtoH_v2") && told("cuMemcpyHtoD_v2") && told("cuMemcpy"));
        assert!(!told("cuMemcpyDtoD_v2") && !told("cuMemcpyPeer") && !told("cuMemcpyDtoHAsync_v2"));
    }

    proptest! {
        #[test]
        fn every_record_has_a_class(raw in any_raw(), late in any::<bool>()) {
            let origin = if late { Origin::Late } else { Origin::Start };
            let (direction, host) = class(&raw, origin);
            let on_host = !matches!(direction, Some(CopyKind::DtoD | CopyKind::PtoP));
            prop_assert!(host.is_some() || !on_host);
        }
    }
}
