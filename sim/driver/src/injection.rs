//! The library that `CUDA_INJECTION64_PATH` names, which `cuInit` loads and calls, as the real one does.

use std::ffi::CString;
use std::os::unix::ffi::OsStringExt;
use std::sync::Once;

/// Loads it, once; one that is missing is none.
pub fn load() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let path = std::env::var_os("CUDA_INJECTION64_PATH").map(OsStringExt::into_vec);
        if let Some(path) = path.and_then(|path| CString::new(path).ok()) {
            call(&path);
        }
    });
}

fn call(path: &CString) {
    // SAFETY: a path, and a name; what lies there is what the user wants to run.
    unsafe {
        let library = libc::dlopen(path.as_ptr(), libc::RTLD_NOW);
        if library.is_null() {
            return;
        }
        let entry = libc::dlsym(library, c"InitializeInjection".as_ptr());
        if !entry.is_null() {
            let entry: extern "C" fn() -> i32 = std::mem::transmute(entry);
            entry();
        }
    }
}
