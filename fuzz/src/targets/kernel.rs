//! What the kernel says of itself: type information, formats of tracepoints, symbols.

use gpuscope::probe::kernel::btf::Btf;
use gpuscope::probe::kernel::format::Format;
use gpuscope::probe::kernel::place::Names;
use gpuscope::probe::kernel::symbols::functions;

pub fn run(bytes: &[u8]) {
    if let Ok(types) = Btf::parse(bytes.to_vec(), None) {
        for name in types.functions().take(64) {
            if let Some(prototype) = types.function(name) {
                follow(&prototype);
            }
        }
    }
    let text = String::from_utf8_lossy(bytes);
    follow(&Format::parse(&text));
    for symbol in functions(&text, &|_| true) {
        assert!(symbol.name.starts_with(symbol.source_name()));
    }
}

fn follow(names: &dyn Names) {
    for name in names.all() {
        assert!(names.place(&[name.clone()]).is_ok());
        let _ = names.place(&[name, "next".to_owned(), "len".to_owned()]);
    }
}
