//! Cells in columns; one that has nothing anywhere is left out.

/// A cell that has nothing.
pub(super) const NOTHING: &str = "-";

/// A table: numbers to the right, the last column to the left.
pub(super) struct Table {
    headings: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(super) fn new(headings: &[&'static str]) -> Table {
        Table {
            headings: headings.to_vec(),
            rows: Vec::new(),
        }
    }

    /// A row; `None` is nothing.
    pub(super) fn add(&mut self, cells: Vec<Option<String>>) {
        let cells = cells.into_iter().map(|cell| cell.unwrap_or_else(|| NOTHING.to_owned()));
        self.rows.push(cells.collect());
    }

    /// The heading, then each row.
    pub(super) fn lines(&self) -> Vec<String> {
        let columns: Vec<(usize, usize)> = (0..self.headings.len())
            .filter(|column| self.cells(*column).any(|cell| cell != NOTHING))
            .map(|column| (column, self.width(column)))
            .collect();
        let headings = self.headings.iter().map(|heading| (*heading).to_owned()).collect();
        let all = std::iter::once(&headings).chain(&self.rows);
        all.map(|cells| line(cells, &columns, self.headings.len())).collect()
    }

    fn cells(&self, column: usize) -> impl Iterator<Item = &str> {
        self.rows
            .iter()
            .filter_map(move |row| row.get(column))
            .map(String::as_str)
    }

    fn width(&self, column: usize) -> usize {
        let heading = self.headings.get(column).copied().unwrap_or("");
        let widths = self.cells(column).chain([heading]).map(|cell| cell.chars().count());
        widths.max().unwrap_or(0)
    }
}

fn line(cells: &[String], columns: &[(usize, usize)], number: usize) -> String {
    let cell = |(column, width): &(usize, usize)| {
        let text = cells.get(*column).map_or("", String::as_str);
        match column + 1 == number {
            true => text.to_owned(),
            false => format!("{text:>width$}"),
        }
    };
    columns.iter().map(cell).collect::<Vec<_>>().join(" ")
}
