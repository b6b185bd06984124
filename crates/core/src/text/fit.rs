//! Text as wide as a terminal: tables are broken between columns, all else between words, and a number stays with its
//! unit. What is no terminal gets lines as long as they are. Pure.

/// What writers of tables put between two columns. It takes no room; text from elsewhere cannot hold it, as control
/// characters are escaped there.
pub const GAP: char = '\u{1f}';

/// Before what was moved to a line of its own.
const INDENT: usize = 4;
const UNITS: [&str; 10] = ["ns", "µs", "ms", "s", "B", "KiB", "MiB", "GiB", "TiB", "%"];

/// `text` in lines of at most `columns` characters, unless one word is longer; `None`: as it is.
#[must_use]
pub fn fit(text: &str, columns: Option<usize>) -> String {
    let Some(columns) = columns else {
        return text.replace(GAP, "");
    };
    let lines: Vec<&str> = text.split('\n').collect();
    let mut fitted = Vec::new();
    for block in lines.chunk_by(|a, b| is_row(a) && is_row(b)) {
        match is_row(block[0]) {
            true => table(block, columns, &mut fitted),
            false => fitted.push(prose(block[0], columns)),
        }
    }
    fitted.join("\n")
}

fn is_row(line: &str) -> bool {
    line.contains(GAP)
}

/// All rows are broken at the same columns; the last, which is as long as its text, where it does not fit.
fn table(rows: &[&str], columns: usize, out: &mut Vec<String>) {
    let cells: Vec<Vec<&str>> = rows.iter().map(|row| row.split(GAP).collect()).collect();
    let fixed = cells.iter().map(Vec::len).max().unwrap_or(0).saturating_sub(1);
    let width = |column: usize| {
        let fixed = cells.iter().filter(|row| column + 1 < row.len());
        fixed.map(|row| shown(row[column])).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..fixed).map(width).collect();
    out.extend(cells.iter().map(|row| broken(row, &widths, columns)));
}

fn broken(cells: &[&str], widths: &[usize], columns: usize) -> String {
    let line = format!("\n{}", " ".repeat(INDENT));
    let (mut out, mut used) = (String::new(), 0);
    for (column, cell) in cells.iter().enumerate() {
        let is_last = column + 1 == cells.len();
        let needed = if is_last { shown(cell) } else { widths[column] };
        let is_moved = used > 0 && used + needed > columns;
        if is_moved {
            out.push_str(&line);
            used = INDENT;
        }
        match is_last && (is_moved || used + needed > columns) {
            true => out.push_str(&prose(cell.trim_start(), columns - INDENT).replace('\n', &line)),
            false => out.push_str(cell),
        }
        used += needed;
    }
    out
}

/// A line of words, in as many lines as it takes; all but the first stand a little to the right.
fn prose(line: &str, columns: usize) -> String {
    if shown(line) <= columns {
        return line.to_owned();
    }
    let blanks = line.chars().take_while(|letter| *letter == ' ').count();
    let indent = (blanks + 2).min(columns / 3);
    let (mut out, mut used) = (String::new(), 0);
    for (gap, words) in pieces(line) {
        let size = shown(&words);
        if !out.is_empty() && used + gap + size > columns {
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            used = indent;
        } else {
            out.push_str(&" ".repeat(gap));
            used += gap;
        }
        out.push_str(&words);
        used += size;
    }
    out
}

/// Blanks and the word behind them; a number and its unit are one.
fn pieces(line: &str) -> Vec<(usize, String)> {
    let mut pieces: Vec<(usize, String)> = Vec::new();
    let mut gap = 0;
    for (index, word) in line.split(' ').enumerate() {
        gap += usize::from(index > 0);
        if word.is_empty() {
            continue;
        }
        match pieces.last_mut() {
            Some((_, last)) if gap == 1 && last.ends_with(|letter: char| letter.is_ascii_digit()) && is_unit(word) => {
                last.push(' ');
                last.push_str(word);
            }
            _ => pieces.push((gap, word.to_owned())),
        }
        gap = 0;
    }
    pieces
}

fn is_unit(word: &str) -> bool {
    let end = word.find(|letter: char| !letter.is_alphabetic() && letter != '%');
    UNITS.contains(&&word[..end.unwrap_or(word.len())])
}

/// Characters that take room: no colours.
fn shown(text: &str) -> usize {
    let mut in_colour = false;
    let takes_room = |letter: &char| match (*letter, in_colour) {
        ('\u{1b}', _) => {
            in_colour = true;
            false
        }
        ('m', true) => {
            in_colour = false;
            false
        }
        _ => !in_colour,
    };
    text.chars().filter(takes_room).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TABLE: &str = "layer\n calls\u{1f}      mean\u{1f}     bytes\u{1f}  function\n     7\u{1f}   12.3 ms\u{1f}   1.0 MiB\u{1f}  cuMemAlloc_v2\n";

    #[test]
    fn what_is_no_terminal_gets_whole_lines() {
        let whole = "layer\n calls      mean     bytes  function\n     7   12.3 ms   1.0 MiB  cuMemAlloc_v2\n";
        assert_eq!(fit(TABLE, None), whole);
        assert_eq!(fit(TABLE, Some(80)), whole);
    }

    #[test]
    fn all_rows_of_a_table_are_broken_between_the_same_columns() {
        let narrow =
            "layer\n calls      mean\n         bytes  function\n     7   12.3 ms\n       1.0 MiB\n    cuMemAlloc_v2\n";
        assert_eq!(fit(TABLE, Some(24)), narrow);
    }

    #[test]
    fn only_a_row_whose_name_is_too_long_takes_a_second_line() {
        let narrow = "layer\n calls      mean     bytes  function\n     7   12.3 ms   1.0 MiB\n    cuMemAlloc_v2\n";
        assert_eq!(fit(TABLE, Some(36)), narrow);
    }

    #[test]
    fn sentences_are_broken_between_words_and_numbers_stay_with_their_units() {
        let line = "  a wait of 12.3 ms, and 4 KiB/s";
        assert_eq!(fit(line, Some(16)), "  a wait of\n    12.3 ms, and\n    4 KiB/s");
    }

    #[test]
    fn colours_take_no_room() {
        let line = "\u{1b}[1;31mabc def\u{1b}[0m";
        assert_eq!(fit(line, Some(7)), line);
    }

    proptest! {
        #[test]
        fn nothing_but_blanks_is_lost_and_no_line_is_longer_than_a_word(
            text in "([a-z0-9. ]{0,40}\n|([a-z0-9.]{0,9}\u{1f} ){1,12}[a-z0-9 ]{0,60}\n){0,6}", columns in 24_usize..120
        ) {
            let fitted = fit(&text, Some(columns));
            let letters = |text: &str| text.replace([' ', '\n', GAP], "");
            prop_assert_eq!(letters(&fitted), letters(&text));
            let is_short = |line: &str| shown(line.trim_end()) <= columns || pieces(line).len() == 1;
            prop_assert!(fitted.lines().all(is_short), "{}", fitted);
        }
    }
}
