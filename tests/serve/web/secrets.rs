//! Certificates and passwords, made and used by the programs that operators use.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A directory with a CA, `server` for 127.0.0.1 and `client`, each `.crt` and `.key`, and `stranger` of nobody.
pub struct Secrets(tempfile::TempDir);

impl Secrets {
    pub fn new() -> Secrets {
        let secrets = Secrets(tempfile::tempdir().unwrap());
        secrets.openssl("req -x509 -days 2 -subj /CN=test-ca -keyout ca.key -out ca.crt");
        secrets.openssl("req -x509 -days 2 -subj /CN=stranger -keyout stranger.key -out stranger.crt");
        for name in ["server", "client"] {
            let ask = format!("req -x509 -days 2 -subj /CN={name} -CA ca.crt -CAkey ca.key");
            secrets.openssl(&format!(
                "{ask} -addext subjectAltName=IP:127.0.0.1 -addext basicConstraints=CA:FALSE -keyout {name}.key -out \
                 {name}.crt"
            ));
        }
        for key in ["server.key", "client.key"] {
            fs::set_permissions(secrets.path(key), fs::Permissions::from_mode(0o600)).unwrap();
        }
        secrets
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes the web config.
    pub fn config(&self, text: &str) -> PathBuf {
        let path = self.path("web.yml");
        // as a tool does that replaces files as a whole
        fs::write(self.path("new.yml"), text).unwrap();
        fs::set_permissions(self.path("new.yml"), fs::Permissions::from_mode(0o600)).unwrap();
        fs::rename(self.path("new.yml"), &path).unwrap();
        path
    }

    fn openssl(&self, words: &str) {
        let (command, rest) = words.split_once(' ').unwrap();
        let mut openssl = Command::new("openssl");
        openssl
            .arg(command)
            .args("-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes".split(' '));
        let output = openssl
            .args(rest.split(' '))
            .current_dir(self.0.path())
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{words}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }

    /// curl, that trusts the CA.
    pub fn curl(&self, words: &[&str]) -> Curl {
        let mut curl = Command::new("curl");
        curl.args(["-sS", "--noproxy", "*", "--max-time", "60", "--cacert", "ca.crt"]);
        curl.args(["-w", "\n%{http_code}"])
            .args(words)
            .current_dir(self.0.path());
        Curl::of(&curl.output().unwrap())
    }
}

/// What curl said.
#[derive(Debug)]
pub struct Curl {
    /// 0: there was no answer.
    pub code: u16,
    pub body: String,
    pub errors: String,
}

impl Curl {
    fn of(output: &Output) -> Curl {
        let text = String::from_utf8(output.stdout.clone()).unwrap();
        let (body, code) = text.rsplit_once('\n').unwrap();
        Curl {
            code: code.parse().unwrap(),
            body: body.to_owned(),
            errors: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// A hash of `password` that is cheap to compare.
pub fn hash(password: &str) -> String {
    bcrypt::hash(password, 4).unwrap()
}

/// As nobody, whatever `with` opens; what is left to root is taken from it in this thread alone.
pub fn as_nobody<T>(with: impl FnOnce() -> T) -> T {
    const NOBODY: u32 = 65534;
    // SAFETY: sets an identity of this thread
    let before = unsafe { libc::setfsuid(NOBODY) };
    let result = with();
    // SAFETY: as above
    unsafe { libc::setfsuid(before.cast_unsigned()) };
    result
}

pub fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}
