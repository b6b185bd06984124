//! Memory of one process in another.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;

use super::things::PAGE;
use super::{Account, Options};
use crate::calls::IpcHandle;
use crate::driver_api::Driver;
use crate::{counts, cuda, cuda_memory};

const DEVICE: i32 = 0;
const NO_PEER: u32 = 999;

/// What goes from the parent to the child for each allocation: the handle, its size, and a file
/// of the parent's that stands for physical memory.
const WORDS: usize = 10;

pub fn ipc(options: &Options, account: &mut Account) -> Result<String, u32> {
    let count = options.number("count", 3).max(1);
    let (mut ours, theirs) = UnixStream::pair().map_err(|_| NO_PEER)?;
    // SAFETY: this process has one thread.
    let child = unsafe { libc::fork() };
    if child == 0 {
        drop(ours);
        be_child(theirs, count);
    }
    drop(theirs);
    let driver = Driver::load().ok_or(35u32)?;
    cuda::set_device(DEVICE)?;
    let mut made = Vec::new();
    for number in 0..count {
        let bytes = 4096 * (1 + number);
        let address = account
            .made("device", DEVICE, bytes, cuda::malloc(bytes as usize))
            .ok_or(2u32)?;
        let physical = driver.create_on(DEVICE, PAGE)?;
        account.add("physical", DEVICE, PAGE);
        let file = driver.export(physical)?;
        send(&mut ours, cuda_memory::ipc_export(address)?, bytes, file)?;
        made.push((address, bytes, physical));
    }
    // The child has let go of all when it ends.
    // SAFETY: no status is asked for.
    unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
    let own = cuda_memory::ipc_export(made[0].0)?;
    account.failed_as("ipc", DEVICE, cuda_memory::ipc_open(own));
    for (address, bytes, physical) in made {
        account.freed("device", DEVICE, bytes, cuda::free(address));
        account.freed("physical", DEVICE, PAGE, driver.release(physical));
    }
    Ok(format!("{count} allocations opened by a child"))
}

fn send(to: &mut UnixStream, handle: IpcHandle, bytes: u64, file: i32) -> Result<(), u32> {
    let mut words = handle.0.to_vec();
    words.extend([bytes, file as u64]);
    let message: Vec<u8> = words.iter().flat_map(|w| w.to_ne_bytes()).collect();
    to.write_all(&message).map_err(|_| NO_PEER)
}

fn receive(from: &mut UnixStream) -> Result<[u64; WORDS], u32> {
    let mut message = [0u8; WORDS * 8];
    from.read_exact(&mut message).map_err(|_| NO_PEER)?;
    let mut words = [0; WORDS];
    for (word, bytes) in words.iter_mut().zip(message.chunks_exact(8)) {
        *word = bytes.try_into().map(u64::from_ne_bytes).map_err(|_| NO_PEER)?;
    }
    Ok(words)
}

fn be_child(from: UnixStream, count: u64) -> ! {
    counts::reset();
    let mut account = Account::default();
    let result = open_all(from, count, &mut account);
    println!("ipc-child: {result:?}");
    account.print();
    cuda::count_exit();
    counts::print("ipc-child");
    std::process::exit(i32::from(result.is_err()))
}

/// Opens each twice, which is the same memory, and closes all but the last as often.
fn open_all(mut from: UnixStream, count: u64, account: &mut Account) -> Result<(), u32> {
    let driver = Driver::load().ok_or(35u32)?;
    cuda::set_device(DEVICE)?;
    for number in 0..count {
        let words = receive(&mut from)?;
        let mut handle = IpcHandle::default();
        handle.0.copy_from_slice(&words[..8]);
        let address = cuda_memory::ipc_open(handle)?;
        account.add("ipc", DEVICE, words[8]);
        if cuda_memory::ipc_open(handle)? != address {
            return Err(NO_PEER);
        }
        cuda_memory::ipc_close(address)?;
        if number + 1 < count {
            account.freed("ipc", DEVICE, words[8], cuda_memory::ipc_close(address));
        }
        open_file(&driver, words[9], account)?;
    }
    Ok(())
}

fn open_file(driver: &Driver, file: u64, account: &mut Account) -> Result<(), u32> {
    // SAFETY: takes nothing.
    let parent = unsafe { libc::getppid() };
    let file = std::fs::File::open(format!("/proc/{parent}/fd/{file}")).map_err(|_| NO_PEER)?;
    let imported = driver.import(std::os::fd::AsRawFd::as_raw_fd(&file))?;
    account.add("imported", DEVICE, PAGE);
    account.freed("imported", DEVICE, PAGE, driver.release(imported));
    Ok(())
}
