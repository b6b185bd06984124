//! TLS, certificates of clients, users: what a web config asks for holds.

use super::secrets::{Secrets, as_nobody, hash, set_mode};
use super::support::{World, settings};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gpuscope::refusal;
use gpuscope::serve::Exchange;
use gpuscope::serve::http::{Server, Settings};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Instant;

const TLS: &str = "tls_server_config:\n  cert_file: server.crt\n  key_file: server.key\n";

fn protected(config: PathBuf) -> World {
    World::with(|settings| settings.web_config = Some(config), 0).gather()
}

fn url(world: &World, scheme: &str, path: &str) -> String {
    format!("{scheme}://{}{path}", world.address())
}

/// Waits until something is so.
fn until(mut so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !so() {
        assert!(start.elapsed() < super::support::LONG, "it never happens");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

fn refused(settings: Settings) -> String {
    let error = Server::start(settings, Arc::new(Exchange::new().unwrap()))
        .err()
        .unwrap();
    refusal::message(&error)
}

fn refused_config(config: &Path) -> String {
    let mut settings = settings(0, &Arc::default());
    settings.web_config = Some(config.to_owned());
    refused(settings)
}

#[test]
fn tls_is_spoken_with_the_certificate_of_the_file() {
    let secrets = Secrets::new();
    let world = protected(secrets.config(TLS));
    let answer = secrets.curl(&[&url(&world, "https", "/metrics")]);
    assert_eq!(
        (answer.code, answer.body.starts_with("scrape ")),
        (200, true),
        "{answer:?}"
    );
    assert_eq!(world.server.as_ref().unwrap().warnings(), [""; 0]);
    let distrusted = secrets.curl(&["--cacert", "stranger.crt", &url(&world, "https", "/metrics")]);
    assert_eq!(distrusted.code, 0);
    assert!(distrusted.errors.contains("certificate"), "{distrusted:?}");
}

#[test]
fn who_speaks_clear_text_to_tls_is_told_so() {
    let secrets = Secrets::new();
    let world = protected(secrets.config(TLS));
    let answer = secrets.curl(&[&url(&world, "http", "/metrics")]);
    assert_eq!(answer.code, 400);
    assert!(answer.body.contains("hint: https://"), "{answer:?}");
}

#[test]
fn tls_to_a_port_without_it_fails_and_harms_nobody() {
    let (secrets, world) = (Secrets::new(), World::gathering(0));
    assert_eq!(secrets.curl(&[&url(&world, "https", "/metrics")]).code, 0);
    assert_eq!(world.get("/metrics", "").code, 200);
}

#[test]
fn an_older_tls_than_allowed_is_refused() {
    let secrets = Secrets::new();
    let world = protected(secrets.config(&format!("{TLS}  min_version: TLS13\n")));
    let url = url(&world, "https", "/healthz");
    assert_eq!(secrets.curl(&["--tls-max", "1.2", &url]).code, 0);
    assert_eq!(secrets.curl(&["--tlsv1.3", &url]).code, 200);
    let old = protected(secrets.config(&format!("{TLS}  max_version: TLS12\n")));
    let url = self::url(&old, "https", "/healthz");
    assert_eq!(secrets.curl(&["--tls-max", "1.2", &url]).code, 200);
    assert_eq!(secrets.curl(&["--tlsv1.3", &url]).code, 0);
}

#[test]
fn clients_need_a_certificate_of_the_ca_where_that_is_asked_for() {
    let secrets = Secrets::new();
    let clients = "  client_ca_file: ca.crt\n  client_auth_type: ";
    let world = protected(secrets.config(&format!("{TLS}{clients}RequireAndVerifyClientCert\n")));
    let url = url(&world, "https", "/metrics");
    assert_eq!(secrets.curl(&[&url]).code, 0);
    assert_eq!(
        secrets
            .curl(&["--cert", "client.crt", "--key", "client.key", &url])
            .code,
        200
    );
    assert_eq!(
        secrets
            .curl(&["--cert", "stranger.crt", "--key", "stranger.key", &url])
            .code,
        0
    );
    let lenient = protected(secrets.config(&format!("{TLS}{clients}VerifyClientCertIfGiven\n")));
    let url = self::url(&lenient, "https", "/metrics");
    assert_eq!(secrets.curl(&[&url]).code, 200);
    assert_eq!(
        secrets
            .curl(&["--cert", "stranger.crt", "--key", "stranger.key", &url])
            .code,
        0
    );
}

#[test]
fn handshakes_that_never_come_do_not_keep_a_scrape_out() {
    let secrets = Secrets::new();
    let world = protected(secrets.config(TLS));
    let silent: Vec<TcpStream> = (0..1000).map(|_| world.connect()).collect();
    assert_eq!(secrets.curl(&[&url(&world, "https", "/metrics")]).code, 200);
    drop(silent);
}

#[test]
fn only_users_see_anything_but_that_it_lives_and_is_ready() {
    let secrets = Secrets::new();
    let users = format!("{TLS}basic_auth_users:\n  alice: {}\n", hash("sesame"));
    let world = protected(secrets.config(&users));
    let code = |user: &[&str], path: &str| {
        let url = url(&world, "https", path);
        secrets.curl(&[user, &[url.as_str()]].concat()).code
    };
    for path in ["/metrics", "/", "/nothing"] {
        assert_eq!(code(&[], path), 401, "{path}");
        assert_eq!(code(&["-u", "alice:wrong"], path), 401, "{path}");
        assert_eq!(code(&["-u", "bob:sesame"], path), 401, "{path}");
    }
    assert_eq!(code(&["-X", "POST"], "/-/keep"), 401, "nor asks for recordings");
    assert_eq!(
        code(&["-u", "alice:sesame", "-X", "POST"], "/-/keep"),
        404,
        "nothing is kept"
    );
    assert_eq!(code(&["-u", "alice:sesame"], "/metrics"), 200);
    assert_eq!(code(&["-u", "alice:sesame"], "/nothing"), 404);
    for path in ["/healthz", "/readyz"] {
        assert_eq!(code(&[], path), 200, "{path}");
        assert_eq!(code(&["-u", "alice:wrong"], path), 200, "{path}");
    }
}

#[test]
fn health_has_a_door_without_certificates_and_passwords() {
    let secrets = Secrets::new();
    let config = secrets.config(&format!(
        "{TLS}  client_ca_file: ca.crt\n  client_auth_type: RequireAndVerifyClientCert\nbasic_auth_users:\n  alice: {}\n",
        hash("sesame")
    ));
    let world = World::with(
        |settings| {
            settings.web_config = Some(config);
            settings.health = vec![super::support::loopback()];
        },
        0,
    )
    .gather();
    let server = world.server.as_ref().unwrap();
    let code = |scheme: &str, path: &str| {
        let url = format!("{scheme}://{}{path}", server.health_addresses()[0]);
        secrets.curl(&[&url]).code
    };
    until(|| code("http", "/readyz") == 200);
    assert_eq!((code("http", "/healthz"), code("http", "/metrics")), (200, 404));
    assert_eq!(
        secrets.curl(&[&url(&world, "https", "/healthz")]).code,
        0,
        "no certificate"
    );
}

#[test]
fn guesses_do_not_keep_out_who_is_known() {
    let secrets = Secrets::new();
    let hash = bcrypt::hash("sesame", 10).unwrap();
    let world = protected(secrets.config(&format!("basic_auth_users:\n  alice: {hash}\n")));
    let said = |password: &str| {
        let coded = STANDARD.encode(format!("alice:{password}"));
        format!("Authorization: Basic {coded}\r\n")
    };
    let alice = said("sesame");
    assert_eq!(world.get("/metrics", &alice).code, 200);
    std::thread::scope(|scope| {
        let (world, said) = (&world, &said);
        for guess in 0..64 {
            scope.spawn(move || {
                let code = world.get("/metrics", &said(&guess.to_string())).code;
                assert!(matches!(code, 401 | 429), "{code}");
            });
        }
        assert_eq!(world.get("/metrics", &alice).code, 200);
    });
    assert_eq!(world.get("/metrics", &alice).code, 200);
}

#[test]
fn headers_of_the_file_come_with_every_answer() {
    let secrets = Secrets::new();
    let world = protected(secrets.config("http_server_config:\n  headers:\n    X-Frame-Options: deny\n"));
    for path in ["/", "/metrics", "/nothing"] {
        assert_eq!(world.get(path, "").header("x-frame-options"), Some("deny"), "{path}");
    }
}

#[test]
fn a_changed_file_is_followed_and_a_wrong_one_is_told_and_not() {
    let secrets = Secrets::new();
    let users = |password: &str| format!("basic_auth_users:\n  alice: {}\n", hash(password));
    let said = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&said);
    let config = secrets.config(&users("first"));
    let world = World::with(
        |settings| {
            settings.web_config = Some(config.clone());
            settings.notice = Box::new(move |words| told.lock().unwrap().push(words.to_owned()));
        },
        0,
    )
    .gather();
    let code = |password: &str| {
        secrets
            .curl(&["-u", &format!("alice:{password}"), &url(&world, "http", "/")])
            .code
    };
    assert_eq!((code("first"), code("second")), (200, 401));
    secrets.config(&users("second"));
    until(|| code("second") == 200);
    assert_eq!(code("first"), 401);
    secrets.config("basic_auth_users:\n  alice: plain\n");
    until(|| {
        let still = code("second");
        assert_eq!(still, 200);
        !said.lock().unwrap().is_empty()
    });
    let said = said.lock().unwrap().join("\n");
    let expected = format!(
        "the web config has changed and cannot be used; the last one stays in force: {}:2: user \"alice\" has no bcrypt \
         hash\nhint: ",
        config.display()
    );
    assert!(said.starts_with(&expected), "{said}");
}

#[test]
fn a_renewed_certificate_is_shown_without_a_restart() {
    let (secrets, renewed) = (Secrets::new(), Secrets::new());
    let config = secrets.config(TLS);
    let world = World::with(
        |settings| {
            settings.web_config = Some(config);
            // between the copies the key does not fit the certificate
            settings.notice = Box::new(|_| {});
        },
        0,
    );
    let url = url(&world, "https", "/healthz");
    assert_eq!(secrets.curl(&[&url]).code, 200);
    assert_eq!(renewed.curl(&[&url]).code, 0);
    for name in ["server.key", "server.crt"] {
        std::fs::copy(renewed.path(name), secrets.path(name)).unwrap();
    }
    until(|| renewed.curl(&[&url]).code == 200);
    assert_eq!(secrets.curl(&[&url]).code, 0);
}

#[test]
fn secrets_that_everybody_may_read_are_warned_of() {
    let secrets = Secrets::new();
    let config = secrets.config(&format!("{TLS}basic_auth_users:\n  alice: {}\n", hash("x")));
    set_mode(&secrets.path("server.key"), 0o644);
    set_mode(&config, 0o644);
    let warnings = protected(config.clone()).server.as_ref().unwrap().warnings();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(
        warnings[0].starts_with(&format!("{} holds hashes of passwords", config.display())),
        "{warnings:?}"
    );
    assert!(warnings[1].contains("server.key holds a private key") && warnings[1].contains("\nhint: chmod 600 "));
}

#[test]
fn a_file_that_may_not_be_read_names_itself_and_its_cure() {
    let secrets = Secrets::new();
    let config = secrets.config(TLS);
    let directory = config.parent().unwrap();
    set_mode(directory, 0o755);
    set_mode(&config, 0o644);
    set_mode(&secrets.path("server.crt"), 0o644);
    set_mode(&secrets.path("server.key"), 0);
    let said = as_nobody(|| refused_config(&config));
    let key = secrets.path("server.key");
    assert!(
        said.starts_with(&format!(
            "failed to read the private key {}: Permission denied",
            key.display()
        )),
        "{said}"
    );
    assert!(
        said.contains("\nhint: gpuscope runs as uid ") && said.contains("chown "),
        "{said}"
    );
    set_mode(&config, 0);
    let said = as_nobody(|| refused_config(&config));
    assert!(
        said.starts_with(&format!(
            "failed to read the web config {}: Permission",
            config.display()
        )),
        "{said}"
    );
}

#[test]
fn wrong_files_are_refused_by_name_and_line() {
    let secrets = Secrets::new();
    let path = |name: &str| secrets.path(name).display().to_string();
    std::fs::write(secrets.path("empty.pem"), "").unwrap();
    for (config, words) in [
        ("tls_server_config: 5\n".to_owned(), format!("{}:1: ", path("web.yml"))),
        (
            TLS.replace("server.crt", "lost.crt"),
            format!("failed to read the certificate {}: No such", path("lost.crt")),
        ),
        (
            TLS.replace("server.crt", "server.key"),
            format!("{}: there is no certificate in it", path("server.key")),
        ),
        (
            TLS.replace("server.key", "empty.pem"),
            format!("{}: there is no private key in it", path("empty.pem")),
        ),
        (
            TLS.replace("server.key", "client.key"),
            format!("failed to use the certificate {}", path("server.crt")),
        ),
    ] {
        let said = refused_config(&secrets.config(&config));
        assert!(said.starts_with(&words) && said.contains("\nhint: "), "{config}{said}");
    }
    assert!(refused_config(&secrets.path("none.yml")).contains("No such file"));
    assert!(refused_config(Path::new("/dev/zero")).contains("it is no file"));
    assert!(refused_config(&secrets.path(".")).contains("it is no file"));
}

#[test]
fn an_address_that_others_reach_is_warned_of_unless_it_is_protected() {
    let secrets = Secrets::new();
    let warnings = |config: Option<PathBuf>| {
        let world = World::with(
            |settings| {
                settings.listen = vec!["0.0.0.0:0".parse().unwrap()];
                settings.web_config = config;
            },
            0,
        );
        world.server.as_ref().unwrap().warnings()
    };
    assert!(warnings(None)[0].contains("reads what runs on this machine\nhint: --web-config"));
    let users = format!("basic_auth_users:\n  alice: {}\n", hash("x"));
    assert!(warnings(Some(secrets.config(&users)))[0].contains("passwords travel in clear"));
    assert_eq!(warnings(Some(secrets.config(TLS))), [""; 0]);
    assert_eq!(World::silent().server.as_ref().unwrap().warnings(), [""; 0]);
}

#[test]
fn another_file_can_be_put_in_force() {
    let secrets = Secrets::new();
    let world = World::gathering(0);
    let server = world.server.as_ref().unwrap();
    assert_eq!(world.get("/metrics", "").code, 200);
    server.protect(Some(&secrets.config(TLS))).unwrap();
    assert_eq!(secrets.curl(&[&url(&world, "https", "/metrics")]).code, 200);
    let error = server.protect(Some(Path::new("/nowhere"))).unwrap_err();
    assert!(
        refusal::message(&error).starts_with("failed to read the web config /nowhere"),
        "{error:?}"
    );
    assert_eq!(secrets.curl(&[&url(&world, "https", "/metrics")]).code, 200);
    server.protect(None).unwrap();
    assert_eq!(world.get("/metrics", "").code, 200);
}
