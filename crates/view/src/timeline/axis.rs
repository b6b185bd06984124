//! Round times along the top.

use super::survey::Window;

/// Two lines: times, and where they are.
#[must_use]
pub(crate) fn axis(window: Window, columns: usize) -> [String; 2] {
    let unit = unit(window);
    let mut step = 1u64;
    let mut ticks = ticks(window, columns, step, unit);
    // each label needs its own length and a gap
    for candidate in steps(window.ns() / columns.max(1) as u64) {
        step = candidate;
        ticks = self::ticks(window, columns, step, unit);
        let roomy = |pair: &[(usize, String)]| pair[0].0 + pair[0].1.chars().count() + 2 <= pair[1].0;
        if ticks.len() < 2 || ticks.windows(2).all(roomy) {
            break;
        }
    }
    let mut lines = [String::new(), String::new()];
    for (column, label) in ticks {
        let fits = column + label.chars().count() <= columns;
        pad(&mut lines[0], column);
        lines[0].push_str(if fits { &label } else { "" });
        pad(&mut lines[1], column);
        lines[1].push('|');
    }
    lines
}

fn pad(line: &mut String, to: usize) {
    while line.chars().count() < to {
        line.push(' ');
    }
}

/// 1, 2 and 5 of each power of ten, from `least` ns on.
fn steps(least: u64) -> impl Iterator<Item = u64> {
    let powers = std::iter::successors(Some(1u64), |power| power.checked_mul(10));
    powers
        .flat_map(|power| [1, 2, 5].map(|factor| power.saturating_mul(factor)))
        .skip_while(move |step| *step < least)
}

fn ticks(window: Window, columns: usize, step: u64, unit: (u64, &str)) -> Vec<(usize, String)> {
    let (ns, step_ns) = (i128::from(window.ns()), i128::from(step));
    let (from, to) = (i128::from(window.from), i128::from(window.to));
    if (to - from) / step_ns > columns as i128 {
        return vec![(0, String::new()); 2];
    }
    let first = from.div_euclid(step_ns) + i128::from(from.rem_euclid(step_ns) != 0);
    (first..=to.div_euclid(step_ns))
        .map(|index| {
            let at = index * step_ns;
            let column = ((at - from) * columns as i128 / ns) as usize;
            (column.min(columns.saturating_sub(1)), label(at, step, unit))
        })
        .collect()
}

/// The largest of which the window's far end is at least one.
fn unit(window: Window) -> (u64, &'static str) {
    let far = window.to.unsigned_abs().max(window.from.unsigned_abs());
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs")];
    units.into_iter().find(|(ns, _)| far >= *ns).unwrap_or((1, "ns"))
}

/// As many decimals as the steps need.
fn label(at: i128, step: u64, (unit, name): (u64, &str)) -> String {
    let mut decimals = 0;
    let mut part = unit;
    while part > 1 && !step.is_multiple_of(part) {
        part /= 10;
        decimals += 1;
    }
    let sign = if at < 0 { "-" } else { "" };
    let (whole, rest) = (
        at.unsigned_abs() / u128::from(unit),
        at.unsigned_abs() % u128::from(unit),
    );
    match decimals {
        0 => format!("{sign}{whole} {name}"),
        _ => format!("{sign}{whole}.{:0decimals$} {name}", rest / u128::from(part)),
    }
}
