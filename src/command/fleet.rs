//! `gpuscope fleet`: what all machines did with their GPUs, as Prometheus knows it.

mod store;

use super::screen::columns;
use super::writer::Page;
use super::{prepare, rights};
use crate::cli::{FleetArgs, FleetFormat};
use crate::refusal::Usage;
use crate::serve::fleet::{self, Answer, Figures, Question, Span};
use anyhow::{Result, bail};
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};
use store::{Said, Store};

const SHORTEST: Duration = Duration::from_secs(60);

/// Asks, gives up its rights, reads what was said, adds up, writes.
///
/// # Errors
/// The store does not answer, or knows nothing of gpuscope; nothing can be written.
pub(crate) fn run(args: &FleetArgs) -> Result<ExitCode> {
    let span = span(args)?;
    let store = Store::new(&args.prometheus, args.headers.as_deref(), args.timeout)?;
    let said = store.ask(Question::ALL, &span)?;
    let to = Page::begin(&args.output)?;
    rights::for_reading();
    let page = page(args, &fleet::figures(&answers(&store, &said)?, &span), &span);
    to.write(&page)?;
    Ok(ExitCode::SUCCESS)
}

fn answers(store: &Store, said: &[Said]) -> Result<BTreeMap<Question, Answer>> {
    let mut answers = BTreeMap::new();
    for said in said {
        let answer = store.read(said)?;
        if said.question == Question::Nodes && answer.series.is_empty() {
            bail!(
                "{} knows no gpuscope_build_info of that time\nhint: does it scrape gpuscope serve on the nodes (docs/deploy.md), and is it the one that keeps these data?",
                store.name()
            );
        }
        answers.insert(said.question, answer);
    }
    Ok(answers)
}

fn span(args: &FleetArgs) -> Result<Span> {
    if args.since < SHORTEST {
        bail!(Usage(
            "--since is too short\nhint: at least 1min, such as 7d".to_owned()
        ));
    }
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    Ok(Span {
        since: args.since,
        until_seconds: now.as_secs(),
        user: args.user.clone(),
    })
}

fn page(args: &FleetArgs, figures: &Figures, span: &Span) -> String {
    let format = if args.json { FleetFormat::Json } else { args.format };
    match format {
        FleetFormat::Json => fleet::json(figures, span),
        FleetFormat::Markdown => fleet::markdown(figures, span),
        FleetFormat::Html => fleet::html(figures, span),
        FleetFormat::Text if args.output != Path::new("-") => fleet::text(figures, span, false, None),
        FleetFormat::Text => {
            let stdout = std::io::stdout();
            let colour = prepare::coloured(args.paint.color, stdout.is_terminal());
            fleet::text(figures, span, colour, columns(&stdout))
        }
    }
}
