//! A web config: read, or refused with a line that it has; no secret of it is shown.

use gpuscope::serve::http::web_config::parse;

pub fn run(text: &str) {
    match parse(text) {
        Ok(config) => {
            if let Some(tls) = config.tls {
                assert!(tls.oldest <= tls.newest);
                assert!(!tls.cert_file.as_os_str().is_empty() && !tls.key_file.as_os_str().is_empty());
            }
            assert!(config.users.values().all(|hash| hash.starts_with("$2")));
            assert!(config.users.keys().all(|name| !name.is_empty() && !name.contains(':')));
        }
        Err(mistake) => {
            // YAML ends a line with a carriage return too
            let lines = text.split(['\n', '\r']).count() as u64;
            assert!(mistake.line <= lines, "{mistake:?}");
            assert_eq!(mistake.said.matches("\nhint: ").count(), 1, "{mistake:?}");
        }
    }
}
