//! The rows of a part of a trace.

use super::{Kind, Meta, Record, Taker};

/// Hands on what began at `from` or later, and before `to`; of idle times what lies between. Totals are of more, and are
/// not handed on.
pub struct Crop<'a> {
    from: i64,
    until: i64,
    to: &'a mut dyn Taker,
    /// That were handed on.
    pub rows: u64,
}

impl<'a> Crop<'a> {
    /// Times are ns since the start of the trace.
    pub fn new(from: i64, until: i64, to: &'a mut dyn Taker) -> Crop<'a> {
        Crop {
            from,
            until,
            to,
            rows: 0,
        }
    }

    fn hand(&mut self, record: &Record<'_>) {
        self.rows += 1;
        self.to.take(record);
    }
}

impl Taker for Crop<'_> {
    fn start(&mut self, meta: &Meta) {
        self.to.start(meta);
    }

    fn take(&mut self, record: &Record<'_>) {
        if matches!(record.kind, Kind::Idle | Kind::DeviceIdle) {
            let (at, end) = (record.at.max(self.from), record.end().min(self.until));
            if end > at {
                let ns = Some(end.abs_diff(at));
                self.hand(&Record { at, ns, ..*record });
            }
        } else if (self.from..self.until).contains(&record.at) {
            self.hand(record);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Kept(Vec<(Kind, i64, Option<u64>)>);

    impl Taker for Kept {
        fn take(&mut self, record: &Record<'_>) {
            self.0.push((record.kind, record.at, record.ns));
        }
    }

    #[test]
    fn a_call_belongs_to_where_it_begins_and_idle_time_is_cut() {
        let mut kept = Kept(Vec::new());
        let mut crop = Crop::new(100, 200, &mut kept);
        for (kind, at, ns) in [
            (Kind::Call, 50, 100),
            (Kind::Call, 100, 500),
            (Kind::Idle, 50, 80),
            (Kind::Idle, 190, 80),
            (Kind::Idle, 200, 80),
            (Kind::Call, 200, 1),
        ] {
            let ns = Some(ns);
            crop.take(&Record {
                ns,
                ..Record::new(kind, at, 7)
            });
        }
        assert_eq!(crop.rows, 3);
        let cut = [
            (Kind::Call, 100, Some(500)),
            (Kind::Idle, 100, Some(30)),
            (Kind::Idle, 190, Some(10)),
        ];
        assert_eq!(kept.0, cut);
    }
}
