//! Chapters of a page: tables that can be sorted, of which the rows behind the first are folded away.

use super::table::{Column, Room, Row, Side, Table};
use super::{Cell, Chapter, Section};
use crate::text::quantity::escaped;
use std::fmt::{Display, Formatter, Result, Write};

/// Rows that are shown at first.
const SHOWN: usize = 15;
/// Characters of arguments shown.
const ARGS: usize = 240;

/// Appends a chapter with all its sections.
pub fn write(chapter: &Chapter, page: &mut String) {
    let _ = writeln!(
        page,
        "<section id=\"{}\">\n<h2>{}</h2>",
        chapter.id,
        Text(&chapter.title)
    );
    for section in &chapter.sections {
        heading(section, page);
        section.lines.iter().for_each(|line| sentence(line, page));
        table(&section.table, page);
        section.below.iter().for_each(|line| sentence(line, page));
    }
    page.push_str("</section>\n");
}

/// A paragraph of it.
pub(crate) fn sentence(line: &str, page: &mut String) {
    let _ = writeln!(page, "<p>{}</p>", Text(line));
}

fn heading(section: &Section, page: &mut String) {
    let about = Text(&section.about);
    let _ = match (&section.title, section.about.as_str()) {
        (None, "") => Ok(()),
        (None, _) => writeln!(page, "<p>{about}.</p>"),
        (Some(title), "") => writeln!(page, "<h3>{}</h3>", Text(title)),
        (Some(title), _) => writeln!(page, "<h3>{} <small>{about}</small></h3>", Text(title)),
    };
}

/// Appends a table. Where rows have parts, these are its rows: they can be sorted.
fn table(table: &Table, page: &mut String) {
    if table.rows.is_empty() {
        return;
    }
    let rows: Vec<&Vec<Cell>> = table.rows.iter().flat_map(rows_of).collect();
    let columns = table.columns_of(Room::Lines);
    page.push_str("<div class=\"scroll\"><table>\n<thead><tr>");
    columns.iter().for_each(|(_, column)| head(column, page));
    page.push_str("</tr></thead>\n<tbody>\n");
    let columns: Vec<(usize, &Column, f64)> = columns
        .into_iter()
        .map(|(index, column)| (index, column, most(&rows, index)))
        .collect();
    for (index, cells) in rows.iter().enumerate() {
        page.push_str(if index < SHOWN { "<tr>" } else { "<tr class=\"more\">" });
        for (index, column, most) in &columns {
            cell(cells.get(*index).unwrap_or(&Cell::Unknown), column, *most, page);
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody></table>");
    if rows.len() > SHOWN {
        let _ = write!(
            page,
            "<button type=\"button\" class=\"all\">all {}</button>",
            rows.len()
        );
    }
    page.push_str("</div>\n");
}

fn rows_of(row: &Row) -> Vec<&Vec<Cell>> {
    match row.parts.is_empty() {
        true => vec![&row.cells],
        false => row.parts.iter().collect(),
    }
}

fn most(rows: &[&Vec<Cell>], column: usize) -> f64 {
    let values = rows.iter().filter_map(|cells| cells.get(column)?.value());
    values.fold(f64::MIN_POSITIVE, f64::max)
}

fn head(column: &Column, page: &mut String) {
    let class = if column.side == Side::Number {
        " class=\"n\""
    } else {
        ""
    };
    let _ = write!(
        page,
        "<th{class} scope=\"col\"><button type=\"button\">{}</button></th>",
        Text(column.name)
    );
}

/// A number says what it is sorted by; what is not known is less than all.
fn cell(cell: &Cell, column: &Column, most: f64, page: &mut String) {
    let value = cell.value().unwrap_or(-1.0);
    let _ = match column.side {
        Side::Number if column.bar => {
            let share = (value / most * 100.0).clamp(0.0, 100.0);
            let bar = format!("<i style=\"width:{share:.1}%\"></i>");
            let words = markup(cell);
            write!(
                page,
                "<td class=\"n\" data-v=\"{value}\"><span class=\"with-bar\">{bar}{words}</span></td>"
            )
        }
        Side::Number => write!(page, "<td class=\"n\" data-v=\"{value}\">{}</td>", markup(cell)),
        Side::Text => write!(page, "<td>{}</td>", markup(cell)),
    };
}

fn markup(cell: &Cell) -> String {
    match cell {
        Cell::Moment(at) => format!(
            "<button type=\"button\" data-at=\"{at}\">{}</button>",
            Text(&cell.words())
        ),
        Cell::Name(name) => format!("<code>{}</code>", Text(name)),
        Cell::Error(name) => format!("<code class=\"bad\">{}</code>", Text(name)),
        Cell::Call { name, args } => call(name, args),
        Cell::Site { place, stack } => site(place, stack),
        other => Text(&other.words()).to_string(),
    }
}

fn call(name: &str, args: &str) -> String {
    let short: String = args.chars().take(ARGS).collect();
    let cut = if short.len() < args.len() { "…" } else { "" };
    let (name, args) = (Text(name), Text(&short));
    format!("<code>{name}</code><small class=\"args\">{args}{cut}</small>")
}

/// The line of the program, with the whole stack behind it.
pub(crate) fn site(place: &str, stack: &[String]) -> String {
    let place = format!("<code>{}</code>", Text(place));
    if stack.is_empty() {
        return place;
    }
    let lines = stack.iter().map(|line| format!("<li><code>{}</code></li>", Text(line)));
    let lines: String = lines.collect();
    format!("<details class=\"site\"><summary>{place}</summary><ol>{lines}</ol></details>")
}

/// Neither markup nor the end of an attribute; control characters are visible.
pub(crate) struct Text<'a>(pub &'a str);

impl Display for Text<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        for character in escaped(self.0).chars() {
            match character {
                '&' => out.write_str("&amp;")?,
                '<' => out.write_str("&lt;")?,
                '>' => out.write_str("&gt;")?,
                '"' => out.write_str("&quot;")?,
                '\'' => out.write_str("&#39;")?,
                other => out.write_char(other)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn nothing_becomes_markup(text in any::<String>()) {
            let written = Text(&text).to_string();
            prop_assert!(!written.contains(['<', '>', '"', '\'']));
            prop_assert!(!written.contains(char::is_control));
        }
    }
}
