//! The file of counters: read as if a stranger had written it, whole or not at all.

use super::goes_on;
use crate::owner::Owner;
use crate::serve::metric::{Histogram, Metric, Sample, Value};
use crate::serve::{metrics, series};
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const NAME: &str = "counters.json";
const VERSION: u32 = 1;
const MOST_BYTES: u64 = 256 << 20;
const MOST_LABELS: usize = 64;
const MOST_LABEL_BYTES: usize = 4096;

/// What the last gpuscope left.
#[derive(Debug, Default)]
pub(crate) struct Left {
    pub samples: Vec<Sample>,
    /// Since when these count.
    pub since: Option<SystemTime>,
    /// Series that are none of this version's.
    pub not_understood: usize,
}

#[derive(Serialize, Deserialize)]
struct Document {
    version: u32,
    /// Seconds since 1970: since when it counts, and when it was written.
    since: u64,
    written: u64,
    owners: Vec<Vec<(String, String)>>,
    series: Vec<Kept>,
}

#[derive(Serialize, Deserialize)]
struct Kept {
    metric: String,
    values: Vec<String>,
    /// Its place among the owners.
    owner: usize,
    value: Number,
}

#[derive(Serialize, Deserialize)]
enum Number {
    Integer(u64),
    Real(f64),
    Histogram {
        sum: f64,
        count: u64,
        buckets: Vec<(f64, u64)>,
    },
}

/// Writes what of `samples` goes on, which was counted since `since`: whole or not at all.
///
/// # Errors
/// The folder cannot be written to.
pub(crate) fn write(folder: &Path, samples: &[Sample], since: SystemTime) -> Result<()> {
    let text = serde_json::to_vec(&document(samples, since)).context("failed to write counters as JSON")?;
    let path = folder.join(NAME);
    let new = path.with_extension("new");
    let write = || -> std::io::Result<()> {
        match fs::remove_file(&new) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
        file.write_all(&text)?;
        file.sync_all()?;
        fs::rename(&new, &path)
    };
    let hint = "the folder of $STATE_DIRECTORY needs room, and has to be ours to write to";
    write()
        // half a file takes room and is of no use
        .inspect_err(|_| drop(fs::remove_file(&new)))
        .with_context(|| format!("failed to write {}\nhint: {hint}", path.display()))
}

/// Takes the file away and says what was in it, if it was written less than `retain` ago.
///
/// # Errors
/// It cannot be read or taken away, or is none of ours.
pub(crate) fn take(folder: &Path, retain: Duration) -> Result<Left> {
    let path = folder.join(NAME);
    let Some(text) = read(&path)? else {
        return Ok(Left::default());
    };
    // read once more after a crash, counters would fall
    fs::remove_file(&path).with_context(|| format!("failed to remove {}", path.display()))?;
    let document: Document = serde_json::from_slice(&text)
        .with_context(|| format!("failed to read {}: it is no file of counters", path.display()))?;
    if document.version != VERSION {
        bail!(
            "failed to read {}: it has version {}, not {VERSION}",
            path.display(),
            document.version
        );
    }
    let age = SystemTime::now()
        .duration_since(time(document.written))
        .unwrap_or_default();
    if age > retain {
        return Ok(Left::default());
    }
    Ok(left(document))
}

fn read(path: &PathBuf) -> Result<Option<Vec<u8>>> {
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path);
    let file = match opened {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        opened => opened.with_context(|| format!("failed to open {}", path.display()))?,
    };
    let mut text = Vec::new();
    let length = file.take(MOST_BYTES + 1).read_to_end(&mut text);
    let length = length.with_context(|| format!("failed to read {}", path.display()))?;
    if length as u64 > MOST_BYTES {
        bail!("failed to read {}: it is too long", path.display());
    }
    Ok(Some(text))
}

fn document(samples: &[Sample], since: SystemTime) -> Document {
    let (mut owners, mut places) = (Vec::new(), HashMap::new());
    let mut kept = Vec::new();
    for sample in samples
        .iter()
        .filter(|sample| goes_on(sample.metric) && series::is_valid(sample.metric, &sample.value))
    {
        let Some(owner) = &sample.owner else { continue };
        let place = *places.entry(Arc::clone(owner)).or_insert_with(|| {
            owners.push(owner.labels.clone());
            owners.len() - 1
        });
        kept.push(Kept {
            metric: sample.metric.name.to_owned(),
            values: sample.values.iter().map(ToString::to_string).collect(),
            owner: place,
            value: number(&sample.value),
        });
    }
    Document {
        version: VERSION,
        since: seconds(since),
        written: seconds(SystemTime::now()),
        owners,
        series: kept,
    }
}

fn left(document: Document) -> Left {
    let owners: Vec<Option<Arc<Owner>>> = document.owners.into_iter().map(owner).collect();
    let all = document.series.len();
    let by_name: HashMap<&str, &'static Metric> = metrics::all().map(|metric| (metric.name, metric)).collect();
    let sample = |kept: Kept| {
        let metric = *by_name.get(kept.metric.as_str()).filter(|metric| goes_on(metric))?;
        let owner = owners.get(kept.owner)?.as_ref()?;
        let fits = kept.values.len() == metric.labels.len() && kept.values.iter().all(|value| is_short(value));
        let value = value(kept.value);
        let fits = fits && series::is_valid(metric, &value);
        fits.then(|| Sample::new(metric, kept.values.into_iter().map(Into::into).collect(), value).of(owner))
    };
    let samples: Vec<Sample> = document.series.into_iter().filter_map(sample).collect();
    Left {
        not_understood: all - samples.len(),
        samples,
        since: Some(time(document.since)),
    }
}

fn owner(labels: Vec<(String, String)>) -> Option<Arc<Owner>> {
    let fits = labels.len() <= MOST_LABELS && labels.iter().all(|(name, value)| is_short(name) && is_short(value));
    fits.then(|| Arc::new(Owner { labels }))
}

fn is_short(text: &str) -> bool {
    text.len() <= MOST_LABEL_BYTES
}

fn number(value: &Value) -> Number {
    match value {
        Value::Integer(number) => Number::Integer(*number),
        Value::Number(number) => Number::Real(*number),
        Value::Histogram(Histogram { sum, count, buckets }) => Number::Histogram {
            sum: *sum,
            count: *count,
            buckets: buckets.clone(),
        },
    }
}

fn value(number: Number) -> Value {
    match number {
        Number::Integer(number) => Value::Integer(number),
        Number::Real(number) => Value::Number(number),
        Number::Histogram { sum, count, buckets } => Value::Histogram(Histogram { sum, count, buckets }),
    }
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// Of a clock that nobody has set wrong, or the beginning.
fn time(seconds: u64) -> SystemTime {
    UNIX_EPOCH
        .checked_add(Duration::from_secs(seconds))
        .unwrap_or(UNIX_EPOCH)
}
