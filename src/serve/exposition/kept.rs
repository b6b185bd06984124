//! The text of a scrape made out of that of the last one: what has not changed is copied.
//!
//! Owns what is remembered of a text: which series has which lines. The text is the same, byte for byte, as that of
//! [`super::render`]. Series and values are told apart by hashes of 64 bits with a key that nobody knows.

use super::Format;
use super::text::{Writer, labels_text, push_label};
use crate::owner::Owner;
use crate::serve::metric::{Metric, Sample, Value};
use crate::serve::series;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A text in a format that nobody has asked for in this time is forgotten.
const KEPT: Duration = Duration::from_secs(300);

/// The text of a scrape made out of that of the last one.
#[derive(Default)]
pub struct Kept {
    hashes: RandomState,
    texts: HashMap<Format, Text>,
    copied: u64,
}

/// One text, taken apart.
struct Text {
    text: Arc<String>,
    families: HashMap<&'static str, Vec<Lines>>,
    used: Instant,
}

/// The lines of one series.
#[derive(Clone)]
struct Lines {
    /// Of its labels.
    key: u64,
    value: u64,
    place: Range<usize>,
    /// Where its labels stand within the text, without braces.
    labels: Range<usize>,
}

impl Kept {
    /// Series whose lines were copied, in all texts so far.
    #[must_use]
    pub fn copied(&self) -> u64 {
        self.copied
    }

    /// As [`super::render`].
    pub fn render(&mut self, samples: &[Sample], format: Format) -> Arc<String> {
        self.texts.retain(|_, text| text.used.elapsed() < KEPT);
        let old = self.texts.remove(&format);
        let mut renewal = Renewal {
            hashes: &self.hashes,
            writer: Writer::new(
                format,
                old.as_ref().map_or(0, |old| old.text.len() + old.text.len() / 16),
            ),
            owners: HashMap::new(),
            old: old.as_ref(),
            families: HashMap::new(),
            copied: 0,
        };
        let groups: Vec<&[Sample]> = samples
            .chunk_by(|one, other| one.metric.name == other.metric.name)
            .collect();
        let names: HashSet<&str> = groups.iter().map(|group| group[0].metric.name).collect();
        if names.len() < groups.len() {
            // series of one metric that do not stand together
            return Arc::new(super::render(samples, format));
        }
        groups.into_iter().for_each(|group| renewal.family(group));
        self.copied += renewal.copied;
        let families = renewal.families;
        let text = Arc::new(renewal.writer.finish());
        let kept = Text {
            text: Arc::clone(&text),
            families,
            used: Instant::now(),
        };
        self.texts.insert(format, kept);
        text
    }
}

/// Labels of an owner as text, each beginning with a comma, and their hash.
type OwnerText = (String, u64);

/// A text that is made.
struct Renewal<'a> {
    hashes: &'a RandomState,
    writer: Writer,
    owners: HashMap<*const Owner, OwnerText>,
    old: Option<&'a Text>,
    families: HashMap<&'static str, Vec<Lines>>,
    copied: u64,
}

impl Renewal<'_> {
    /// All samples of one metric.
    fn family(&mut self, samples: &[Sample]) {
        let metric = samples[0].metric;
        let old = self.old.and_then(|old| old.families.get(metric.name));
        let old: &[Lines] = old.map_or(&[], Vec::as_slice);
        let Some(keys) = self.keys(samples).filter(|keys| !has_doubles(keys, old)) else {
            // whose lines are not simply those of one sample each
            return self.writer.families(&series::families(samples));
        };
        self.writer.head(metric);
        let mut places = Places::new(old);
        let mut family = Vec::with_capacity(samples.len());
        for (sample, key) in samples.iter().zip(keys) {
            family.push(self.series(sample, key, places.next(key)));
        }
        self.families.insert(metric.name, family);
    }

    /// One for each sample; `None`: one of them cannot be shown as it is.
    fn keys(&mut self, samples: &[Sample]) -> Option<Vec<u64>> {
        let mut key = |sample: &Sample| {
            let values = series::clean_values(sample).filter(|_| series::is_valid(sample.metric, &sample.value))?;
            Some(self.hashes.hash_one((values, self.owner(sample).1)))
        };
        samples.iter().map(&mut key).collect()
    }

    fn owner(&mut self, sample: &Sample) -> &OwnerText {
        let address = sample.owner.as_ref().map_or(std::ptr::null(), Arc::as_ptr);
        self.owners.entry(address).or_insert_with(|| {
            let labels = sample
                .owner
                .as_ref()
                .map_or_else(Vec::new, |owner| series::labels_of(owner));
            let text = labels_text(labels.iter().map(|(name, value)| (name.as_str(), value.as_str())));
            let hash = self.hashes.hash_one(&text);
            (text, hash)
        })
    }

    /// `old`: its lines in the old text.
    fn series(&mut self, sample: &Sample, key: u64, old: Option<&Lines>) -> Lines {
        let value = self.hash_of(sample);
        let start = self.writer.text.len();
        let labels = match old.zip(self.old) {
            Some((lines, old)) if lines.value == value => {
                self.copied += 1;
                self.writer.text.push_str(&old.text[lines.place.clone()]);
                let moved = |at: usize| at - lines.place.start + start;
                moved(lines.labels.start)..moved(lines.labels.end)
            }
            Some((lines, old)) => self.write(sample, &old.text[lines.labels.clone()]),
            None => {
                let labels = self.labels(sample);
                self.write(sample, &labels)
            }
        };
        Lines {
            key,
            value,
            place: start..self.writer.text.len(),
            labels,
        }
    }

    fn write(&mut self, sample: &Sample, labels: &str) -> Range<usize> {
        self.writer.lines(sample.metric, labels, &sample.value, sample.read_at)
    }

    /// Without braces.
    fn labels(&mut self, sample: &Sample) -> String {
        let mut text = String::with_capacity(256);
        for (name, value) in own_labels(sample.metric, sample) {
            push_label(&mut text, name, value);
        }
        text.push_str(&self.owner(sample).0);
        if !text.is_empty() {
            text.remove(0);
        }
        text
    }

    fn hash_of(&self, sample: &Sample) -> u64 {
        let mut hasher = self.hashes.build_hasher();
        sample.read_at.hash(&mut hasher);
        match &sample.value {
            Value::Integer(number) => (0u8, number).hash(&mut hasher),
            Value::Number(number) => (1u8, number.to_bits()).hash(&mut hasher),
            Value::Histogram(histogram) => {
                (histogram.count, histogram.sum.to_bits()).hash(&mut hasher);
                for (edge, count) in &histogram.buckets {
                    (edge.to_bits(), count).hash(&mut hasher);
                }
            }
        }
        hasher.finish()
    }
}

fn own_labels<'a>(metric: &'static Metric, sample: &'a Sample) -> impl Iterator<Item = (&'static str, &'a str)> {
    let values = sample.values.iter().map(AsRef::as_ref);
    let labels = metric.labels.iter().copied().zip(values);
    labels.filter(|(_, value)| !value.is_empty())
}

/// The old ones had none.
fn has_doubles(keys: &[u64], old: &[Lines]) -> bool {
    if keys.iter().eq(old.iter().map(|lines| &lines.key)) {
        return false;
    }
    let mut sorted = keys.to_vec();
    sorted.sort_unstable();
    sorted.windows(2).any(|pair| pair[0] == pair[1])
}

/// Finds series in the old text, where they mostly stand in the same order.
struct Places<'a> {
    old: &'a [Lines],
    next: usize,
    /// Made when they do not.
    by_key: Option<HashMap<u64, usize>>,
}

impl<'a> Places<'a> {
    fn new(old: &'a [Lines]) -> Places<'a> {
        Places {
            old,
            next: 0,
            by_key: None,
        }
    }

    fn next(&mut self, key: u64) -> Option<&'a Lines> {
        if self.old.get(self.next).is_none_or(|lines| lines.key != key) {
            let old = self.old;
            let by_key = self.by_key.get_or_insert_with(|| {
                let keys = old.iter().enumerate();
                keys.map(|(place, lines)| (lines.key, place)).collect()
            });
            self.next = *by_key.get(&key)?;
        }
        self.next += 1;
        self.old.get(self.next - 1)
    }
}
