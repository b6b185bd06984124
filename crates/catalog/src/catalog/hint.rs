//! Wording of errors about names, with the nearest known name.

/// `unknown class "aloc"; expected one of …; hint: did you mean "alloc"?`
pub(super) fn unknown<'a>(what: &str, text: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<_> = names.into_iter().collect();
    format!(
        "unknown {what} \"{text}\"; expected one of {}{}",
        names.join(", "),
        hint(text, names)
    )
}

/// `undefined enum "cudaEror_t"; hint: did you mean "cudaError_t"?`
pub(super) fn undefined<'a>(what: &str, text: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    format!("undefined {what} \"{text}\"{}", hint(text, names))
}

/// Adds a hint to the parser's own "unknown field `x`, expected …".
pub(super) fn with_hint(message: &str) -> String {
    let mut quoted = message.split('`').skip(1).step_by(2);
    let hint = match quoted.next() {
        Some(text) if message.starts_with("unknown field") => hint(text, quoted),
        _ => String::new(),
    };
    format!("{message}{hint}")
}

fn hint<'a>(text: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    match nearest(text, names) {
        Some(name) => format!("; hint: did you mean \"{name}\"?"),
        None => String::new(),
    }
}

/// The name that differs least from `text`, if it is so near that it may be meant.
pub fn nearest<'a>(text: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (text.len() / 3).clamp(1, 3);
    let names = names
        .into_iter()
        .filter(|name| name.len().abs_diff(text.len()) <= limit);
    let near = names.map(|name| (distance(text, name), name));
    let near = near.filter(|(far, _)| *far <= limit).min();
    near.map(|(_, name)| name)
}

/// Levenshtein distance in bytes.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.bytes().enumerate() {
        let mut corner = i;
        let mut last = i + 1;
        for (cell, right) in row.iter_mut().skip(1).zip(b.bytes()) {
            let cost = (corner + usize::from(left != right)).min(last + 1).min(*cell + 1);
            corner = *cell;
            *cell = cost;
            last = cost;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}
