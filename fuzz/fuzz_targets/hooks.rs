//! A hook file: read, or refused with a line that it has; and its rows can be planned.
#![no_main]

use gpuscope::capture::{Use, plan};
use gpuscope::catalog::Catalog;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let mut catalog = Catalog::default();
    if let Err(error) = catalog.add_hooks("x", text) {
        assert!((1..=text.split('\n').count()).contains(&error.line), "{error}");
        return;
    }
    let used = Use {
        stream: true,
        returns: true,
        memory: true,
        stacks: true,
        kernels: true,
        work: true,
        launch_stacks: true,
        sync_stacks: true,
    };
    for row in &catalog.rows {
        let _ = plan(&catalog, row, used);
        let library = catalog.library_with(row.library).expect("the row's library");
        let _ = library.matches(&row.symbol);
        assert!(row.is_glob() || catalog.find(row.library, &row.symbol, Some(row.majors.first)).is_some());
    }
});
