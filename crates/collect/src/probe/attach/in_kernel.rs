//! Functions of the kernel and tracepoints, as part of all that is attached.

use super::Attacher;
use crate::engine::Engine;
use crate::probe::kernel_hooks::KernelHooks;
use crate::probe::rows::Rows;
use crate::probe::session::in_kernel;

impl Attacher {
    /// Functions of the kernel and tracepoints hooked now.
    #[must_use]
    pub fn kernel_functions(&self) -> usize {
        self.kernel.functions()
    }

    /// Follows modules of the kernel that come and go.
    pub fn follow_modules(&mut self, engine: &dyn Engine, rows: &mut dyn Rows) {
        let Ok(session) = in_kernel(engine) else { return };
        for gap in self.kernel.follow_modules(session, rows).unwrap_or_default() {
            self.gap(gap);
        }
    }

    /// Hooks what rows of the kernel name.
    pub fn attach_kernel(&mut self, engine: &dyn Engine, rows: &mut dyn Rows) {
        match in_kernel(engine) {
            Ok(session) => self
                .kernel
                .attach(session, rows)
                .into_iter()
                .for_each(|gap| self.gap(gap)),
            Err(why) if KernelHooks::wants(rows) => self.gap(format!("functions of the kernel: {why}")),
            Err(_) => {}
        }
    }

    /// Calls of functions of the kernel that were not seen, and why.
    pub fn missed_in_kernel(&self, engine: &dyn Engine) -> Vec<String> {
        in_kernel(engine).map_or_else(|_| Vec::new(), |session| self.kernel.missed(session))
    }
}
