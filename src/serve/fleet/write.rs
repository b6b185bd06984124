//! Figures as text, Markdown and a page.

use super::chapters::{chapters, idle_cell};
use super::figures::Figures;
use super::question::time_words;
use super::question::{MOST_SETS, Span};
use crate::section::text::{Ink, wrapped};
use crate::section::{Cell, html, markdown, page, text as lines};
use crate::text::fit::fit;
use crate::text::quantity::{count, date, escaped, plural};
use std::fmt::Write;

/// Less of the time than this is said.
const MOST_OF_IT: f64 = 0.99;

/// For a terminal, in lines of at most `columns` characters, a mail or a log.
#[must_use]
pub fn text(figures: &Figures, span: &Span, colour: bool, columns: Option<usize>) -> String {
    let ink = Ink(colour);
    let (title, about) = (escaped(&title(figures, span)), escaped(&about(span)));
    let mut out = format!("{}\n{}", ink.strong(&title), ink.weak(&wrapped(&about, "")));
    for note in notes(figures, span) {
        out.push_str(&ink.warn(&wrapped(&format!("! {}", escaped(&note)), "  ")));
    }
    chapters(figures, span)
        .iter()
        .for_each(|chapter| lines::write(chapter, ink, &mut out));
    fit(&out, columns)
}

/// For a comment or a wiki.
#[must_use]
pub fn markdown(figures: &Figures, span: &Span) -> String {
    let (title, about) = (markdown::cell(&title(figures, span)), markdown::cell(&about(span)));
    let mut out = format!("### gpuscope: {title}\n\n{about}\n\n");
    for note in notes(figures, span) {
        let _ = writeln!(out, "> ⚠ {}\n", markdown::cell(&note));
    }
    chapters(figures, span)
        .iter()
        .for_each(|chapter| markdown::write(chapter, &mut out));
    out
}

/// A page that needs nothing from any network.
#[must_use]
pub fn html(figures: &Figures, span: &Span) -> String {
    let chapters = chapters(figures, span);
    let links = chapters.iter().map(|chapter| (chapter.id, chapter.name));
    let mut out = String::new();
    page::open(&title(figures, span), &about(span), links, &mut out);
    page::notes(notes(figures, span).iter(), &mut out);
    chapters.iter().for_each(|chapter| html::write(chapter, &mut out));
    page::close("", &mut out);
    out
}

fn title(figures: &Figures, span: &Span) -> String {
    let nodes = plural(figures.nodes.len() as u64, "node");
    format!(
        "GPUs of {nodes} in {} until {}",
        time_words(span.seconds()),
        moment(span.until_seconds)
    )
}

/// How exact it is.
fn about(span: &Span) -> String {
    format!(
        "Times of programs are bounds from their calls, grown over the whole time (increase(), which extrapolates by up to half \
         a scrape's interval at each end of a series); devices and nodes are looked at each {}.",
        time_words(span.step_seconds())
    )
}

/// What must be known before all numbers.
pub(super) fn notes(figures: &Figures, span: &Span) -> Vec<String> {
    let idle = figures.idle();
    let longest = figures.nodes.iter().map(|node| node.share).fold(0.0, f64::max);
    let hours = |seconds: f64| Cell::Hours(seconds).words();
    let nobody = !figures.users.is_empty() && figures.users.iter().all(|group| group.who.user.is_empty());
    let all = [
        span.user.as_ref().map(|user| format!("programs of the user {user} alone; devices and nodes are all")),
        (longest < MOST_OF_IT).then(|| {
            format!("the store has at most {:.0} % of that time of any node: gpuscope came later, or data are kept for less", longest * 100.0)
        }),
        (idle.seconds() <= 0.0).then(|| match &span.user {
            Some(user) => format!("no idle time is counted for the user {user}: the label user is missing (gpuscope serve --labels user,…), or nobody is called so"),
            None => "no idle time is counted: no program used a GPU, or gpuscope serve runs without the collector sync".to_owned(),
        }),
        nobody.then(|| "no series has the label user: gpuscope serve --labels user,job,program,namespace,pod says whose it is".to_owned()),
        (idle.inferred > 0.0).then(|| {
            format!("{} of {} are no bound: these processes ran before gpuscope came", hours(idle.inferred), idle_cell(idle).words())
        }),
        figures.use_is_cut.then(|| {
            format!("time of use is of the {} largest sets of labels alone: shares of it are not told", count(MOST_SETS as u64))
        }),
        (idle.seconds() > figures.gpu_seconds() && figures.gpu_seconds() > 0.0).then(|| {
            "programs on the same GPU were idle at the same time, and each counts: together they were so for longer than there were GPUs".to_owned()
        }),
        (figures.rest_seconds > 0.0).then(|| {
            format!("{} are of others than the {} largest sets of labels, which alone have names here", hours(figures.rest_seconds), count(MOST_SETS as u64))
        }),
    ];
    let of_store = figures
        .warnings
        .iter()
        .map(|warning| format!("the store says: {warning}"));
    all.into_iter().flatten().chain(of_store).collect()
}

/// `2026-11-22 16:05 UTC`.
fn moment(seconds: u64) -> String {
    let day = date(i64::try_from(seconds / 86_400).unwrap_or_default());
    format!("{day} {:02}:{:02} UTC", seconds / 3600 % 24, seconds / 60 % 60)
}
