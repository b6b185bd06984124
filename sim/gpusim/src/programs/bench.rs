//! Memory of every kind and streams to copy in, and what to copy at random.

use std::ffi::CStr;

use super::Options;
use super::random::Random;
use super::tally;
use crate::cuda;
use crate::cuda_memory;
use crate::driver_api::Driver;

/// Rows in shaped copies lie this far apart, planes that many rows.
pub const PITCH: u64 = 256;
pub const PLANE_ROWS: u64 = 16;
/// An array has as many rows as four planes, of as many bytes as the pitch.
const ARRAY_ROWS: usize = 64;
/// What the module has, by the name it has there.
const FUNCTION: &CStr = c"triton_per_fused_add_0";
const SMALLEST: u64 = 64 << 10;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Device(i32),
    Array,
    /// As the log of work calls it.
    Host(&'static str),
}

/// One memory, as large as the largest copy.
#[derive(Clone, Copy)]
pub struct End {
    pub address: u64,
    pub kind: Kind,
}

pub struct Bench {
    pub driver: Driver,
    pub random: Random,
    devices: Vec<End>,
    hosts: Vec<End>,
    pub array: End,
    streams: Vec<u64>,
    most: u64,
    /// A kernel of a module.
    pub function: u64,
    /// What is registered and what is only pageable.
    _own: [Vec<u8>; 2],
}

impl Bench {
    pub fn new(options: &Options) -> Result<Bench, u32> {
        let driver = Driver::load().ok_or(35u32)?;
        cuda::set_device(0)?;
        let most = options.number("bytes", 65536).max(1);
        let size = most.max(SMALLEST) as usize;
        let mut devices = vec![cuda::malloc(size)?, cuda::malloc(size)?, cuda::malloc_async(size, 0)?];
        let mut ends: Vec<End> = devices.drain(..).map(|a| End::new(a, Kind::Device(0))).collect();
        for device in 1..cuda::device_count()? {
            cuda::set_device(device)?;
            ends.push(End::new(cuda::malloc(size)?, Kind::Device(device)));
        }
        cuda::set_device(0)?;
        let own = [vec![1u8; size], vec![2u8; size]];
        cuda::host_register(&own[0])?;
        let hosts = vec![
            End::new(cuda::malloc_host(size)?, Kind::Host("pinned")),
            End::new(own[0].as_ptr() as u64, Kind::Host("pinned")),
            End::new(own[1].as_ptr() as u64, Kind::Host("pageable")),
            End::new(cuda::malloc_managed(size)?, Kind::Host("managed")),
        ];
        let array = cuda_memory::malloc_array(PITCH as usize / 4, ARRAY_ROWS)?;
        let function = driver.function(FUNCTION)?;
        let own_streams = (0..options.number("streams", 3).max(1)).map(|_| cuda::stream());
        Ok(Bench {
            driver,
            random: Random(options.number("seed", 1)),
            devices: ends,
            hosts,
            array: End::new(array, Kind::Array),
            streams: own_streams.collect::<Result<_, _>>()?,
            most,
            function,
            _own: own,
        })
    }

    pub fn coin(&mut self) -> bool {
        self.random.one_in(2)
    }

    pub fn bytes(&mut self) -> u64 {
        1 + self.random.below(self.most)
    }

    /// Width in bytes, height and depth.
    pub fn shape(&mut self) -> [u64; 3] {
        [PITCH, PLANE_ROWS, 4].map(|most| 1 + self.random.below(most))
    }

    fn one_of(&mut self, ends: fn(&Bench) -> &[End]) -> End {
        let count = ends(self).len() as u64;
        let which = self.random.below(count) as usize;
        ends(self)[which]
    }

    pub fn host(&mut self) -> End {
        self.one_of(|bench| &bench.hosts)
    }

    /// Memory of a device, of the first more often.
    pub fn device(&mut self) -> End {
        self.one_of(|bench| &bench.devices)
    }

    pub fn managed(&self) -> u64 {
        self.hosts[3].address
    }

    /// Device memory or host memory.
    pub fn any(&mut self) -> End {
        if self.coin() { self.host() } else { self.device() }
    }

    /// A stream, one of the default ones too.
    pub fn stream(&mut self) -> u64 {
        match self.random.below(4) {
            0 => 2 * self.random.below(2),
            _ => self.own_stream(),
        }
    }

    pub fn own_stream(&mut self) -> u64 {
        let which = self.random.below(self.streams.len() as u64) as usize;
        self.streams[which]
    }

    pub fn streams(&self) -> &[u64] {
        &self.streams
    }
}

impl End {
    pub fn new(address: u64, kind: Kind) -> End {
        End { address, kind }
    }

    pub fn is_host(self) -> bool {
        matches!(self.kind, Kind::Host(_))
    }

    /// `CUmemorytype`.
    pub fn memory(self) -> u64 {
        match self.kind {
            Kind::Host(_) => 1,
            Kind::Device(_) => 2,
            Kind::Array => 3,
        }
    }
}

/// Counts a copy that was made.
pub fn copied(to: End, from: End, bytes: u64) {
    let device = |end: End| if let Kind::Device(device) = end.kind { device } else { 0 };
    let what = match (from.kind, to.kind) {
        (Kind::Host("pageable"), Kind::Host(_)) => "copy HtoH pageable".to_owned(),
        (Kind::Host(_), Kind::Host(kind)) => format!("copy HtoH {kind}"),
        (Kind::Host(kind), _) => format!("copy HtoD {kind}"),
        (_, Kind::Host(kind)) => format!("copy DtoH {kind}"),
        _ if device(from) != device(to) => "copy PtoP".to_owned(),
        _ => "copy DtoD".to_owned(),
    };
    tally::add(&what, bytes);
}
