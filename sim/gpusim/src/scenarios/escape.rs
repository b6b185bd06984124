//! API calls that do not return the way they came.

use std::ffi::{CString, c_void};

use super::argument;
use crate::{counts, cuda};

unsafe extern "C" fn deeper(data: *mut c_void) {
    let depth = data as usize;
    let _ = cuda::get_device();
    if depth > 1 {
        // SAFETY: the callback takes a number, not a pointer.
        let _ = unsafe { cuda::host_function(0, deeper, (depth - 1) as *mut c_void) };
    }
}

pub fn recursion(args: &[u64]) -> Result<String, u32> {
    let depth = argument(args, 0, 10);
    if depth > 0 {
        // SAFETY: as above.
        unsafe { cuda::host_function(0, deeper, depth as *mut c_void)? };
    }
    Ok(format!(
        "cudaLaunchHostFunc nested {depth} deep, with a cudaGetDevice at each depth"
    ))
}

pub fn longjmp(args: &[u64]) -> Result<String, u32> {
    let times = argument(args, 0, 100) as u32;
    let stream = cuda::stream()?;
    let escaped = cuda::longjmp(stream, times);
    for _ in 0..times {
        cuda::get_device()?;
    }
    cuda::stream_synchronize(stream)?;
    cuda::stream_destroy(stream)?;
    Ok(format!("{escaped} calls left by longjmp, then {times} that returned"))
}

pub fn thread_exit(args: &[u64]) -> Result<String, u32> {
    let times = argument(args, 0, 10) as u32;
    let ended = cuda::thread_exit(times);
    cuda::get_device()?;
    Ok(format!("{ended} threads ended inside cudaLaunchHostFunc"))
}

unsafe extern "C" fn exec_now(_data: *mut c_void) {
    println!("exec-midcall: replacing this image inside cudaLaunchHostFunc");
    counts::print("exec-midcall");
    cuda::flush_ledgers();
    let program = CString::from(c"/proc/self/exe");
    let args = [c"gpusim".as_ptr(), c"train".as_ptr(), c"3".as_ptr(), std::ptr::null()];
    // SAFETY: C strings, the list of which ends with null.
    unsafe { libc::execv(program.as_ptr(), args.as_ptr()) };
}

pub fn exec(_args: &[u64]) -> Result<String, u32> {
    let _kept = cuda::malloc(1 << 20)?;
    // SAFETY: the callback takes no data.
    unsafe { cuda::host_function(0, exec_now, std::ptr::null_mut())? };
    Ok("the image was not replaced".into())
}

unsafe extern "C" fn kill_now(_data: *mut c_void) {
    println!("kill: SIGKILL inside cudaLaunchHostFunc, 1 MiB never freed");
    counts::print("kill");
    cuda::flush_ledgers();
    // SAFETY: sends a signal to this process.
    unsafe { libc::raise(libc::SIGKILL) };
}

pub fn kill(_args: &[u64]) -> Result<String, u32> {
    let _kept = cuda::malloc(1 << 20)?;
    cuda::launch(0, 64, 256, 0)?;
    // SAFETY: the callback takes no data.
    unsafe { cuda::host_function(0, kill_now, std::ptr::null_mut())? };
    Ok("still alive".into())
}
