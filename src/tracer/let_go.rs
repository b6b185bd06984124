//! Says which files were let go of, but not more often than somebody would read: any user can overwrite a library again
//! and again.

use std::path::PathBuf;
use std::time::{Duration, Instant};

const PERIOD: Duration = Duration::from_secs(60);
const MOST: usize = 10;

/// Says which files were let go of, but not more often than somebody would read.
#[derive(Debug, Default)]
pub(super) struct LetGo {
    since: Option<Instant>,
    said: usize,
    unsaid: usize,
}

impl LetGo {
    /// What is to be said now of these.
    pub(super) fn lines(&mut self, paths: &[PathBuf], now: Instant) -> Vec<String> {
        let mut lines = Vec::new();
        if self.since.is_some_and(|since| now.duration_since(since) >= PERIOD) {
            if self.unsaid > 0 {
                let more = self.unsaid;
                lines.push(format!(
                    "gpuscope: {more} more times a library was being overwritten: let go of it"
                ));
            }
            *self = LetGo::default();
        }
        for path in paths {
            self.since.get_or_insert(now);
            if self.said == MOST {
                self.unsaid += 1;
                continue;
            }
            self.said += 1;
            let path = path.display();
            lines.push(format!("gpuscope: {path} is being overwritten: let go of it"));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_are_named_and_the_others_are_counted() {
        let (mut let_go, start) = (LetGo::default(), Instant::now());
        let paths = vec![PathBuf::from("/home/a/libcuda.so.1"); 7];
        let lines = |let_go: &mut LetGo, second, count: usize| {
            let_go.lines(&paths[..count], start + Duration::from_secs(second)).len()
        };
        assert_eq!(
            (
                lines(&mut let_go, 0, 7),
                lines(&mut let_go, 1, 7),
                lines(&mut let_go, 2, 7)
            ),
            (7, 3, 0)
        );
        let said = let_go.lines(&paths[..1], start + PERIOD);
        assert!(said[0].contains("11 more times") && said.len() == 2, "{said:?}");
        assert_eq!(lines(&mut let_go, 300, 0), 0);
    }
}
