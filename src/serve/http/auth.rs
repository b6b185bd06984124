//! Who may ask: names and passwords against bcrypt hashes.
//!
//! A comparison takes a tenth of a second by intent. It is made beside the web server's thread, one at a time, and its
//! result is kept; somebody unknown takes as long as somebody known.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::collections::{BTreeMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Semaphore;

/// Results that are kept, of good and of bad passwords each.
const KEPT: usize = 128;
/// Who comes while so many wait is told to come again.
const WAITING: usize = 16;

/// Those who may ask.
pub struct Users {
    hashes: BTreeMap<String, String>,
    known: Mutex<Known>,
    waiting: Semaphore,
    turn: Semaphore,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Admitted,
    Refused,
    /// Too many passwords are being compared.
    Busy,
}

/// Passwords are not kept, only a number that nobody can find without two secret keys.
struct Known {
    keys: [RandomState; 2],
    results: [VecDeque<u128>; 2],
}

impl Users {
    pub(crate) fn new(hashes: BTreeMap<String, String>) -> Users {
        Users {
            hashes,
            known: Mutex::new(Known {
                keys: [RandomState::new(), RandomState::new()],
                results: [VecDeque::new(), VecDeque::new()],
            }),
            waiting: Semaphore::new(WAITING),
            turn: Semaphore::new(1),
        }
    }

    /// Whether nobody has to say who they are.
    pub(crate) fn is_open(&self) -> bool {
        self.hashes.is_empty()
    }

    /// Whether whoever says this may ask.
    pub(crate) async fn judge(&self, authorization: &str) -> Verdict {
        if self.is_open() {
            return Verdict::Admitted;
        }
        let Some((name, password)) = credentials(authorization) else {
            return Verdict::Refused;
        };
        let mark = self.known().mark(&name, &password);
        if let Some(verdict) = self.known().verdict(mark) {
            return verdict;
        }
        let Ok(_place) = self.waiting.try_acquire() else {
            return Verdict::Busy;
        };
        let Ok(_turn) = self.turn.acquire().await else {
            return Verdict::Busy;
        };
        // another connection may have asked for the same
        if let Some(verdict) = self.known().verdict(mark) {
            return verdict;
        }
        let fits = self.compare(&name, password).await;
        self.known().keep(mark, fits);
        if fits { Verdict::Admitted } else { Verdict::Refused }
    }

    async fn compare(&self, name: &str, password: Vec<u8>) -> bool {
        let real = self.hashes.get(name);
        // of somebody unknown: somebody else's, for the time that it takes
        let Some(hash) = real.or_else(|| self.hashes.values().next()).cloned() else {
            return false;
        };
        let fits = tokio::task::spawn_blocking(move || bcrypt::verify(password, &hash).unwrap_or(false)).await;
        fits.unwrap_or(false) && real.is_some()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn mark(&self, name: &str, password: &[u8]) -> u128 {
        let [high, low] = [&self.keys[0], &self.keys[1]].map(|key| u128::from(key.hash_one((name, password))));
        high << 64 | low
    }

    fn verdict(&self, mark: u128) -> Option<Verdict> {
        let [bad, good] = &self.results;
        if good.contains(&mark) {
            return Some(Verdict::Admitted);
        }
        bad.contains(&mark).then_some(Verdict::Refused)
    }

    fn keep(&mut self, mark: u128, fits: bool) {
        let results = &mut self.results[usize::from(fits)];
        if results.len() >= KEPT {
            results.pop_front();
        }
        results.push_back(mark);
    }
}

/// Name and password of a value of `Authorization`. Pure.
#[must_use]
pub fn credentials(authorization: &str) -> Option<(String, Vec<u8>)> {
    let (scheme, coded) = authorization.trim().split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let mut name = STANDARD.decode(coded.trim()).ok()?;
    let colon = name.iter().position(|byte| *byte == b':')?;
    let password = name.split_off(colon + 1);
    name.pop();
    Some((String::from_utf8(name).ok()?, password))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_name_and_password() {
        let said = |text: &str| format!("Basic {}", STANDARD.encode(text));
        assert_eq!(
            credentials(&said("alice:a:b")),
            Some(("alice".to_owned(), b"a:b".to_vec()))
        );
        assert_eq!(credentials(&said(":")), Some((String::new(), Vec::new())));
        assert_eq!(credentials("basic  YTpi "), Some(("a".to_owned(), b"b".to_vec())));
        for wrong in ["", "Basic", "Basic !", "Bearer YTpi", &said("alice"), "Basic /zpi"] {
            assert_eq!(credentials(wrong), None, "{wrong}");
        }
    }

    fn judged(users: &Users, name: &str, password: &str) -> Verdict {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .expect("a runtime");
        let said = format!("Basic {}", STANDARD.encode(format!("{name}:{password}")));
        runtime.block_on(users.judge(&said))
    }

    #[test]
    fn only_the_right_password_of_a_known_name_is_admitted() {
        let hash = |password: &str| bcrypt::hash(password, 4).expect("a hash");
        let (a, b) = (("a".to_owned(), hash("one")), ("b".to_owned(), hash("two")));
        let users = Users::new(BTreeMap::from([a, b]));
        // twice: the second time from what is kept
        for _ in 0..2 {
            assert_eq!(judged(&users, "a", "one"), Verdict::Admitted);
            assert_eq!(judged(&users, "b", "two"), Verdict::Admitted);
            for (name, password) in [
                ("a", "two"),
                ("b", "one"),
                ("c", "one"),
                ("a", ""),
                ("", "one"),
                ("a", "onf"),
            ] {
                assert_eq!(judged(&users, name, password), Verdict::Refused, "{name} {password}");
            }
        }
        assert_eq!(users.known().results.each_ref().map(VecDeque::len), [6, 2]);
    }

    #[test]
    fn a_flood_of_guesses_does_not_push_out_who_is_admitted() {
        let users = Users::new(BTreeMap::from([(
            "a".to_owned(),
            bcrypt::hash("one", 4).expect("a hash"),
        )]));
        assert_eq!(judged(&users, "a", "one"), Verdict::Admitted);
        for guess in 0..2 * KEPT {
            assert_eq!(judged(&users, "a", &guess.to_string()), Verdict::Refused);
        }
        assert_eq!(users.known().results.each_ref().map(VecDeque::len), [KEPT, 1]);
    }
}
