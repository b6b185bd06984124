//! Figures of one layer: which, where two of them say something. Layers are never added up.

use super::{Function, Snapshot};

/// Whose view of CUDA's work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum View {
    /// What happened: the complete view where it was seen.
    #[default]
    Driver,
    /// What the programmer wrote.
    Runtime,
}

/// A number of one layer, and what the driver's layer has of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Figure {
    pub number: u64,
    pub view: View,
    /// The driver's number; the same where that is the view.
    pub driver: u64,
}

impl View {
    /// As a label of a layer.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            View::Driver => "driver",
            View::Runtime => "runtime",
        }
    }

    /// The driver's, but where the runtime saw more.
    #[must_use]
    pub fn fuller(driver: u64, runtime: u64) -> View {
        match runtime > driver {
            true => View::Runtime,
            false => View::Driver,
        }
    }
}

impl Figure {
    /// The driver's number, but where the runtime's is larger.
    #[must_use]
    pub fn fuller(driver: u64, runtime: u64) -> Figure {
        let view = View::fuller(driver, runtime);
        let number = driver.max(runtime);
        Figure { number, view, driver }
    }

    /// Which layer it is of, where that is not the driver's: `runtime layer; 3 in the driver's`.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        (self.view == View::Runtime).then(|| match self.driver {
            0 => "runtime layer; none in the driver's".to_owned(),
            number => format!("runtime layer; {number} in the driver's"),
        })
    }
}

impl Snapshot {
    /// Calls of CUDA that failed.
    #[must_use]
    pub fn failed(&self) -> Figure {
        let of = |view| self.sum(view, |function| function.errors.unwrap_or(0));
        Figure::fuller(of(View::Driver), of(View::Runtime))
    }

    /// Successful launches, of kernels and of graphs.
    #[must_use]
    pub fn launches(&self) -> Figure {
        let of = |view| self.calls_of("launch", view);
        Figure::fuller(of(View::Driver), of(View::Runtime))
    }

    /// Successful calls of a category in one layer.
    #[must_use]
    pub fn calls_of(&self, category: &str, view: View) -> u64 {
        self.sum(view, |function| function.succeeded(category))
    }

    fn sum(&self, view: View, of: impl Fn(&Function) -> u64) -> u64 {
        let functions = self.functions.iter().filter(|function| function.layer == view.name());
        functions.fold(0, |sum: u64, function| sum.saturating_add(of(function)))
    }
}

impl Function {
    fn succeeded(&self, category: &str) -> u64 {
        match self.category == category {
            true => self.calls.saturating_sub(self.errors.unwrap_or(0)),
            false => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(layer: &str, calls: u64, errors: u64) -> Function {
        Function {
            layer: layer.to_owned(),
            category: "launch".to_owned(),
            calls,
            errors: Some(errors),
            ..Function::default()
        }
    }

    fn of(functions: &[Function]) -> Snapshot {
        Snapshot {
            functions: functions.to_vec(),
            ..Snapshot::default()
        }
    }

    #[test]
    fn layers_are_never_added_up_and_the_fuller_one_speaks() {
        let both = of(&[function("driver", 9, 2), function("runtime", 8, 5)]);
        assert_eq!(both.launches(), Figure::fuller(7, 3));
        assert_eq!((both.launches().number, both.launches().note()), (7, None));
        assert_eq!(both.failed().number, 5);
        assert_eq!(
            both.failed().note().as_deref(),
            Some("runtime layer; 2 in the driver's")
        );
    }

    #[test]
    fn where_no_driver_was_seen_the_runtime_stands_in_and_says_so() {
        let alone = of(&[function("runtime", 6, 0), function("mylib", 100, 100)]);
        assert_eq!(alone.launches().number, 6);
        assert_eq!(
            alone.launches().note().as_deref(),
            Some("runtime layer; none in the driver's")
        );
        assert_eq!(alone.failed().number, 0);
    }
}
