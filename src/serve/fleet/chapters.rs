//! What there is to tell, as tables of typed cells.

use super::figures::{Figures, Group, Idle};
use super::nodes::Node;
use super::question::Span;
use super::question::time_words;
use crate::model::work::Reason;
use crate::section::{Cell, Chapter, Column, Section, Table};

/// Jobs of which it is said what to do.
const WORST: usize = 5;
/// Hidden waits that are worth a word, as a part of the idle time.
const MUCH: f64 = 0.1;
const ALL_IN: &str = "--format html, json";

/// All chapters, in their order.
pub(super) fn chapters(figures: &Figures, span: &Span) -> Vec<Chapter> {
    let mut chapters = vec![
        hours(figures, span),
        jobs(figures),
        groups(
            figures,
            ("users", "Users"),
            |figures| &figures.users,
            |group| &group.who.user,
        ),
        groups(
            figures,
            ("programs", "Programs"),
            |figures| &figures.programs,
            |group| &group.who.program,
        ),
        nodes(figures),
    ];
    chapters
        .iter_mut()
        .for_each(|chapter| chapter.sections.retain(Section::says));
    chapters.retain(|chapter| !chapter.sections.is_empty());
    chapters
}

/// A bound says so.
pub(super) fn idle_cell(idle: Idle) -> Cell {
    let hours = Cell::Hours(idle.seconds());
    match idle.inferred > 0.0 {
        true => hours,
        false => Cell::AtLeast(Box::new(hours)),
    }
}

/// Of several programs on one GPU each counts: what they add up to can be more than there was, and is no share of it.
fn share(part: f64, whole: f64) -> Cell {
    Cell::of((whole > 0.0 && part <= whole).then(|| part / whole), Cell::Share)
}

fn hours(figures: &Figures, span: &Span) -> Chapter {
    let mut rows = of_devices(figures, span);
    rows.extend(of_reasons(figures));
    let columns = vec![
        Column::number("GPU time").bar(),
        Column::number("share"),
        Column::text(""),
    ];
    let table = Table {
        few: rows.len(),
        ..Table::flat(columns, rows.into_iter())
    };
    let section = Section {
        table,
        unfolded: true,
        ..Section::default()
    };
    Chapter::of("hours", "GPU-hours", "GPU-hours", section)
}

fn of_devices(figures: &Figures, span: &Span) -> Vec<Vec<Cell>> {
    let all = figures.gpu_seconds();
    let row = |seconds: f64, words: &str| {
        let hours = Cell::of((seconds > 0.0).then_some(seconds), Cell::Hours);
        vec![hours, share(seconds, all), Cell::Text(words.to_owned())]
    };
    let step = time_words(span.step_seconds());
    let once = "programs used them, each process from its first work to its last; with several GPUs it counts once";
    vec![
        row(all, &format!("GPUs that there were, looked at each {step}")),
        row(
            figures.bound_seconds(),
            "some process held memory on them, by NVML; nobody used the others",
        ),
        row(figures.busy_seconds(), "a kernel ran, as NVML samples it"),
        row(figures.used_seconds(), once),
    ]
}

fn of_reasons(figures: &Figures) -> Vec<Vec<Cell>> {
    let all = figures.gpu_seconds();
    let row = |idle: Idle, words: String| vec![idle_cell(idle), share(idle.seconds(), all), Cell::Text(words)];
    let mut rows = vec![row(
        figures.idle(),
        "surely without work of the program that used them, or of who had reserved them; of several programs on one GPU each counts".to_owned(),
    )];
    let mut reasons: Vec<_> = figures.reasons.iter().collect();
    reasons.sort_by(|one, other| other.1.seconds().total_cmp(&one.1.seconds()));
    rows.extend(reasons.into_iter().map(|(reason, idle)| {
        let words = Reason::from_name(reason).map_or(String::new(), |known| format!(": {}", known.words()));
        row(*idle, format!("of that, {reason}{words}"))
    }));
    rows
}

fn jobs(figures: &Figures) -> Chapter {
    let shown = figures.jobs.iter().filter(|job| job.idle().seconds() > 0.0);
    let lines = shown
        .clone()
        .take(WORST)
        .enumerate()
        .map(|(index, job)| advice(index + 1, job));
    let columns = vec![
        Column::number("without work").bar(),
        Column::number("of its time"),
        Column::number("hidden waits").rare(),
        Column::number("pageable copies").rare(),
        Column::text("job"),
        Column::text("user").after(" of "),
        Column::text("program").after(", "),
        Column::text("mostly").after(": "),
    ];
    let rows = shown.map(|job| {
        let mut cells = amounts(job, figures);
        cells.extend([
            leading(&job.who.job, "no job"),
            named(&job.who.user),
            named(&job.who.program),
            mostly(job),
        ]);
        cells
    });
    let section = Section {
        lines: lines.collect(),
        table: table(columns, rows).of("job"),
        unfolded: true,
        ..Section::default()
    };
    Chapter::of(
        "jobs",
        "Jobs",
        "Jobs that leave GPUs without work, and what to do",
        section,
    )
}

fn table(columns: Vec<Column>, rows: impl Iterator<Item = Vec<Cell>>) -> Table {
    Table {
        all_in: ALL_IN,
        ..Table::flat(columns, rows)
    }
}

/// `1. job 4711 of anna (train.py), ≥ 35.0 h, mostly host-bound: load data …`
fn advice(number: usize, job: &Group) -> String {
    let who = &job.who;
    let part = |before: &str, name: &str, after: &str| match name {
        "" => String::new(),
        name => format!("{before}{name}{after}"),
    };
    let whose = [
        part("job ", &who.job, ""),
        part("of ", &who.user, ""),
        part("(", &who.program, ")"),
    ];
    let whose: Vec<String> = whose.into_iter().filter(|words| !words.is_empty()).collect();
    let reason = job.chief_reason().unwrap_or_default();
    let cure = Reason::from_name(reason).map_or("", Reason::cure);
    let hidden = match job.hidden_wait_seconds > MUCH * job.idle().seconds() {
        true => format!(
            "; {} went into hidden waits",
            Cell::Hours(job.hidden_wait_seconds).words()
        ),
        false => String::new(),
    };
    format!(
        "{number}. {}, {}, mostly {reason}: {cure}{hidden}",
        whose.join(" "),
        idle_cell(job.idle()).words()
    )
}

fn amounts(group: &Group, figures: &Figures) -> Vec<Cell> {
    let any = |number: f64, cell: Cell| if number > 0.0 { cell } else { Cell::Unknown };
    let used = group.used_seconds();
    let share = match used > 0.0 && !figures.use_is_cut {
        true if group.idle().inferred > 0.0 => Cell::Share(group.idle_seconds / used),
        true => Cell::AtLeast(Box::new(Cell::Share(group.idle_seconds / used))),
        // it is not among the largest, which alone were asked for
        false => Cell::Unknown,
    };
    vec![
        idle_cell(group.idle()),
        share,
        any(group.hidden_wait_seconds, Cell::Hours(group.hidden_wait_seconds)),
        any(
            group.pageable_bytes,
            Cell::Bytes(super::figures::whole(group.pageable_bytes)),
        ),
    ]
}

/// A name that a row begins with.
fn leading(name: &str, otherwise: &str) -> Cell {
    match name {
        "" => Cell::Text(otherwise.to_owned()),
        name => Cell::Name(name.to_owned()),
    }
}

fn named(name: &str) -> Cell {
    match name {
        "" => Cell::Unknown,
        name => Cell::Name(name.to_owned()),
    }
}

fn mostly(group: &Group) -> Cell {
    Cell::of(group.chief_reason(), |reason| Cell::Text(reason.to_owned()))
}

fn groups(
    figures: &Figures,
    (id, name): (&'static str, &'static str),
    of: fn(&Figures) -> &[Group],
    whose: fn(&Group) -> &String,
) -> Chapter {
    let columns = vec![
        Column::number("without work").bar(),
        Column::number("of their time"),
        Column::number("hidden waits").rare(),
        Column::number("pageable copies").rare(),
        Column::text(if id == "users" { "user" } else { "program" }),
        Column::text("mostly").after(": "),
    ];
    let shown = of(figures).iter().filter(|group| group.idle().seconds() > 0.0);
    let rows = shown.map(|group| {
        let mut cells = amounts(group, figures);
        cells.extend([leading(whose(group), "no label says whose"), mostly(group)]);
        cells
    });
    let table = table(columns, rows).of(if id == "users" { "user" } else { "program" });
    Chapter::of(
        id,
        name,
        name,
        Section {
            table,
            ..Section::default()
        },
    )
}

fn nodes(figures: &Figures) -> Chapter {
    let columns = vec![
        Column::number("GPU time"),
        Column::number("in use"),
        Column::number("a kernel ran"),
        Column::number("answered").bar(),
        Column::number("lost records").rare(),
        Column::number("gaps").rare(),
        Column::text("node"),
    ];
    let whole = figures.nodes.iter().filter(|node| node.is_whole()).count();
    let section = Section {
        about: format!(
            "{whole} of {} are seen wholly; those that lack most first",
            figures.nodes.len()
        ),
        table: table(columns, figures.nodes.iter().map(node)).of("node"),
        ..Section::default()
    };
    let mut chapter = Chapter::of("nodes", "Nodes", "Nodes", section);
    chapter.sections.push(counted(
        "Versions of gpuscope now",
        "nodes",
        "version",
        &figures.versions,
    ));
    chapter.sections.push(counted(
        "Versions of the driver now",
        "GPUs",
        "driver",
        &figures.drivers,
    ));
    chapter
}

fn node(node: &Node) -> Vec<Cell> {
    vec![
        Cell::Hours(node.gpu_seconds),
        share(node.bound_seconds, node.gpu_seconds),
        share(node.busy_seconds, node.gpu_seconds),
        Cell::Share(node.share),
        Cell::Count(super::figures::whole(node.lost_records)),
        Cell::Count(super::figures::whole(node.gaps)),
        named(&node.name),
    ]
}

fn counted(title: &str, unit: &'static str, what: &'static str, counts: &[(String, u64)]) -> Section {
    let columns = vec![Column::number(unit), Column::text(what)];
    let rows = counts
        .iter()
        .map(|(name, number)| vec![Cell::Count(*number), named(name)]);
    Section {
        title: Some(title.to_owned()),
        table: table(columns, rows).of(what),
        ..Section::default()
    }
}
