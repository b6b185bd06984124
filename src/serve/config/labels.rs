//! Which labels are meant.

use super::place::{Mistakes, quoted};
use super::settings::Settings;
use crate::owner::{Choice, Label, Wanted};

/// As it is written, if there is such a label.
pub(super) fn label(text: &str) -> Result<String, String> {
    match text.parse::<Label>() {
        Ok(label) => Ok(label.to_string()),
        Err(error) => {
            let said = error.to_string();
            let cure = said.split_once('\n').map_or("", |(_, cure)| cure);
            Err(format!("{} is no label; {cure}", quoted(text)))
        }
    }
}

/// Processes by their labels, or by where they run.
pub(super) fn choice(text: &str) -> Result<Choice, String> {
    let choice: Result<Choice, _> = text.parse();
    choice.map_err(|error| error.to_string().replace('\n', "; "))
}

/// Two labels must not have one name.
pub(super) fn check(labels: &[String], settings: &Settings, mistakes: &mut Mistakes) {
    let labels = labels.iter().filter_map(|text| text.parse().ok()).collect();
    if let (Err(error), Some(setting)) = (Wanted::new(labels, 1), settings.get("labels")) {
        mistakes.add(&setting.place, error.to_string().replace('\n', "; "));
    }
}
