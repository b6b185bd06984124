//! Waiting for descriptors.

/// Waits until one of `fds` is readable or `millis` are over (-1: for ever); whether one is.
pub(crate) fn wait_readable<const N: usize>(fds: [i32; N], millis: i32) -> bool {
    let mut polled = fds.map(|fd| libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    });
    // SAFETY: `polled` is an array of initialised entries
    unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, millis) > 0 }
}
