//! Loads the runtime while running, and calls it at once: whoever wants to see the first calls
//! has no time to lose.

use std::ffi::{CString, c_void};
use std::process::ExitCode;
use std::time::Duration;

const CALLS: usize = 1000;

type Malloc = unsafe extern "C" fn(*mut u64, usize) -> u32;
type Free = unsafe extern "C" fn(u64) -> u32;

fn main() -> ExitCode {
    let Some(path) = runtime_path() else {
        return ExitCode::from(2);
    };
    std::thread::sleep(Duration::from_millis(100));
    // SAFETY: loads a library, whose functions have the types CUDA documents.
    let (malloc, free) = unsafe {
        let library = libc::dlopen(path.as_ptr(), libc::RTLD_NOW);
        if library.is_null() {
            eprintln!("gpusim-late: cannot load {}", path.to_string_lossy());
            return ExitCode::from(2);
        }
        let malloc = libc::dlsym(library, c"cudaMalloc".as_ptr());
        let free = libc::dlsym(library, c"cudaFree".as_ptr());
        if malloc.is_null() || free.is_null() {
            return ExitCode::from(2);
        }
        (
            std::mem::transmute::<*mut c_void, Malloc>(malloc),
            std::mem::transmute::<*mut c_void, Free>(free),
        )
    };
    let mut kept = [0u64; CALLS];
    let mut failed = 0;
    for place in &mut kept {
        // SAFETY: an out-pointer to a local.
        failed += usize::from(unsafe { malloc(place, 4096) } != 0);
    }
    for address in &kept {
        // SAFETY: what the runtime gave out.
        failed += usize::from(unsafe { free(*address) } != 0);
    }
    println!("late-dlopen: {CALLS} allocations and frees, {failed} failed");
    println!(
        "GPUSIM {{\"scenario\":\"late-dlopen\",\"pid\":{},\"calls\":{{\"cudaMalloc\":{CALLS},\"cudaFree\":{CALLS}}},\"errors\":{{}},\"driver_calls\":{{}},\"launches\":0}}",
        std::process::id()
    );
    ExitCode::SUCCESS
}

/// In the folder `GPUSIM_LIB` names, or else beside this program.
fn runtime_path() -> Option<CString> {
    let folder = match std::env::var_os("GPUSIM_LIB") {
        Some(folder) => folder.into(),
        None => std::env::current_exe().ok()?.parent()?.to_path_buf(),
    };
    CString::new(folder.join("libcudart.so.13").into_os_string().into_encoded_bytes()).ok()
}
