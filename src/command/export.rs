//! `gpuscope export`: a recording in another format.

mod rows;

use super::prepare;
use super::rights;
use super::stdout::closed_is_fine;
use super::whole_file::no_room;
use super::writer::{Destination, Writer};
use crate::cli::{Content, ExportArgs, ExportFormat, Weighed};
use crate::export::csv::Csv;
use crate::export::paths::{ByPath, collapsed::Collapsed, pprof::Pprof, speedscope::Speedscope};
use crate::export::{Writing, Written, chrome, perfetto};
use crate::output::say;
use crate::paths::Weight;
use crate::record::{Encoder, Ending, Taker};
use crate::refusal::Usage;
use crate::report::Until;
use crate::sink::json::Json;
use crate::text::quantity::{bytes, escaped, plural};
use crate::trace::{End, Files, Latest};
use anyhow::{Result, bail};
use clap::ValueEnum;
use rows::Rows;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Writes it.
///
/// # Errors
/// What cannot be read or written, and why.
pub(crate) fn run(args: &ExportArgs) -> Result<ExitCode> {
    let to = args.output.as_deref().filter(|path| *path != Path::new("-"));
    let format = format(args, to)?;
    let folder = to.filter(|path| is_folder(path));
    let way = way(args, format, to, folder)?;
    let files = Files::open(&args.file)?;
    rights::for_reading();
    // before anything is made: it may be no recording
    let rows = Rows::of(files, args, format)?;
    match way {
        Way::Stdout => into_stdout(rows, encoder(format, weight(args))?)?,
        Way::One(to) => into_one(rows, encoder(format, weight(args))?, to)?,
        Way::Folder(folder, writer) => into_folder(rows, &folder, writer)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Where it goes.
enum Way {
    Stdout,
    One(Destination),
    Folder(PathBuf, Writer),
}

fn way(args: &ExportArgs, format: ExportFormat, to: Option<&Path>, folder: Option<&Path>) -> Result<Way> {
    let Some(path) = to else { return Ok(Way::Stdout) };
    match (format, folder) {
        (ExportFormat::Parquet, Some(folder)) => {
            return Ok(Way::Folder(folder.to_owned(), Writer::begin(folder, true)?));
        }
        (_, Some(folder)) => bail!(Usage(format!(
            "-o {}: it is a folder\nhint: name a file, or --to parquet, which writes folders",
            folder.display()
        ))),
        (_, None) => {}
    }
    refuse_itself(&args.file, path)?;
    let hint = match format {
        ExportFormat::Speedscope => "-o FILE.speedscope.json, or without --to",
        _ => "another name for -o, or without --to",
    };
    Content::from(format).check(to, hint)?;
    Ok(Way::One(Destination::begin(path)?))
}

fn format(args: &ExportArgs, to: Option<&Path>) -> Result<ExportFormat> {
    let implied = to.and_then(Content::said_by).and_then(implied);
    let Some(format) = args.to.or(implied) else {
        bail!(Usage(
            "which format?\nhint: --to jsonl, chrome, perfetto, parquet, csv, speedscope, pprof or collapsed; or -o \
             FILE.pftrace, and so on"
                .to_owned()
        ));
    };
    if args.weight.is_some() && !format.is_by_path() {
        bail!(Usage(
            "--weight: this format has every row, and adds up no time\nhint: --to speedscope, pprof or collapsed"
                .to_owned()
        ));
    }
    if to.is_none() && format.is_binary() && io::stdout().is_terminal() {
        bail!(Usage("this format is not for a terminal\nhint: -o FILE".to_owned()));
    }
    Ok(format)
}

fn implied(content: Content) -> Option<ExportFormat> {
    let formats = ExportFormat::value_variants().iter();
    formats.copied().find(|format| Content::from(*format) == content)
}

fn is_folder(path: &Path) -> bool {
    path.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(b"/")
}

/// How that is called where time is added up.
fn weight(args: &ExportArgs) -> Weight {
    match args.weight {
        None | Some(Weighed::Gpu) => Weight::Gpu,
        Some(Weighed::Wait) => Weight::Wait,
        Some(Weighed::Host) => Weight::Host,
    }
}

fn encoder(format: ExportFormat, weight: Weight) -> Result<Box<dyn Encoder>> {
    Ok(match format {
        ExportFormat::Jsonl => Box::new(Json::default().with_names(&prepare::catalog(&[])?)),
        ExportFormat::Csv => Box::new(Csv::default()),
        ExportFormat::Chrome => Box::new(chrome::encoder()),
        ExportFormat::Perfetto => Box::new(perfetto::encoder()),
        ExportFormat::Parquet => parquet_form()?,
        ExportFormat::Speedscope => Box::new(ByPath::new(Speedscope, weight)),
        ExportFormat::Pprof => Box::new(ByPath::new(Pprof, weight)),
        ExportFormat::Collapsed => Box::new(ByPath::new(Collapsed, weight)),
    })
}

fn into_one(rows: Rows, encoder: Box<dyn Encoder>, to: Destination) -> Result<()> {
    let (from, part) = (rows.files.path().to_owned(), rows.words());
    let path = to.path().to_owned();
    let mut file = to.make()?;
    let (end, written) = export(rows, encoder, &mut file).map_err(|error| failed(&error, &from, &path))?;
    end.refuse_nothing(&from)?;
    file.keep()?;
    warn(&from, &end, part.as_deref());
    remark(&written);
    tell(&end, written.bytes, &path);
    Ok(())
}

fn into_stdout(rows: Rows, encoder: Box<dyn Encoder>) -> Result<()> {
    let (from, part) = (rows.files.path().to_owned(), rows.words());
    match export(rows, encoder, &mut io::stdout().lock()) {
        Err(error) if is_of_content(&error) => Err(refused(&error, &from)),
        Err(error) => closed_is_fine(Err(error)),
        Ok((end, written)) => {
            end.refuse_nothing(&from)?;
            warn(&from, &end, part.as_deref());
            remark(&written);
            Ok(())
        }
    }
}

fn export(rows: Rows, encoder: Box<dyn Encoder>, to: &mut dyn Write) -> io::Result<(End, Written)> {
    let mut writing = Writing::new(encoder, to);
    let end = rows.read(&mut writing).map_err(io::Error::other)?;
    give_totals(&end, &mut writing);
    let written = writing.end(&ending(&end))?;
    Ok((end, written))
}

fn give_totals(end: &End, to: &mut dyn Taker) {
    if let Some(latest) = whole(end) {
        to.take(&latest.record());
    }
}

/// The last totals before a recording was cut off, if they are of its rows.
fn whole(end: &End) -> Option<&Latest> {
    end.snapshot.as_ref().filter(|latest| latest.whole)
}

fn ending(end: &End) -> Ending<'_> {
    Ending {
        summary: end.summary.as_deref(),
        cut: end.cut.as_deref(),
    }
}

/// Renaming over the file that is read would work, and cost the recording.
fn refuse_itself(from: &Path, to: &Path) -> Result<()> {
    let same = std::fs::canonicalize(from).ok() == std::fs::canonicalize(to).ok();
    if same && to.exists() {
        bail!(Usage(format!("-o {}: this is the recording itself", to.display())));
    }
    Ok(())
}

fn failed(error: &io::Error, from: &Path, to: &Path) -> anyhow::Error {
    match is_of_content(error) {
        true => refused(error, from),
        false => no_room(error, to),
    }
}

/// Whether the format cannot have what is in the recording; else writing failed.
fn is_of_content(error: &io::Error) -> bool {
    error.kind() == ErrorKind::Other && error.raw_os_error().is_none()
}

fn refused(error: &io::Error, from: &Path) -> anyhow::Error {
    anyhow::anyhow!("failed to export {}: {error}", from.display())
}

/// Says what an encoder has to say.
fn remark(written: &Written) {
    if let Some(note) = &written.note {
        say(format_args!("gpuscope: {note}"));
    }
}

fn warn(from: &Path, end: &End, part: Option<&str>) {
    if let Some(part) = part {
        return say(format_args!(
            "gpuscope: {}: {}; there are no exact totals of that",
            from.display(),
            escaped(part)
        ));
    }
    if let Some(why) = &end.cut {
        let totals = whole(end).map(|latest| Until::of(latest).to_string());
        say(format_args!(
            "gpuscope: warning: {} was cut off: {}; what is before is exported; {}",
            from.display(),
            escaped(why),
            totals.as_deref().unwrap_or("there are no exact totals")
        ));
    }
}

fn tell(end: &End, written: u64, path: &Path) {
    say(format_args!(
        "gpuscope: {} in {} ({})",
        plural(rows_of(end), "row"),
        path.display(),
        bytes(written)
    ));
}

/// All that were handed over, and that of the totals: of snapshots only the last is a row of an export, where it ends with it.
fn rows_of(end: &End) -> u64 {
    end.rows + u64::from(end.summary.is_some() || whole(end).is_some())
}

#[cfg(not(feature = "parquet"))]
fn parquet_form() -> Result<Box<dyn Encoder>> {
    bail!(Usage(WITHOUT_PARQUET.to_owned()))
}

#[cfg(not(feature = "parquet"))]
fn into_folder(_: Rows, _: &Path, _: Writer) -> Result<()> {
    bail!(Usage(WITHOUT_PARQUET.to_owned()))
}

#[cfg(not(feature = "parquet"))]
const WITHOUT_PARQUET: &str =
    "this build writes no parquet\nhint: cargo build with the feature parquet, which is on by default";

#[cfg(feature = "parquet")]
fn parquet_form() -> Result<Box<dyn Encoder>> {
    Ok(Box::new(crate::export::parquet::Parquet::default()))
}

#[cfg(feature = "parquet")]
fn into_folder(rows: Rows, folder: &Path, writer: Writer) -> Result<()> {
    let (from, part) = (rows.files.path().to_owned(), rows.words());
    let mut days = folder::Folder::new(folder, writer, rows.recording.meta());
    let end = rows.read(&mut days)?;
    end.refuse_nothing(&from)?;
    give_totals(&end, &mut days);
    let written = days.end(&ending(&end))?;
    warn(&from, &end, part.as_deref());
    tell(&end, written, folder);
    Ok(())
}

#[cfg(feature = "parquet")]
mod folder {
    use super::{Ending, Path, PathBuf, Result, Write, Writer, no_room};
    use crate::export::parquet::Days;
    use crate::record::{Meta, Record, Taker};
    use anyhow::anyhow;
    use std::collections::BTreeMap;
    use std::fs::File;

    /// Rows into the files of a folder.
    pub(crate) struct Folder {
        days: Days,
        files: Files,
    }

    /// Those that are being written, by their path.
    struct Files {
        folder: PathBuf,
        writer: Writer,
        open: BTreeMap<PathBuf, File>,
        written: u64,
        failure: Option<anyhow::Error>,
    }

    impl Folder {
        pub(crate) fn new(folder: &Path, writer: Writer, meta: &Meta) -> Folder {
            Folder {
                days: Days::new(meta),
                files: Files {
                    folder: folder.to_owned(),
                    writer,
                    open: BTreeMap::new(),
                    written: 0,
                    failure: None,
                },
            }
        }

        /// Gives all files their names. Bytes that were written.
        pub(crate) fn end(mut self, ending: &Ending<'_>) -> Result<u64> {
            let files = &mut self.files;
            let ended = self.days.end(ending, &mut |path, bytes| files.write(path, bytes));
            self.files.failure.map_or(Ok(()), Err)?;
            ended.map_err(|why| anyhow!("failed to write {}: {why}", self.files.folder.display()))?;
            self.files.writer.keep()?;
            Ok(self.files.written)
        }
    }

    impl Taker for Folder {
        fn take(&mut self, event: &Record<'_>) {
            let files = &mut self.files;
            self.days.take(event, &mut |path, bytes| files.write(path, bytes));
        }
    }

    impl Files {
        fn write(&mut self, path: &str, bytes: &[u8]) {
            if self.failure.is_none() {
                self.failure = self.try_write(path, bytes).err();
            }
        }

        fn try_write(&mut self, path: &str, bytes: &[u8]) -> Result<()> {
            let path = self.folder.join(path);
            if !self.open.contains_key(&path) {
                self.open.insert(path.clone(), self.writer.make(&path)?);
            }
            if let Some(file) = self.open.get_mut(&path) {
                file.write_all(bytes).map_err(|error| no_room(&error, &path))?;
                self.written += bytes.len() as u64;
            }
            Ok(())
        }
    }
}
