//! Virtual memory: who holds physical memory, and until when.

use super::random::Random;
use super::things::PAGE;
use super::{Account, Options};
use crate::driver_api::Driver;
use crate::{cuda, pace};

const DEVICE: i32 = 0;

struct Spaces<'a> {
    driver: Driver,
    random: Random,
    account: &'a mut Account,
}

pub fn vmm(options: &Options, account: &mut Account) -> Result<String, u32> {
    let driver = Driver::load().ok_or(35u32)?;
    cuda::set_device(DEVICE)?;
    let mut spaces = Spaces {
        driver,
        random: Random(options.number("seed", 1)),
        account,
    };
    let mut steps = 0;
    for _ in pace::steps(options.number("steps", 100)) {
        spaces.step()?;
        steps += 1;
    }
    if options.text("end", "exit") == "leak" {
        spaces.forget_mapping()?;
    }
    let (count, bytes) = account.outstanding();
    Ok(format!(
        "{steps} steps; {count} things of {bytes} bytes in all are left"
    ))
}

impl Spaces<'_> {
    fn step(&mut self) -> Result<(), u32> {
        match self.random.below(6) {
            0 => self.release_first(),
            1 => self.unmap_first(),
            2 => self.retain(),
            3 => self.grow(),
            4 => self.on_host(),
            _ => self.share(),
        }
    }

    fn reserve(&mut self, bytes: u64) -> Result<u64, u32> {
        let address = self.driver.reserve(bytes)?;
        self.account.add("reserved", -1, bytes);
        Ok(address)
    }

    fn free_addresses(&mut self, address: u64, bytes: u64) -> Result<(), u32> {
        self.driver.free_addresses(address, bytes)?;
        self.account.end("reserved", -1, bytes);
        Ok(())
    }

    fn create(&mut self, bytes: u64) -> Result<u64, u32> {
        let handle = self.driver.create_on(DEVICE, bytes)?;
        self.account.add("physical", DEVICE, bytes);
        Ok(handle)
    }

    fn map(&mut self, address: u64, bytes: u64, handle: u64) -> Result<(), u32> {
        self.driver.map(address, bytes, handle)?;
        self.account.add("mapped", DEVICE, bytes);
        self.driver.set_access_of(DEVICE, address, bytes)
    }

    /// Unmaps, of which `mappings` there are.
    fn unmap(&mut self, address: u64, bytes: u64, mappings: u64) -> Result<(), u32> {
        self.driver.unmap(address, bytes * mappings)?;
        (0..mappings).for_each(|_| self.account.end("mapped", DEVICE, bytes));
        Ok(())
    }

    fn gone(&mut self, bytes: u64) {
        self.account.end("physical", DEVICE, bytes);
    }

    /// The usual way: the mapping alone keeps the memory.
    fn release_first(&mut self) -> Result<(), u32> {
        let address = self.reserve(PAGE)?;
        let handle = self.create(PAGE)?;
        self.map(address, PAGE, handle)?;
        self.driver.release(handle)?;
        self.unmap(address, PAGE, 1)?;
        self.gone(PAGE);
        self.free_addresses(address, PAGE)
    }

    fn unmap_first(&mut self) -> Result<(), u32> {
        let address = self.reserve(PAGE)?;
        let handle = self.create(PAGE)?;
        self.map(address, PAGE, handle)?;
        self.unmap(address, PAGE, 1)?;
        self.driver.release(handle)?;
        self.gone(PAGE);
        self.free_addresses(address, PAGE)
    }

    /// A second handle, found by the address, and the same memory at two addresses.
    fn retain(&mut self) -> Result<(), u32> {
        let address = self.reserve(2 * PAGE)?;
        let handle = self.create(PAGE)?;
        self.map(address, PAGE, handle)?;
        self.map(address + PAGE, PAGE, handle)?;
        let again = self.driver.retain(address)?;
        self.driver.release(handle)?;
        self.unmap(address, PAGE, 2)?;
        self.driver.release(again)?;
        self.gone(PAGE);
        self.account.double_free(self.driver.release(again));
        self.free_addresses(address, 2 * PAGE)
    }

    /// As an allocator with segments that grow: much address space, filled piece by piece.
    fn grow(&mut self) -> Result<(), u32> {
        const PIECES: u64 = 8;
        let address = self.reserve(PIECES * PAGE)?;
        for piece in 0..PIECES {
            let handle = self.create(PAGE)?;
            self.map(address + piece * PAGE, PAGE, handle)?;
            self.driver.release(handle)?;
        }
        self.unmap(address, PAGE, 3)?;
        self.unmap(address + 3 * PAGE, PAGE, PIECES - 3)?;
        (0..PIECES).for_each(|_| self.gone(PAGE));
        self.free_addresses(address, PIECES * PAGE)
    }

    /// Physical memory of the host.
    fn on_host(&mut self) -> Result<(), u32> {
        let handle = self.driver.create_on(-1, PAGE)?;
        self.account.add("physical", -1, PAGE);
        self.account.freed("physical", -1, PAGE, self.driver.release(handle));
        Ok(())
    }

    /// Exported to a file and imported from it: a handle of memory that counts elsewhere.
    fn share(&mut self) -> Result<(), u32> {
        let address = self.reserve(PAGE)?;
        let handle = self.create(PAGE)?;
        let file = self.driver.export(handle)?;
        let imported = self.driver.import(file)?;
        self.account.add("imported", DEVICE, PAGE);
        // SAFETY: the file the driver made for us.
        unsafe { libc::close(file) };
        self.map(address, PAGE, imported)?;
        self.driver.release(imported)?;
        self.unmap(address, PAGE, 1)?;
        self.account.end("imported", DEVICE, PAGE);
        self.driver.release(handle)?;
        self.gone(PAGE);
        self.free_addresses(address, PAGE)
    }

    /// What an allocator leaves behind that released its handles and forgot the mapping.
    fn forget_mapping(&mut self) -> Result<(), u32> {
        let address = self.reserve(4 * PAGE)?;
        let handle = self.create(PAGE)?;
        self.map(address, PAGE, handle)?;
        self.driver.release(handle)
    }
}
