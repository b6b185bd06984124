//! Tables: columns, and rows of typed cells.

use super::cell::Cell;
use crate::text::quantity::plural;

/// Rows that are shown where there is little room.
const FEW: usize = 12;

/// Which side of its column a cell stands on; numbers on the right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Text,
    Number,
}

/// Where there is room for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    Everywhere,
    /// HTML alone.
    Pages,
    /// Text and Markdown: a page has it otherwise.
    Lines,
}

/// One column.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    pub(super) name: &'static str,
    pub(super) side: Side,
    pub(super) room: Room,
    pub bar: bool,
    rare: bool,
    /// Characters that text has room for at least.
    pub(super) least: usize,
    /// What text puts between it and the words to its left.
    pub(super) before: &'static str,
}

impl Column {
    const fn new(name: &'static str, side: Side) -> Column {
        Column {
            name,
            side,
            room: Room::Everywhere,
            bar: false,
            rare: false,
            least: 0,
            before: " ",
        }
    }

    /// Of numbers of any unit.
    #[must_use]
    pub const fn number(name: &'static str) -> Column {
        Column::new(name, Side::Number)
    }

    /// Of names and words.
    #[must_use]
    pub const fn text(name: &'static str) -> Column {
        Column::new(name, Side::Text)
    }

    /// On pages, with a bar as long as its part of the most.
    #[must_use]
    pub const fn bar(mut self) -> Column {
        self.bar = true;
        self
    }

    /// Only where some row has a number other than 0, or words, in it.
    #[must_use]
    pub const fn rare(mut self) -> Column {
        self.rare = true;
        self
    }

    /// Only where there is much room.
    #[must_use]
    pub(crate) const fn on_pages(mut self) -> Column {
        self.room = Room::Pages;
        self
    }

    /// Only where rows have parts below them.
    #[must_use]
    pub(crate) const fn in_lines(mut self) -> Column {
        self.room = Room::Lines;
        self
    }

    /// In text, all words are one column, in which `words` stand before these.
    #[must_use]
    pub const fn after(mut self, words: &'static str) -> Column {
        self.before = words;
        self
    }
}

/// As many cells as there are columns.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Row {
    pub cells: Vec<Cell>,
    /// Of which it is the sum: pages show these instead, lines some of them below.
    pub parts: Vec<Vec<Cell>>,
}

impl Row {
    /// The first parts whose words tell them from the whole.
    pub(super) fn shown_parts(&self, few: usize) -> impl Iterator<Item = &Vec<Cell>> {
        let tells = |cells: &&Vec<Cell>| {
            let new = (0..cells.len()).filter(|column| self.is_new(cells, *column));
            new.into_iter()
                .any(|column| cells[column].value().is_none() && cells[column].says())
        };
        self.parts.iter().filter(tells).take(few)
    }

    /// A cell of a part says what the whole does not; numbers always do.
    pub(super) fn is_new(&self, part: &[Cell], column: usize) -> bool {
        let cell = part.get(column);
        cell != self.cells.get(column) || cell.is_some_and(|cell| cell.value().is_some())
    }
}

impl From<Vec<Cell>> for Row {
    fn from(cells: Vec<Cell>) -> Row {
        Row {
            cells,
            parts: Vec::new(),
        }
    }
}

/// Columns, and rows of typed cells.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Table {
    pub columns: Vec<Column>,
    pub rows: Vec<Row>,
    /// Rows that text and Markdown show.
    pub few: usize,
    /// Parts of one row that these show.
    pub few_parts: usize,
    /// What a row is, in the singular: said of those that are not shown.
    pub what: &'static str,
    /// Which form has all of them.
    pub all_in: &'static str,
    /// A column of counts, whose sum is told of rows that are not shown, and what is counted, in the singular.
    pub sum: Option<(usize, &'static str)>,
}

impl Table {
    #[must_use]
    pub fn new(columns: Vec<Column>, rows: Vec<Row>) -> Table {
        Table {
            columns,
            rows,
            few: FEW,
            few_parts: 3,
            what: "row",
            all_in: "--html, --json",
            sum: None,
        }
    }

    /// Of rows without parts.
    #[must_use]
    pub fn flat(columns: Vec<Column>, rows: impl Iterator<Item = Vec<Cell>>) -> Table {
        Table::new(columns, rows.map(Row::from).collect())
    }

    /// What a row is.
    #[must_use]
    pub fn of(self, what: &'static str) -> Table {
        Table { what, ..self }
    }

    /// What a row is, and what is counted in which of its columns.
    #[must_use]
    pub fn counting(self, what: &'static str, column: usize, unit: &'static str) -> Table {
        Table {
            what,
            sum: Some((column, unit)),
            ..self
        }
    }

    /// Its columns of numbers have so many characters at least, so that tables below each other are alike.
    #[must_use]
    pub(crate) fn wide(mut self, least: &[usize]) -> Table {
        let is_number = |column: &&mut Column| column.side == Side::Number;
        let numbers = self.columns.iter_mut().filter(is_number);
        numbers.zip(least).for_each(|(column, least)| column.least = *least);
        self
    }

    /// The columns that `shown` has room for, with their places in a row.
    pub(super) fn columns_of(&self, left_out: Room) -> Vec<(usize, &Column)> {
        let has_number = |row: &Row, index: usize| {
            let cell = row.cells.get(index);
            cell.is_some_and(|cell| cell.value().map_or(cell.says(), |value| value != 0.0))
        };
        let is_shown = |index: usize, column: &Column| {
            column.room != left_out && (!column.rare || self.rows.iter().any(|row| has_number(row, index)))
        };
        let columns = self.columns.iter().enumerate();
        columns.filter(|(index, column)| is_shown(*index, column)).collect()
    }

    pub(super) fn shown(&self) -> &[Row] {
        self.rows.get(..self.few).unwrap_or(&self.rows)
    }

    /// `… 12 more functions, 345 calls (--html, --json)`; `None`: all are shown.
    pub(super) fn rest(&self) -> Option<String> {
        let rest = self.rows.get(self.few..).filter(|rest| !rest.is_empty())?;
        let number = plural(rest.len() as u64, &format!("more {}", self.what));
        let sum = self.sum.map_or_else(String::new, |(column, unit)| {
            let counts = rest.iter().filter_map(|row| row.cells.get(column)?.count());
            format!(", {}", plural(counts.fold(0, u64::saturating_add), unit))
        });
        Some(format!("… {number}{sum} ({})", self.all_in))
    }
}
