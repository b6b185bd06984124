//! What is around the chapters of a page: one file that needs nothing from any network.
//!
//! It forbids scripts but its own, and all connections.

use super::html::Text;
use std::fmt::Write;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
/// Only what has it may run.
const NONCE: &str = "gpuscope-report";
/// Three rising bars.
const ICON: &str = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Crect \
                    width='16' height='16' rx='3' fill='%23356b00'/%3E%3Cpath d='M4.5 12V9M8 12V6.5M11.5 12V4' \
                    stroke='white' stroke-width='2' stroke-linecap='round'/%3E%3C/svg%3E";

/// All before the first chapter. `links`: id and name of what is below.
pub fn open<'a>(title: &str, about: &str, links: impl Iterator<Item = (&'a str, &'a str)>, page: &mut String) {
    let _ = write!(
        page,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; \
         style-src 'unsafe-inline'; script-src 'nonce-{NONCE}'; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{title} – gpuscope</title>\n<link rel=\"icon\" href=\"{ICON}\">\n<style>\n{STYLE}</style>\n\
         </head>\n<body>\n<header>\n<div class=\"bar\">\n<span class=\"brand\">gpuscope</span>\n<nav>\n",
        title = Text(title),
    );
    for (id, name) in links {
        let _ = writeln!(page, "<a href=\"#{id}\">{name}</a>");
    }
    let _ = write!(
        page,
        "</nav>\n<button id=\"theme\" type=\"button\" aria-label=\"light or dark\">◐</button>\n</div>\n\
         <h1>{}</h1>\n<p class=\"about\">{}</p>\n</header>\n<main>\n",
        Text(title),
        Text(about)
    );
}

/// What the reader must know before all numbers.
pub fn notes<'a>(notes: impl Iterator<Item = &'a String>, page: &mut String) {
    for note in notes {
        let _ = writeln!(page, "<p class=\"note\">{}</p>", Text(note));
    }
}

/// All behind the last chapter. `script`: what the page runs beside what every page does.
pub fn close(script: &str, page: &mut String) {
    let _ = write!(
        page,
        "</main>\n<script nonce=\"{NONCE}\">\n{SCRIPT}{script}</script>\n</body>\n</html>\n"
    );
}
