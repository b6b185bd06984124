//! A hook file: read, or refused with a line that it has; and its rows can be planned.

use crate::world::EVERYTHING;
use gpuscope::capture::plan;
use gpuscope::catalog::{Catalog, Row, SiteKind};

pub fn run(text: &str) {
    let mut catalog = Catalog::default();
    if let Err(error) = catalog.add_hooks("x", text) {
        assert!((1..=text.split('\n').count()).contains(&error.line), "{error}");
        return;
    }
    for row in &catalog.rows {
        let _ = plan(&catalog, row, EVERYTHING);
        let library = catalog.library_with(row.library).expect("the row's library");
        let _ = library.matches(&row.symbol);
        assert!(row.is_glob() || is_found(&catalog, row));
    }
}

fn is_found(catalog: &Catalog, row: &Row) -> bool {
    let major = Some(row.majors.first);
    match row.site {
        SiteKind::Function => catalog.find(row.library, &row.symbol, major).is_some(),
        SiteKind::StaticProbe => catalog.find_probe(row.library, &row.symbol, major).is_some(),
        SiteKind::KernelFunction | SiteKind::Tracepoint => true,
    }
}
