//! Memory lost in places with names.

use super::{Account, Options};
use crate::calls::Call;
use crate::{counts, pace};

unsafe extern "C" {
    fn gpusim_leak_step(sites: u32, bytes: *mut usize) -> u32;
}

const FREED: u64 = 4096;

pub fn leak(options: &Options, account: &mut Account) -> Result<String, u32> {
    let sites = options.number("sites", 3).min(3) as usize;
    let (mut steps, mut lost) = (0, 0);
    for _ in pace::steps(options.number("steps", 100)) {
        let mut bytes = [0usize; 3];
        // SAFETY: room for three sizes.
        let code = unsafe { gpusim_leak_step(sites as u32, bytes.as_mut_ptr()) };
        for size in bytes.iter().filter(|size| **size != 0) {
            counts::add(Call::cudaMalloc, 1);
            account.add("device", 0, *size as u64);
            lost += size;
        }
        counts::add(Call::cudaMalloc, 1);
        if code != 0 {
            counts::result("cudaMalloc", code);
            account.failed_as("device", 0, Err(code));
            return Err(code);
        }
        counts::add(Call::cudaFree, 1);
        account.add("device", 0, FREED);
        account.end("device", 0, FREED);
        steps += 1;
    }
    Ok(format!("{steps} steps lost {lost} bytes in {sites} places"))
}
