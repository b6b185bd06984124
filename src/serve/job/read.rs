//! Reads what an exporter answers in Prometheus' text format. Whoever wrote it is not trusted: what is no series is
//! counted and left out.

/// Series beyond these are counted and left out.
const MOST_SERIES: usize = 2_000_000;

/// One value.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    pub name: String,
    pub labels: Vec<(String, String)>,
    pub value: f64,
}

impl Series {
    /// The value of a label; `None`: it has none.
    #[must_use]
    pub(crate) fn label(&self, name: &str) -> Option<&str> {
        let found = self.labels.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// All values of one exporter.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Metrics {
    pub series: Vec<Series>,
    /// Lines that are no series.
    pub(crate) not_understood: u64,
}

impl Metrics {
    /// Whether it is gpuscope that has answered.
    #[must_use]
    pub(crate) fn is_gpuscopes(&self) -> bool {
        self.series.iter().any(|series| series.name.starts_with("gpuscope_"))
    }
}

/// Reads the text of `/metrics`.
#[must_use]
pub(crate) fn read(text: &str) -> Metrics {
    let mut metrics = Metrics::default();
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    for line in lines {
        match series(line).filter(|_| metrics.series.len() < MOST_SERIES) {
            Some(series) => metrics.series.push(series),
            None => metrics.not_understood += 1,
        }
    }
    metrics
}

/// `NAME{LABEL="VALUE",…} NUMBER`, perhaps with a time or an exemplar behind it.
fn series(line: &str) -> Option<Series> {
    let end = line.find(['{', ' '])?;
    let (name, rest) = line.split_at(end);
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(rest) => labels(rest)?,
        None => (Vec::new(), rest),
    };
    let value: f64 = rest.split_ascii_whitespace().next()?.parse().ok()?;
    (!name.is_empty() && value.is_finite()).then(|| Series {
        name: name.to_owned(),
        labels,
        value,
    })
}

type Labels = Vec<(String, String)>;

/// Labels up to the closing brace, and what is behind it.
fn labels(mut rest: &str) -> Option<(Labels, &str)> {
    let mut labels = Vec::new();
    loop {
        rest = rest.trim_start_matches([',', ' ']);
        if let Some(after) = rest.strip_prefix('}') {
            return Some((labels, after));
        }
        let (name, after) = rest.split_once("=\"")?;
        let (value, after) = quoted(after)?;
        labels.push((name.to_owned(), value));
        rest = after;
    }
}

/// Up to the closing quote, with what was escaped in it as it was.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => value.push(match characters.next()?.1 {
                'n' => '\n',
                other => other,
            }),
            other => value.push(other),
        }
    }
    None
}
