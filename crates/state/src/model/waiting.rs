//! For how long threads waited: what they asked to wait, and waits that nobody asked for by name, none of them twice.

use super::kind::HiddenKind;

/// Sums in one unit, whichever it is; `None`: not measured.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct Waiting {
    asked: Option<f64>,
    /// Some of these are among what was asked for: a small copy, and the wait for it.
    items: Option<f64>,
    hidden: Option<f64>,
}

impl Waiting {
    /// Adds `value` of waits that were asked for, or of that kind of hidden ones.
    pub fn note(&mut self, hidden: Option<&str>, value: Option<f64>) {
        let sum = match hidden.map(|kind| kind == HiddenKind::Item.name()) {
            None => &mut self.asked,
            Some(true) => &mut self.items,
            Some(false) => &mut self.hidden,
        };
        *sum = plus(*sum, value);
    }

    /// At least so much.
    #[must_use]
    pub fn at_least(&self) -> Option<f64> {
        let either = match (self.asked, self.items) {
            (Some(asked), Some(items)) => Some(asked.max(items)),
            (asked, items) => asked.or(items),
        };
        plus(either, self.hidden)
    }
}

fn plus(sum: Option<f64>, value: Option<f64>) -> Option<f64> {
    match (sum, value) {
        (Some(sum), Some(value)) => Some(sum + value),
        (sum, value) => sum.or(value),
    }
}
