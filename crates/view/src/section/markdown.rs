//! Chapters as Markdown that GitHub and GitLab read: folded away, but for what is grave.

use super::table::{Room, Row, Side, Table};
use super::{Cell, Chapter};
use crate::text::quantity::escaped;
use std::fmt::Write;

/// Appends all sections of a chapter.
pub fn write(chapter: &Chapter, out: &mut String) {
    for section in &chapter.sections {
        let open = if section.unfolded { " open" } else { "" };
        let heading = html(&chapter.heading(section));
        let _ = write!(out, "<details{open}><summary>{heading}</summary>\n\n");
        section.lines.iter().for_each(|line| sentence(line, out));
        table(&section.table, out);
        section.below.iter().for_each(|line| sentence(line, out));
        out.push_str("</details>\n\n");
    }
}

/// Appends a table and what it leaves out, with an empty line behind.
pub(crate) fn table(table: &Table, out: &mut String) {
    if table.rows.is_empty() {
        return;
    }
    let columns = table.columns_of(Room::Pages);
    line(columns.iter().map(|(_, column)| cell(column.name)), out);
    let side = |side: Side| if side == Side::Number { "--:" } else { "---" };
    let rule: Vec<&str> = columns.iter().map(|(_, column)| side(column.side)).collect();
    let _ = writeln!(out, "|{}|", rule.join("|"));
    let places: Vec<usize> = columns.iter().map(|(index, _)| *index).collect();
    for row in table.shown() {
        line(
            places
                .iter()
                .map(|index| row.cells.get(*index).map_or_else(String::new, word)),
            out,
        );
        let parts = row.shown_parts(table.few_parts);
        parts.for_each(|cells| line(part(row, cells, &places).into_iter(), out));
    }
    out.push('\n');
    table.rest().iter().for_each(|line| sentence(line, out));
}

/// A line of its own, with an empty line behind.
pub(crate) fn sentence(line: &str, out: &mut String) {
    let _ = write!(out, "{}\n\n", cell(line));
}

/// What a row is part of is not said again.
fn part(row: &Row, cells: &[Cell], places: &[usize]) -> Vec<String> {
    let said = |index: &usize| match (row.is_new(cells, *index), cells.get(*index)) {
        (true, Some(cell)) => word(cell),
        _ => String::new(),
    };
    places.iter().map(said).collect()
}

fn line(cells: impl Iterator<Item = String>, out: &mut String) {
    let _ = writeln!(out, "| {} |", cells.collect::<Vec<_>>().join(" | "));
}

fn word(value: &Cell) -> String {
    match value {
        Cell::Name(name) | Cell::Error(name) | Cell::Call { name, .. } => code(name),
        Cell::Site { place, .. } => code(place),
        Cell::Text(text) => cell(text),
        Cell::Aside(_) => String::new(),
        number => number.words(),
    }
}

/// Text from a trace within a block of HTML, where nothing is Markdown.
fn html(text: &str) -> String {
    escaped(text)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// Text from a trace in a cell or in a line of its own: neither markup nor the end of the cell.
pub fn cell(text: &str) -> String {
    let text = escaped(text);
    let mut out = String::new();
    if begins_a_list(&text) {
        // seen by nobody
        out.push_str("&#8203;");
    }
    for character in text.chars() {
        match character {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '|' | '*' | '_' | '`' | '[' | ']' | '\\' | '#' | '!' | '~' => {
                out.push('\\');
                out.push(character);
            }
            // no mention, no reference
            '@' => out.push_str("&#64;"),
            other => out.push(other),
        }
    }
    out
}

/// `- x`, `+ x`, `3. x`, `3) x`, and what underlines a heading.
fn begins_a_list(text: &str) -> bool {
    let numberless = text.trim_start_matches(|sign: char| sign.is_ascii_digit());
    let signs: &[char] = match numberless.len() < text.len() {
        true => &['.', ')'],
        false => &['-', '+'],
    };
    let rest = numberless.strip_prefix(signs);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '-'])) || text.starts_with('=')
}

/// A name as code; what could end it is written otherwise.
pub(crate) fn code(text: &str) -> String {
    if text.is_empty() {
        return "-".to_owned();
    }
    let text = escaped(text).replace('`', "'").replace('|', "¦");
    format!("`{text}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_name_stays_in_its_cell() {
        assert_eq!(cell("a|b\n<img> @me"), "a\\|b\\\\n&lt;img&gt; &#64;me");
        assert_eq!(code("a`b|c"), "`a'b¦c`");
        assert_eq!(html("a_b<c>&"), "a_b&lt;c&gt;&amp;");
        assert_eq!([cell("3. x"), cell("- x")], ["&#8203;3. x", "&#8203;- x"]);
        assert_eq!([cell("3.5 x"), cell("-5 x")], ["3.5 x", "-5 x"]);
    }
}
