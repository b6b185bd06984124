//! The file of `gpuscope serve`: read, or refused with places that it has; and what is read can be shown and read again.

use gpuscope::cli::ServeArgs;
use gpuscope::serve::config::parse;
use std::path::Path;

pub fn run(bytes: &[u8]) {
    let args = ServeArgs::default();
    let read = |bytes: &[u8]| parse(&args, Some((Path::new("x"), bytes)));
    let mut config = match read(bytes) {
        Ok(config) => config,
        Err(mistakes) => {
            let lines = bytes.iter().filter(|byte| **byte == b'\n').count() + 1;
            for line in mistakes.to_string().lines().filter(|line| !line.starts_with('…')) {
                let mut parts = line.split(':');
                let place = (parts.next(), parts.next().and_then(|line| line.parse().ok()));
                assert!(
                    matches!(place, (Some("x"), Some(line)) if (1..=lines).contains(&line)),
                    "{line}"
                );
            }
            return;
        }
    };
    // values of headers are not shown
    if let Some(otlp) = &mut config.otlp {
        otlp.headers.clear();
    }
    let again = read(config.show().as_bytes());
    assert_eq!(again.as_ref(), Ok(&config), "{}", config.show());
}
