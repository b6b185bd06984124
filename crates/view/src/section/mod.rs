//! Parts of a page as plain data, and what writes them as text, Markdown and HTML.
//!
//! Who knows a subject says once what there is to tell of it, as [`Chapter`]s with a [`Table`] of typed cells; units,
//! escapes and what has no room are the business of [`text`], [`markdown`] and [`html`], which know no subject. What
//! comes from the trace is not escaped before it gets here.

mod cell;
pub mod html;
pub mod markdown;
mod names;
pub mod page;
mod table;
pub mod text;
pub(crate) mod words;

pub use cell::Cell;
pub(crate) use cell::Part;
pub(crate) use table::Row;
pub use table::{Column, Table};

/// What belongs together, under one title.
#[derive(Debug, Clone, PartialEq)]
pub struct Chapter {
    /// In addresses of a page, where it is unique.
    pub id: &'static str,
    /// A word for links to it.
    pub name: &'static str,
    pub title: String,
    pub sections: Vec<Section>,
}

/// Lines, and a table below them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Section {
    /// `None`: that of the chapter.
    pub title: Option<String>,
    /// The table in a few words, such as its sums; may be empty.
    pub about: String,
    pub lines: Vec<String>,
    /// Without rows it is not shown.
    pub table: Table,
    /// What the table leaves out on purpose.
    pub below: Option<String>,
    /// Nobody should have to unfold it.
    pub unfolded: bool,
}

impl Section {
    /// There is something below its title.
    #[must_use]
    pub fn says(&self) -> bool {
        !self.table.rows.is_empty() || !self.lines.is_empty() || self.below.is_some()
    }
}

impl Chapter {
    /// One of a single section; the title is the chapter's.
    #[must_use]
    pub fn of(id: &'static str, name: &'static str, title: &str, section: Section) -> Chapter {
        Chapter {
            id,
            name,
            title: title.to_owned(),
            sections: vec![section],
        }
    }

    /// `title: about` of a section that stands alone.
    fn heading(&self, section: &Section) -> String {
        let title = section.title.as_ref().unwrap_or(&self.title);
        match section.about.as_str() {
            "" => title.clone(),
            about => format!("{title}: {about}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chapter() -> Chapter {
        let columns = vec![
            Column::text("call"),
            Column::text("from").after(" at "),
            Column::number("calls"),
            Column::number("total").bar(),
            Column::number("max").in_lines(),
            Column::text("arguments").on_pages(),
        ];
        let row = |name: &str, site: Cell, calls: u64| {
            let total = Cell::AtMost(Box::new(Cell::Duration(calls * 1000)));
            let name = Cell::Name(name.to_owned());
            let most = Cell::of(Some(calls * 1000).filter(|ns| *ns > 1000), Cell::Duration);
            vec![name, site, Cell::Count(calls), total, most, Cell::Text("{}".to_owned())]
        };
        let site = |site: &str| Cell::site(site.to_owned());
        let whole = Row {
            cells: row("a|<b>\u{1b}", Cell::Unknown, 3),
            parts: vec![
                row("a|<b>\u{1b}", site("x.py:1 f"), 2),
                row("a|<b>\u{1b}", Cell::Unknown, 1),
            ],
        };
        let more = [4, 5].map(|calls| Row::from(row("b", site("y.py:2"), calls)));
        let table = Table::new(columns, [whole].into_iter().chain(more).collect());
        let section = Section {
            about: "12 of <3>".to_owned(),
            lines: vec!["a *line*".to_owned()],
            table: Table { few: 2, ..table }.counting("call", 2, "call"),
            ..Section::default()
        };
        Chapter::of("waits", "Waiting", "Waits", section)
    }

    #[test]
    fn text_has_numbers_first_and_the_names_in_one_column() {
        let mut out = String::new();
        text::write(&chapter(), text::Ink(false), &mut out);
        let lines = [
            "",
            "Waits: 12 of <3>",
            "  a *line*",
            "  calls    total    max  call",
            "      3 ≤ 3.0 µs 3.0 µs  a|<b>\\u{1b}",
            "      2 ≤ 2.0 µs 2.0 µs    at x.py:1 f",
            "      4 ≤ 4.0 µs 4.0 µs  b at y.py:2",
            "  … 1 more call, 5 calls (--html, --json)\n",
        ];
        assert_eq!(out.replace(crate::text::fit::GAP, ""), lines.join("\n"));
    }

    #[test]
    fn markdown_folds_it_away_and_nothing_ends_a_cell() {
        let mut out = String::new();
        markdown::write(&chapter(), &mut out);
        let lines = [
            "<details><summary>Waits: 12 of &lt;3&gt;</summary>\n",
            "a \\*line\\*\n",
            "| call | from | calls | total | max |\n|---|---|--:|--:|--:|",
            "| `a¦<b>\\u{1b}` | - | 3 | ≤ 3.0 µs | 3.0 µs |",
            "|  | `x.py:1 f` | 2 | ≤ 2.0 µs | 2.0 µs |",
            "| `b` | `y.py:2` | 4 | ≤ 4.0 µs | 4.0 µs |\n",
            "… 1 more call, 5 calls (--html, --json)\n\n</details>\n\n",
        ];
        assert_eq!(out, lines.join("\n"));
    }

    #[test]
    fn a_page_has_parts_alone_to_sort_and_bars_of_the_most() {
        let mut page = String::new();
        html::write(&chapter(), &mut page);
        assert!(page.starts_with("<section id=\"waits\">\n<h2>Waits</h2>\n<p>12 of &lt;3&gt;.</p>\n<p>a *line*</p>\n"));
        assert_eq!(page.matches("<tr>").count(), 1 + 4, "{page}");
        assert!(
            page.contains("<td><code>a|&lt;b&gt;\\u{1b}</code></td><td><code>x.py:1 f</code></td>"),
            "{page}"
        );
        assert!(page.contains("data-v=\"4000\"><span class=\"with-bar\"><i style=\"width:80.0%\"></i>≤ 4.0 µs</span>"));
        assert!(page.contains("arguments") && !page.contains(">max<"), "{page}");
    }

    #[test]
    fn what_has_no_rows_has_no_table() {
        let empty = Chapter::of("x", "X", "X", Section::default());
        let (mut text, mut markdown, mut page) = (String::new(), String::new(), String::new());
        text::write(&empty, text::Ink(false), &mut text);
        markdown::write(&empty, &mut markdown);
        html::write(&empty, &mut page);
        assert_eq!(text, "\nX\n");
        assert!(!markdown.contains('|') && !page.contains("<table"), "{markdown}{page}");
    }
}
