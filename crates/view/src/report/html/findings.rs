//! What is wrong, as cards.

use super::super::{Report, words};
use crate::model::finding::Finding;
use crate::section::html::{Text, site as frames};
use crate::text::quantity::{count, duration};
use std::fmt::Write;

pub(super) fn write(report: &Report, page: &mut String) {
    page.push_str("<section id=\"findings\">\n<h2>What is wrong</h2>\n");
    if report.findings.is_empty() {
        let class = if report.not_looked_for.is_some() {
            "weak"
        } else {
            "healthy"
        };
        let _ = writeln!(page, "<p class=\"{class}\">{}</p>", Text(&words::healthy(report)));
    }
    if let Some(of) = report.shares_of() {
        let _ = writeln!(page, "<p class=\"weak\">{}</p>", Text(&format!("Shares are {of}.")));
    }
    for (index, finding) in report.findings.iter().enumerate() {
        card(index + 1, finding, report, page);
    }
    if let Some(what) = report.unexplained() {
        let _ = writeln!(page, "<p class=\"weak\">not explained: {}</p>", Text(&what));
    }
    page.push_str("</section>\n");
}

fn card(number: usize, finding: &Finding, report: &Report, page: &mut String) {
    page.push_str("<article class=\"finding\">\n");
    cost(finding, report, page);
    let certainty = finding.certainty.name();
    let _ = write!(
        page,
        "<div class=\"body\">\n<h3><span class=\"number\">{number}</span>{} \
         <span class=\"badge\">{}</span> <span class=\"badge {certainty}\">{certainty}</span></h3>\n<p>{}</p>\n",
        Text(&finding.title),
        Text(finding.rule),
        Text(&finding.what),
    );
    where_from(finding, page);
    let _ = writeln!(page, "<p class=\"cure\">do: {}</p>", Text(&finding.cure));
    moments(finding, page);
    if let Some(weakened) = &finding.weakened {
        let _ = writeln!(page, "<p class=\"weak\">{}</p>", Text(weakened));
    }
    page.push_str("</div>\n</article>\n");
}

fn cost(finding: &Finding, report: &Report, page: &mut String) {
    if finding.cost_ns == 0 {
        let word = if finding.grave { "grave" } else { "no time" };
        let _ = writeln!(page, "<div class=\"cost\"><b>{word}</b></div>");
        return;
    }
    let share = finding.share(&report.run);
    let _ = writeln!(
        page,
        "<div class=\"cost\"><b>{}</b><span>of the time</span><small>{}</small><i style=\"width:{:.1}%\"></i></div>",
        words::percent(share),
        duration(finding.cost_ns),
        share * 100.0
    );
}

fn where_from(finding: &Finding, page: &mut String) {
    if let Some(place) = words::place(finding) {
        let _ = writeln!(page, "{}", frames(&place, &words::stack(finding)));
    }
}

fn moments(finding: &Finding, page: &mut String) {
    let many = count(finding.count);
    let words = match finding.moments.is_empty() {
        true => format!("{many} times"),
        false => format!("worst of {many}"),
    };
    let _ = write!(page, "<p class=\"moments\"><span>{words}</span>");
    for moment in &finding.moments {
        let length = if moment.ns > 0 {
            format!(" · {}", duration(moment.ns))
        } else {
            String::new()
        };
        let _ = write!(
            page,
            "<button type=\"button\" data-at=\"{}\" title=\"{}\">{}{length}</button>",
            moment.at,
            Text(&words::moment(moment)),
            words::at(moment.at)
        );
    }
    if !finding.thresholds.is_empty() {
        let _ = write!(page, "<small>rule: {}</small>", Text(&finding.thresholds));
    }
    page.push_str("</p>\n");
}
