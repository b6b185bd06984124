//! Numbers in six columns at most.

/// `0`, `12.3`, `456`, `7.89k`, `12.3M`: three digits, thousands by letter.
pub(crate) fn count(number: f64) -> String {
    scaled(number, 1000.0, &["", "k", "M", "G", "T", "P", "E"])
}

/// `0`, `512`, `12.3Ki`, `4.56Gi`: bytes, three digits.
pub(crate) fn bytes(number: f64) -> String {
    scaled(number, 1024.0, &["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"])
}

fn scaled(number: f64, step: f64, units: &[&str]) -> String {
    let (mut number, mut unit) = (number.max(0.0), 0);
    // rounded, 999.6 has four digits
    while number >= step - 0.5 && unit + 1 < units.len() {
        number /= step;
        unit += 1;
    }
    let name = units.get(unit).copied().unwrap_or("");
    match number {
        _ if number >= 99.95 => format!("{number:.0}{name}"),
        _ if number >= 9.995 => format!("{number:.1}{name}"),
        _ if unit == 0 && number.fract() == 0.0 => format!("{number:.0}"),
        _ => format!("{number:.2}{name}"),
    }
}

/// `43%`.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.0}%", share * 100.0)
}

/// `0.4%`, `43%`: of small ones a tenth says something.
pub(crate) fn fine_percent(share: f64) -> String {
    match share < 0.1 {
        true => format!("{:.1}%", share * 100.0),
        false => percent(share),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_have_three_digits_and_a_unit() {
        for (number, expected) in [
            (0.0, "0"),
            (0.25, "0.25"),
            (7.0, "7"),
            (12.34, "12.3"),
            (999.4, "999"),
            (999.6, "1.00k"),
            (12_345.0, "12.3k"),
            (1e9, "1.00G"),
        ] {
            assert_eq!(count(number), expected);
        }
        for (number, expected) in [(512.0, "512"), (1023.7, "1.00Ki"), (1536.0, "1.50Ki"), (80e9, "74.5Gi")] {
            assert_eq!(bytes(number), expected);
        }
        assert_eq!(percent(0.434), "43%");
    }

    proptest! {
        #[test]
        fn a_number_fits_into_six_columns(number in 0.0..1.8e19) {
            prop_assert!(count(number).len() <= 6 && bytes(number).len() <= 6, "{} {}", count(number), bytes(number));
        }
    }
}
