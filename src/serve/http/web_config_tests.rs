use super::*;

const HASH: &str = "$2y$10$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi";

fn refused(text: &str) -> (u64, String) {
    let mistake = parse(text).expect_err(text);
    assert!(mistake.said.contains("\nhint: "), "{mistake:?}");
    (mistake.line, mistake.said)
}

#[test]
fn the_example_of_prometheus_is_understood() {
    let config = parse(&format!(
        "tls_server_config:\n  cert_file: server.crt\n  key_file: /etc/server.key\n  client_auth_type: \
         RequireAndVerifyClientCert\n  client_ca_file: ca.crt\n  min_version: TLS13\nhttp_server_config:\n  http2: \
         true\n  headers:\n    Strict-Transport-Security: max-age=31536000\n    X-Frame-Options: \
         deny\nbasic_auth_users:\n  alice: {HASH}\n"
    ))
    .expect("a config");
    let tls = config.tls.expect("TLS");
    assert_eq!((tls.oldest, tls.newest), (Version::Tls13, Version::Tls13));
    assert_eq!(
        (tls.cert_file, tls.key_file),
        ("server.crt".into(), "/etc/server.key".into())
    );
    let ca_file = "ca.crt".into();
    assert_eq!(
        tls.clients,
        Some(Clients {
            ca_file,
            required: true
        })
    );
    assert_eq!(config.users, BTreeMap::from([("alice".to_owned(), HASH.to_owned())]));
    let headers: Vec<_> = config
        .headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_bytes()))
        .collect();
    let expected = [
        ("strict-transport-security", &b"max-age=31536000"[..]),
        ("x-frame-options", b"deny"),
    ];
    assert_eq!(headers, expected);
}

#[test]
fn an_empty_file_asks_for_nothing() {
    for text in ["", "\n", "# nothing\n", "{}", "---\n", "basic_auth_users:\n"] {
        assert_eq!(parse(text), Ok(WebConfig::default()), "{text:?}");
    }
}

#[test]
fn what_is_not_followed_is_refused_on_its_line() {
    let tls = "tls_server_config:\n  cert_file: a\n  key_file: b\n  ";
    for (text, line, words) in [
        (
            "rate_limit:\n  requests: 1\n".to_owned(),
            2,
            "rate_limit is not followed",
        ),
        (
            format!("{tls}cipher_suites: [TLS_AES_128_GCM_SHA256]\n"),
            4,
            "cipher_suites is not followed",
        ),
        (format!("{tls}cert: x\n"), 4, "cert is not followed"),
        (
            format!("{tls}client_allowed_sans: [a]\n"),
            4,
            "client_allowed_sans is not followed",
        ),
        (format!("{tls}min_version: TLS10\n"), 4, "TLS10 is broken"),
        (format!("{tls}min_version: SSL3\n"), 4, "\"SSL3\" is no version"),
        (
            format!("{tls}min_version: TLS13\n  max_version: TLS12\n"),
            5,
            "older than min_version",
        ),
        (
            format!("{tls}client_auth_type: RequestClientCert\n"),
            4,
            "would take any certificate",
        ),
        (
            format!("{tls}client_auth_type: RequireAndVerifyClientCert\n"),
            4,
            "nothing to verify",
        ),
        (format!("{tls}client_auth_type: Maybe\n"), 4, "\"Maybe\" is unknown"),
        (format!("{tls}client_ca_file: ca\n"), 4, "no certificate is asked for"),
        ("tls_server_config:\n  cert_file: a\n".to_owned(), 0, "has no key_file"),
        (
            "tls_server_confg: {}\n".to_owned(),
            1,
            "unknown field `tls_server_confg`\nhint",
        ),
        (format!("{tls}certfile: x\n"), 4, "unknown field"),
        (
            "http_server_config:\n  headers:\n    Location: x\n".to_owned(),
            3,
            "\"Location\" cannot be set",
        ),
        (
            "http_server_config:\n  headers:\n    X-Frame-Options: \"a\\nb\"\n".to_owned(),
            3,
            "no header may have",
        ),
        (
            "basic_auth_users:\n  alice: secret\n".to_owned(),
            2,
            "user \"alice\" has no bcrypt hash",
        ),
        (
            format!("basic_auth_users:\n  \"a:b\": {HASH}\n"),
            2,
            "\"a:b\" is no name",
        ),
        (
            format!("basic_auth_users:\n  a: {}\n", HASH.replace("$10$", "$31$")),
            2,
            "has cost 31",
        ),
        (format!("basic_auth_users:\n  a: {HASH}\n  a: {HASH}\n"), 3, "uplicate"),
        ("basic_auth_users: [a]\n".to_owned(), 1, "hint"),
        ("a: b: c\n".to_owned(), 1, "hint"),
    ] {
        let (found, said) = refused(&text);
        assert!(said.contains(words), "{text}{said}");
        assert_eq!(found, line, "{text}{said}");
    }
}

#[test]
fn a_password_that_was_written_instead_of_its_hash_is_not_shown() {
    let (_, said) = refused("basic_auth_users:\n  alice: hunter2hunter2\n");
    assert!(!said.contains("hunter2"), "{said}");
}

proptest::proptest! {
    #[test]
    fn any_text_is_read_or_refused_on_a_line_that_it_has(
        lines in proptest::collection::vec("(  ){0,2}(tls_server_config|cert_file|key_file|min_version|headers|\
            http_server_config|basic_auth_users|a)?(: )?(TLS12|\\[|\\{|&a|\\*a|\"|\\PC{0,6})", 0..8)
    ) {
        let text = lines.join("\n");
        if let Err(mistake) = parse(&text) {
            proptest::prop_assert!(mistake.line <= text.split(['\n', '\r']).count() as u64, "{mistake:?}");
            proptest::prop_assert_eq!(mistake.said.matches("\nhint: ").count(), 1, "{:?}", mistake);
        }
    }
}
