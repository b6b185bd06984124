//! Reads what Prometheus answers to an instant query. Whoever answers is not trusted: what is not as it should be is said,
//! and no more series are kept than were asked for.

use super::question::Question;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Series beyond these are left out, which is said.
const MOST_SERIES: usize = 20_000;
/// Warnings that are kept.
const MOST_WARNINGS: usize = 8;

/// What is known now.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    pub series: Vec<Series>,
    /// Of the store: what its answer lacks.
    pub warnings: Vec<String>,
}

/// One value.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    labels: BTreeMap<String, String>,
    pub value: f64,
}

impl Series {
    #[must_use]
    pub(crate) fn new(labels: BTreeMap<String, String>, value: f64) -> Series {
        Series { labels, value }
    }

    /// The value of a label; empty: it has none.
    #[must_use]
    pub(crate) fn label(&self, name: &str) -> &str {
        self.labels.get(name).map_or("", String::as_str)
    }
}

/// Why it is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wrong {
    /// It is not what Prometheus would write.
    NotPrometheus,
    /// The store says why.
    Refused(String),
}

/// Reads the body of an answer.
///
/// # Errors
/// It is none.
pub fn read(body: &[u8]) -> Result<Answer, Wrong> {
    let body: Body = serde_json::from_slice(body).map_err(|_| Wrong::NotPrometheus)?;
    if body.status == "error" {
        let kind = body.error_type.unwrap_or_default();
        return Err(Wrong::Refused(format!("{kind}: {}", body.error.unwrap_or_default())));
    }
    let data = body.data.filter(|data| data.result_type == "vector");
    let data = data.filter(|_| body.status == "success").ok_or(Wrong::NotPrometheus)?;
    let mut warnings: Vec<String> = body.warnings.unwrap_or_default();
    warnings.truncate(MOST_WARNINGS);
    if body.is_partial == Some(true) {
        warnings.push("the answer is partial: some of its storage did not answer".to_owned());
    }
    if data.result.len() > MOST_SERIES {
        warnings.push(format!("only {MOST_SERIES} of {} series were read", data.result.len()));
    }
    let series = data.result.into_iter().take(MOST_SERIES).filter_map(series).collect();
    Ok(Answer { series, warnings })
}

/// Without what is no number: nothing can be made of it.
fn series(one: Sample) -> Option<Series> {
    let value: f64 = one.value.1.parse().ok()?;
    value.is_finite().then_some(Series::new(one.metric, value))
}

#[derive(Deserialize)]
struct Body {
    status: String,
    data: Option<Data>,
    #[serde(rename = "errorType")]
    error_type: Option<String>,
    error: Option<String>,
    warnings: Option<Vec<String>>,
    /// `VictoriaMetrics` says it so.
    #[serde(rename = "isPartial")]
    is_partial: Option<bool>,
}

#[derive(Deserialize)]
struct Data {
    #[serde(rename = "resultType")]
    result_type: String,
    result: Vec<Sample>,
}

#[derive(Deserialize)]
struct Sample {
    metric: BTreeMap<String, String>,
    value: (f64, String),
}

pub(super) type Answers = BTreeMap<Question, Answer>;

pub(super) fn of(answers: &Answers, question: Question) -> impl Iterator<Item = &Series> {
    answers.get(&question).into_iter().flat_map(|answer| &answer.series)
}
