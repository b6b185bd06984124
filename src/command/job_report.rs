//! `gpuscope job-report`: what a job did with its GPUs, as the exporters of its nodes know it.

use super::rights;
use super::writer::Page;
use crate::cli::{JobFormat, JobReportArgs};
use crate::output::say;
use crate::owner;
use crate::refusal::{self, Usage};
use crate::serve::job::{self, Metrics, Wanted};
use crate::text::quantity::escaped;
use anyhow::{Context, Result, bail};
use std::io::Read;
use std::process::ExitCode;
use std::time::Duration;

/// An epilog keeps a node from its next job.
const TIMEOUT: Duration = Duration::from_secs(20);
const MOST_BYTES: u64 = 256 << 20;

/// Asks each exporter, gives up its rights, reads what they have said, adds up, writes: what is there, also where one says nothing.
///
/// # Errors
/// No job is named; an exporter does not answer; nothing can be written.
pub(crate) fn run(args: &JobReportArgs) -> Result<ExitCode> {
    let wanted = wanted(args)?;
    let texts: Vec<Result<String>> = args.from.iter().map(|from| ask(from)).collect();
    let to = Page::begin(&args.output)?;
    rights::for_reading();
    let read = args.from.iter().zip(texts).map(|(from, text)| metrics(from, &text?));
    let (mut nodes, mut silent) = (Vec::new(), Vec::new());
    for node in read {
        match node {
            Ok(node) => nodes.push(node),
            Err(error) => silent.push(error),
        }
    }
    if nodes.is_empty()
        && let Some(error) = silent.pop()
    {
        return Err(error);
    }
    let mut figures = job::figures(&nodes, &wanted);
    figures.miss(silent.len());
    let page = match args.format {
        JobFormat::Text => job::text(&figures, &wanted),
        JobFormat::Markdown => job::markdown(&figures, &wanted),
        JobFormat::Json => job::json(&figures, &wanted),
    };
    to.write(&page)?;
    for error in &silent {
        say(format_args!("gpuscope: {}", refusal::message(error)));
    }
    match silent.is_empty() {
        true => Ok(ExitCode::SUCCESS),
        false => Ok(ExitCode::FAILURE),
    }
}

fn metrics(from: &str, text: &str) -> Result<Metrics> {
    let metrics = job::read(text);
    if !metrics.is_gpuscopes() {
        bail!(
            "failed to read {}: there are no metrics of gpuscope serve in it\nhint: --from http://NODE:9748/metrics",
            escaped(from)
        );
    }
    Ok(metrics)
}

fn wanted(args: &JobReportArgs) -> Result<Wanted> {
    let labels = args.labels.iter().map(|text| label(text)).collect::<Result<Vec<_>>>()?;
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let of_environment = || Some(owner::batch_job(variable)).filter(|job| !job.is_empty() && labels.is_empty());
    // an epilog may name one by a variable that is not set
    let named = args.job.clone().filter(|job| !job.is_empty());
    let job = named.or_else(of_environment);
    if job.is_none() && labels.is_empty() {
        bail!(Usage(
            "job-report: no job is named\nhint: --job ID, or --label pod=NAME; a batch scheduler's environment names it, too".to_owned()
        ));
    }
    Ok(Wanted { job, labels })
}

fn label(text: &str) -> Result<(String, String)> {
    let parts = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let wrong = || {
        Usage(format!(
            "--label {:?} is no label\nhint: --label pod=train-0",
            escaped(text)
        ))
    };
    let (name, value) = parts.ok_or_else(wrong)?;
    Ok((name.to_owned(), value.to_owned()))
}

fn ask(from: &str) -> Result<String> {
    if from.starts_with("http://") || from.starts_with("https://") {
        over_http(from).map_err(|error| {
            let hint = cure(&error);
            error.context(format!("failed to ask {}\nhint: {hint}", escaped(from)))
        })
    } else {
        of_file(from).with_context(|| {
            format!(
                "failed to read {}\nhint: of an exporter the whole address: http://NODE:9748/metrics",
                escaped(from)
            )
        })
    }
}

/// What to do where an exporter does not say what it knows.
fn cure(error: &anyhow::Error) -> &'static str {
    match error.downcast_ref::<ureq::Error>() {
        Some(ureq::Error::StatusCode(401 | 403)) => {
            "it wants to know who asks: curl with what it needs, piped to gpuscope job-report --from -"
        }
        _ => "does gpuscope serve run there, and answer at that address?",
    }
}

fn over_http(url: &str) -> Result<String> {
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .timeout_global(Some(TIMEOUT))
        .build()
        .into();
    let mut answer = agent.get(url).header("Accept", "text/plain;version=0.0.4").call()?;
    Ok(answer.body_mut().with_config().limit(MOST_BYTES).read_to_string()?)
}

fn of_file(path: &str) -> Result<String> {
    let mut bytes = Vec::new();
    let input: Box<dyn Read> = match path {
        "-" => Box::new(std::io::stdin()),
        path => Box::new(std::fs::File::open(path)?),
    };
    input.take(MOST_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
