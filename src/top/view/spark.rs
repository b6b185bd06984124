//! A course of two minutes in one line of eighths of blocks.

use crate::top::model::history::SPAN;

const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Times and values, the latest to the right; where nothing was seen there is a space. `highest`: what a full block
/// stands for, else the highest of the values.
pub(super) fn line(points: &[(f64, f64)], width: usize, highest: Option<f64>) -> String {
    let Some((now, _)) = points.last().copied() else {
        return String::new();
    };
    let highest = highest.unwrap_or_else(|| points.iter().map(|(_, value)| *value).fold(0.0, f64::max));
    let step = SPAN / width.max(1) as f64;
    let cell = |place: usize| {
        let until = now - step * (width - 1 - place) as f64;
        let among = points.iter().filter(|(at, _)| *at > until - step && *at <= until);
        let most = among.map(|(_, value)| *value).reduce(f64::max);
        most.map_or(' ', |value| block(value, highest))
    };
    (0..width).map(cell).collect()
}

fn block(value: f64, highest: f64) -> char {
    let share = if highest > 0.0 {
        (value / highest).clamp(0.0, 1.0)
    } else {
        0.0
    };
    let place = (share * (BLOCKS.len() - 1) as f64).round() as usize;
    BLOCKS.get(place).copied().unwrap_or('█')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_is_to_the_right_and_the_highest_is_full() {
        let points = [(100.0, 0.0), (110.0, 5.0), (120.0, 10.0)];
        assert_eq!(line(&points, 12, None), "         ▁▅█");
        assert_eq!(line(&points, 12, Some(20.0)), "         ▁▃▅");
    }

    #[test]
    fn without_points_or_room_there_is_nothing() {
        assert_eq!(line(&[], 10, None), "");
        assert_eq!(line(&[(1.0, 1.0)], 0, None), "");
    }
}
