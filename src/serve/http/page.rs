//! The page for people: what is seen, what is missing, and where the rest is. It needs nothing from any network.

use crate::refusal::hint_apart;
use crate::serve::display::kernels::busiest;
use crate::serve::{Scrape, Stuck};
use crate::text::quantity::count;
use std::fmt::Write;
use std::time::Duration;

const STYLE: &str = include_str!("page.css");
const KERNELS: usize = 10;

/// The landing page; `stuck`: the thread that gathers stands still.
#[must_use]
pub fn landing(scrape: &Scrape, telemetry_path: &str, stuck: Option<Stuck>) -> String {
    let (state, words) = match stuck {
        Some(_) => ("wait", "stands still"),
        None => state(scrape),
    };
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>gpuscope</title>\n\
         <link rel=\"icon\" href=\"data:image/svg+xml,{ICON}\">\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <header>\n<h1>gpuscope</h1>\n<span class=\"version\">{version}</span>\n\
         <span class=\"state {state}\">{words}</span>\n\
         <p>What CUDA programs on this machine really do, as metrics.</p>\n</header>\n<main>\n",
        version = env!("CARGO_PKG_VERSION"),
    );
    links(&mut page, telemetry_path);
    missing(&mut page, scrape, stuck);
    facts(&mut page, scrape);
    kernels(&mut page, scrape);
    page.push_str("</main>\n</body>\n</html>\n");
    page
}

/// Three rising bars.
const ICON: &str = "%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Crect width='16' height='16' \
                    rx='3' fill='%23356b00'/%3E%3Cpath d='M4.5 12V9M8 12V6.5M11.5 12V4' stroke='white' \
                    stroke-width='2' stroke-linecap='round'/%3E%3C/svg%3E";

fn state(scrape: &Scrape) -> (&'static str, &'static str) {
    match (scrape.number, scrape.status.ready, scrape.status.missing.is_empty()) {
        (0, ..) => ("wait", "starting"),
        (_, false, _) => ("wait", "not ready"),
        (_, true, false) => ("gaps", "ready, with gaps"),
        (_, true, true) => ("good", "ready"),
    }
}

fn links(page: &mut String, telemetry_path: &str) {
    page.push_str("<nav>\n");
    for (path, words) in [
        (telemetry_path, "for Prometheus"),
        ("/healthz", "whether it lives"),
        ("/readyz", "whether all is in place"),
    ] {
        let path = Text(path);
        let _ = writeln!(page, "<a href=\"{path}\"><b>{path}</b><span>{words}</span></a>");
    }
    page.push_str("</nav>\n");
}

fn missing(page: &mut String, scrape: &Scrape, stuck: Option<Stuck>) {
    let stuck: Vec<String> = stuck.iter().map(ToString::to_string).collect();
    if scrape.status.missing.is_empty() && stuck.is_empty() {
        return;
    }
    page.push_str("<section class=\"missing\">\n<h2>Not seen</h2>\n<ul>\n");
    for sentence in stuck.iter().chain(&scrape.status.missing) {
        let (what, cure) = hint_apart(sentence);
        let _ = write!(page, "<li>{}", Text(what));
        if let Some(cure) = cure {
            let _ = write!(page, "<small>{}</small>", Text(cure));
        }
        page.push_str("</li>\n");
    }
    page.push_str("</ul>\n</section>\n");
}

fn facts(page: &mut String, scrape: &Scrape) {
    if scrape.status.facts.is_empty() {
        page.push_str("<p class=\"none\">Nothing was gathered yet. Reload in a moment.</p>\n");
        return;
    }
    let _ = write!(page, "<section>\n<h2>{}</h2>\n<table>\n", when(scrape.at.elapsed()));
    for (name, value) in &scrape.status.facts {
        let (name, value) = (Text(name), Text(value));
        let _ = writeln!(page, "<tr><th scope=\"row\">{name}</th><td>{value}</td></tr>");
    }
    page.push_str("</table>\n</section>\n");
}

/// By launches since gpuscope came, of all programs together.
fn kernels(page: &mut String, scrape: &Scrape) {
    let busiest = busiest(&scrape.samples, |_| None);
    if busiest.is_empty() {
        return;
    }
    page.push_str("<section>\n<h2>Busiest kernels, by launches</h2>\n<table>\n");
    for (name, (launches, _)) in busiest.into_iter().take(KERNELS) {
        let (launches, name) = (count(launches as u64), Text(name));
        let _ = writeln!(page, "<tr><th scope=\"row\">{launches}</th><td>{name}</td></tr>");
    }
    page.push_str("</table>\n</section>\n");
}

/// Above facts of this age.
fn when(age: Duration) -> String {
    match age.as_secs() {
        0..2 => "Now".to_owned(),
        seconds @ 2..120 => format!("As it was {seconds} s ago"),
        seconds => format!("As it was {} min ago", seconds / 60),
    }
}

/// Text as it stands in a page, also in a quoted attribute.
struct Text<'a>(&'a str);

impl std::fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for character in self.0.chars() {
            match character {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                '\n' => f.write_char('\n')?,
                // also what turns the direction of a text, so that a name cannot look like another
                hidden if hidden.is_control() || is_format(hidden) => f.write_char('\u{fffd}')?,
                plain => f.write_char(plain)?,
            }
        }
        Ok(())
    }
}

fn is_format(character: char) -> bool {
    matches!(character, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::Status;
    use crate::serve::metric::{Sample, Value};
    use crate::serve::metrics::work::KERNEL_LAUNCHES;
    use std::time::Instant;

    fn page(status: Status) -> String {
        let scrape = Scrape {
            at: Instant::now(),
            number: 1,
            samples: Vec::new(),
            status,
        };
        landing(&scrape, "/metrics", None)
    }

    #[test]
    fn names_of_others_stay_text() {
        let hostile = "</td><script>alert(1)</script>\"'&\u{202e}\u{1b}[31m\0";
        let page = page(Status {
            ready: true,
            missing: vec![format!("{hostile}\nhint: {hostile}")],
            facts: vec![(hostile.to_owned(), hostile.to_owned())],
        });
        assert!(!page.contains("<script"), "{page}");
        assert_eq!(
            page.matches("&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;")
                .count(),
            4
        );
        assert!(!page.contains(['\u{202e}', '\u{1b}', '\0']), "{page}");
    }

    #[test]
    fn kernels_stand_by_their_launches_and_their_names_stay_text() {
        let sample =
            |name: &'static str, launches| Sample::new(&KERNEL_LAUNCHES, vec![name.into()], Value::Integer(launches));
        let scrape = Scrape {
            at: Instant::now(),
            number: 1,
            samples: vec![sample("few", 2), sample("gemm<128>", 21_200), sample("other", 1 << 40)],
            status: Status::default(),
        };
        let page = landing(&scrape, "/metrics", None);
        let first = "<th scope=\"row\">21,200</th><td>gemm&lt;128&gt;</td>";
        let second = "<th scope=\"row\">2</th><td>few</td>";
        let place = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text}: {page}"));
        assert!(place(first) < place(second));
        assert!(!page.contains("<td>other</td>"));
    }

    #[test]
    fn facts_say_how_old_they_are() {
        for (seconds, words) in [(0, "Now"), (119, "As it was 119 s ago"), (3700, "As it was 61 min ago")] {
            assert_eq!(when(Duration::from_secs(seconds)), words);
        }
    }

    #[test]
    fn the_page_needs_no_network() {
        let page = page(Status::default()).replace("http://www.w3.org/2000/svg", "");
        for outside in ["http:", "https:", "src=", "@import", "url("] {
            assert!(!page.contains(outside), "{outside}");
        }
    }

    #[test]
    fn a_gap_says_its_cure_and_turns_the_badge() {
        let page = page(Status {
            ready: true,
            missing: vec!["a static CUDA in /opt/app is not traced\nhint: use --hooks".to_owned()],
            facts: Vec::new(),
        });
        assert!(page.contains("<li>a static CUDA in /opt/app is not traced<small>use --hooks</small></li>"));
        assert!(page.contains("class=\"state gaps\">ready, with gaps<"));
    }
}
