//! Tables that can be sorted.

use super::written::Text;
use std::fmt::Write;

/// Rows that are shown at first.
const SHOWN: usize = 15;

/// A cell.
pub(super) struct Cell {
    /// What it is sorted by; `None`: by its text.
    value: Option<f64>,
    html: String,
}

/// A number, and how it reads.
pub(super) fn number(value: f64, words: &str) -> Cell {
    Cell {
        value: Some(value),
        html: Text(words).to_string(),
    }
}

/// A number that may not be known.
pub(super) fn optional(value: Option<u64>, words: fn(u64) -> String) -> Cell {
    let written = value.map_or_else(|| "–".to_owned(), words);
    number(value.map_or(-1.0, |value| value as f64), &written)
}

/// Running text.
pub(super) fn text(words: &str) -> Cell {
    Cell {
        value: None,
        html: Text(words).to_string(),
    }
}

/// A name from the trace.
pub(super) fn code(words: &str) -> Cell {
    Cell {
        value: None,
        html: format!("<code>{}</code>", Text(words)),
    }
}

/// What has been made markup already.
pub(super) fn markup(html: String) -> Cell {
    Cell { value: None, html }
}

/// A number with a bar as long as its part of the most.
pub(super) fn bar(value: f64, most: f64, words: &str) -> Cell {
    let share = (value / most.max(f64::MIN_POSITIVE) * 100.0).clamp(0.0, 100.0);
    Cell {
        value: Some(value),
        html: format!(
            "<span class=\"with-bar\"><i style=\"width:{share:.1}%\"></i>{}</span>",
            Text(words)
        ),
    }
}

/// Appends a table; the rows behind the first are folded away.
pub(super) fn write(heads: &[&str], rows: &[Vec<Cell>], page: &mut String) {
    page.push_str("<div class=\"scroll\"><table>\n<thead><tr>");
    for (column, head) in heads.iter().enumerate() {
        let numeric = rows
            .first()
            .and_then(|row| row.get(column))
            .is_some_and(|cell| cell.value.is_some());
        let class = if numeric { " class=\"n\"" } else { "" };
        let _ = write!(
            page,
            "<th{class} scope=\"col\"><button type=\"button\">{}</button></th>",
            Text(head)
        );
    }
    page.push_str("</tr></thead>\n<tbody>\n");
    for (index, row) in rows.iter().enumerate() {
        page.push_str(if index < SHOWN { "<tr>" } else { "<tr class=\"more\">" });
        for cell in row {
            let _ = match cell.value {
                Some(value) => write!(page, "<td class=\"n\" data-v=\"{value}\">{}</td>", cell.html),
                None => write!(page, "<td>{}</td>", cell.html),
            };
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
