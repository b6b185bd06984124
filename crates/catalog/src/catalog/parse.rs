//! Reads a table file into the catalog; every error names file and line.

use std::ops::Range;

use super::Catalog;
use super::arg::{Arg, Written, parse_arg};
use super::class::Class;
use super::codes::{EnumTable, StructField, StructTable};
use super::form::{File, RawEnum, RawFunction, RawLibrary, RawStruct, Text};
use super::hint::{undefined, unknown, with_hint};
use super::hook;
use super::id::{EnumId, LibraryId, RowId, StructId};
use super::in_kernel::{self, Arguments};
use super::kind::Kind;
use super::launch::{self, Launch};
use super::location::{Loc, Lowering};
use super::pattern::Majors;
use super::returns::Returns;
use super::row::{Layer, Library, Row};
use super::site::SiteKind;
use super::{memory, path};
use super::{static_probe, work};

/// Something wrong in a table file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{label}:{line}: {what}")]
pub struct CatalogError {
    /// The file, as named by the caller.
    pub label: String,
    /// Line, from 1.
    pub line: usize,
    /// What was found and what was expected.
    pub what: String,
}

/// Who wrote a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    Builtin,
    User,
}

/// Adds the tables of `text` to `catalog`.
pub(super) fn add(catalog: &mut Catalog, label: &str, text: &str, origin: Origin) -> Result<(), CatalogError> {
    let at = At { label, text };
    let file: File =
        toml::from_str(text).map_err(|error| at.error(error.span().unwrap_or(0..0), with_hint(error.message())))?;
    for raw in file.enums {
        at.add_enum(catalog, raw)?;
    }
    for raw in file.structs {
        at.add_struct(catalog, raw)?;
    }
    for raw in file.library {
        at.add_library(catalog, raw, origin)?;
    }
    for raw in file.function {
        at.add_function(catalog, raw, origin)?;
    }
    Ok(())
}

/// The file that errors point into.
struct At<'a> {
    label: &'a str,
    text: &'a str,
}

impl At<'_> {
    fn error(&self, span: Range<usize>, what: String) -> CatalogError {
        let before = self.text.as_bytes().iter().take(span.start);
        let line = before.filter(|byte| **byte == b'\n').count() + 1;
        CatalogError {
            label: self.label.to_owned(),
            line,
            what,
        }
    }

    /// Points `result`'s complaint at the line of `text`.
    fn on<T>(&self, text: &Text, result: Result<T, String>) -> Result<T, CatalogError> {
        result.map_err(|what| self.error(text.span(), what))
    }

    /// A name as it is shown later, which must not drive a terminal.
    fn name(&self, text: &Text) -> Result<String, CatalogError> {
        let name = text.get_ref();
        if name.contains(char::is_control) {
            return Err(self.error(
                text.span(),
                format!("{name:?} holds a control character; write a plain name"),
            ));
        }
        Ok(name.clone())
    }

    fn add_enum(&self, catalog: &mut Catalog, raw: RawEnum) -> Result<(), CatalogError> {
        let id = self.on(&raw.name, next(catalog.enums.len()).map(EnumId))?;
        let mut values = Vec::with_capacity(raw.values.len());
        for text in &raw.values {
            self.name(text)?;
            let pair = text.get_ref().split_once('=');
            let pair = pair.and_then(|(value, name)| Some((value.trim().parse().ok()?, name.trim().to_owned())));
            let form = || format!("value \"{}\" is not of the form \"0=NAME\"", text.get_ref());
            values.push(self.on(text, pair.ok_or_else(form))?);
        }
        let name = self.name(&raw.name)?;
        if catalog.enum_names.insert(name.clone(), id).is_some() {
            return Err(self.error(raw.name.span(), format!("enum \"{name}\" is defined twice")));
        }
        catalog.enums.push(EnumTable::new(name, values));
        Ok(())
    }

    fn add_struct(&self, catalog: &mut Catalog, raw: RawStruct) -> Result<(), CatalogError> {
        let id = self.on(&raw.name, next(catalog.structs.len()).map(StructId))?;
        let majors = self.majors(raw.majors.as_ref())?;
        let mut fields = Vec::with_capacity(raw.fields.len());
        for text in &raw.fields {
            fields.push(self.on(text, field(text.get_ref(), raw.size, catalog))?);
        }
        let name = self.name(&raw.name)?;
        let overlaps = |table: &StructTable| {
            table.name == name && table.majors.first <= majors.last && majors.first <= table.majors.last
        };
        if catalog.structs.iter().any(overlaps) {
            return Err(self.error(raw.name.span(), format!("struct \"{name}\" is defined twice")));
        }
        catalog.struct_names.entry(name.clone()).or_insert(id);
        catalog.structs.push(StructTable {
            name,
            size: raw.size,
            majors,
            fields,
        });
        Ok(())
    }

    fn add_library(&self, catalog: &mut Catalog, raw: RawLibrary, origin: Origin) -> Result<(), CatalogError> {
        let name = self.name(&raw.name)?;
        if name.is_empty() || catalog.library(&name).is_some() {
            let what = format!("library \"{name}\" is already defined; choose another name");
            return Err(self.error(raw.name.span(), what));
        }
        let pattern = raw.pattern.get_ref().clone();
        if pattern.is_empty() || (pattern.contains('/') && !pattern.starts_with('/')) {
            let what = format!("match \"{pattern}\" is neither a file name such as \"libx.so*\" nor an absolute path");
            return Err(self.error(raw.pattern.span(), what));
        }
        let errors = match &raw.errors {
            None => None,
            Some(text) => {
                let names = catalog.enums.iter().map(|table| table.name.as_str());
                let id = catalog.enum_names.get(text.get_ref()).copied();
                Some(self.on(text, id.ok_or_else(|| undefined("enum", text.get_ref(), names)))?)
            }
        };
        self.on(&raw.name, next(catalog.libraries.len()))?;
        let layer = match (origin, name.as_str()) {
            (Origin::Builtin, "runtime") => Layer::Runtime,
            (Origin::Builtin, "driver") => Layer::Driver,
            _ => Layer::Custom,
        };
        catalog.libraries.push(Library {
            name,
            pattern,
            errors,
            ended: raw.ended,
            layer,
        });
        catalog.symbols.push(std::collections::HashMap::new());
        Ok(())
    }

    fn add_function(&self, catalog: &mut Catalog, raw: RawFunction, origin: Origin) -> Result<(), CatalogError> {
        let nothing = Text::new(0..0, String::new());
        let somewhere = [&raw.library, &raw.symbol, &raw.probe, &raw.kprobe, &raw.tracepoint];
        let somewhere = somewhere.into_iter().flatten().next_back().unwrap_or(&nothing);
        let (named, site) = self.on(somewhere, static_probe::what_is_named(&raw))?;
        let library = self.library_of(catalog, &raw, named)?;
        let in_kernel = self.on(named, in_kernel::of_row(&raw, catalog, origin == Origin::Builtin))?;
        let symbol = match &raw.offset {
            Some(offset) => hook::place_name(&raw, *offset.get_ref()),
            None => self.name(raw.name.as_ref().unwrap_or(named))?,
        };
        if symbol.is_empty() || symbol.contains(char::is_whitespace) {
            return Err(self.error(named.span(), format!("\"{symbol}\" is no symbol")));
        }
        let class = match &raw.class {
            None => Class::Other,
            Some(text) => {
                let names = Class::ALL.iter().map(|class| class.name());
                let found = Class::from_name(text.get_ref());
                self.on(text, found.ok_or_else(|| unknown("class", text.get_ref(), names)))?
            }
        };
        let returns = match &raw.returns {
            None => Returns::Error,
            Some(text) => {
                let found = Returns::NAMES.iter().find(|(name, _)| name == text.get_ref());
                let names = Returns::NAMES.iter().map(|(name, _)| *name);
                let found = found.map(|(_, returns)| *returns);
                self.on(text, found.ok_or_else(|| unknown("return type", text.get_ref(), names)))?
            }
        };
        let majors = self.majors(raw.majors.as_ref())?;
        let unknown_args = in_kernel.is_none() && (raw.raw || raw.args.is_none());
        let written = raw.args.as_deref().unwrap_or_default();
        let args = match (site, in_kernel.as_ref().map(|row| &row.arguments)) {
            (_, Some(Arguments::Named(args))) => {
                let args = args.iter().enumerate().map(|(index, arg)| arg.at_word(index));
                self.on(named, args.collect())?
            }
            (SiteKind::StaticProbe, _) => self.probe_args(catalog, written)?,
            _ => self.args(catalog, written)?,
        };
        let bytes = match &raw.bytes {
            None => None,
            Some(text) => Some(self.on(text, path::product(text.get_ref(), &args, catalog))?),
        };
        let direction = match &raw.direction {
            None => None,
            Some(text) => Some(self.on(text, path::direction(text.get_ref(), &args, catalog))?),
        };
        let memory = match &raw.memory {
            None => None,
            Some(text) => Some(self.on(text, memory::parse(text.get_ref(), &args, catalog))?),
        };
        let work = match &raw.work {
            None => None,
            Some(text) => Some(self.on(text, work::parse(text.get_ref(), &args, catalog))?),
        };
        let launch = self.launch(&raw, &args, catalog)?;
        let scope = hook::Scope {
            args: &args,
            catalog,
            returns,
            errors: catalog.library_with(library).and_then(|library| library.errors),
            has_bytes: bytes.is_some(),
        };
        let hook = hook::parse(&raw, named, &scope).map_err(|(text, what)| self.error(text.span(), what))?;
        let id = u32::try_from(catalog.rows.len()).map(RowId).map_err(|_| full());
        let id = self.on(named, id)?;
        let row = Row {
            library,
            api: raw
                .api
                .as_ref()
                .map_or_else(|| Ok(symbol.clone()), |api| self.name(api))?,
            symbol,
            site,
            in_kernel,
            class,
            args,
            bytes,
            direction,
            memory,
            work,
            launch,
            unloads: raw.unloads,
            chatty: raw.chatty,
            trivial: raw.trivial,
            entry_only: raw.entry_only || matches!(site, SiteKind::StaticProbe | SiteKind::Tracepoint),
            majors,
            forwards: raw.forwards,
            returns,
            ok: raw.ok,
            raw: unknown_args,
            hook,
        };
        if row.is_glob() {
            catalog.globs.push(id);
        } else if let Some(symbols) = catalog.symbols.get_mut(usize::from(library.0)) {
            symbols.entry(row.symbol.clone()).or_default().push(id);
        }
        catalog.rows.push(row);
        Ok(())
    }

    fn launch(&self, raw: &RawFunction, args: &[Arg], catalog: &Catalog) -> Result<Option<Launch>, CatalogError> {
        let shape = raw.shape.as_ref().map(|text| text.get_ref().as_str());
        if let (Some(shape), None) = (&raw.shape, &raw.kernel) {
            return Err(self.error(shape.span(), "`shape` needs `kernel`".to_owned()));
        }
        let one = |text: &Option<Text>| text.iter().count();
        let named = [&raw.kernel, &raw.stub, &raw.names].into_iter().flatten().next_back();
        if one(&raw.kernel) + one(&raw.stub) + one(&raw.names) > 1 {
            let span = named.map_or(0..0, Text::span);
            return Err(self.error(span, "only one of `kernel`, `stub` and `names`".to_owned()));
        }
        let Some(text) = named else { return Ok(None) };
        let read = if raw.kernel.is_some() {
            launch::parse(text.get_ref(), shape, args, catalog)
        } else if raw.stub.is_some() {
            launch::parse_stub(text.get_ref(), args, catalog)
        } else {
            launch::parse_names(text.get_ref(), args, catalog)
        };
        self.on(text, read).map(Some)
    }

    fn library_of(&self, catalog: &mut Catalog, raw: &RawFunction, named: &Text) -> Result<LibraryId, CatalogError> {
        let Some(text) = &raw.library else {
            let in_kernel = raw.kprobe.is_some() || raw.tracepoint.is_some();
            let missing = (!in_kernel).then(|| "missing field `library`".to_owned());
            self.on(named, missing.map_or(Ok(()), Err))?;
            return self.on(named, catalog.kernel());
        };
        let names = catalog.libraries.iter().map(|library| library.name.as_str());
        let found = catalog.library(text.get_ref());
        self.on(text, found.ok_or_else(|| undefined("library", text.get_ref(), names)))
    }

    fn args(&self, catalog: &Catalog, texts: &[Text]) -> Result<Vec<Arg>, CatalogError> {
        let mut lowering = Lowering::by(catalog.convention);
        self.placed(catalog, texts, &mut |written| {
            if catalog.convention.passes_address(written.shape) {
                written.by_address();
            }
            let loc = lowering.place(written.shape);
            loc.ok_or_else(|| "arguments exceed 64 KiB".to_owned())
        })
    }

    fn probe_args(&self, catalog: &Catalog, texts: &[Text]) -> Result<Vec<Arg>, CatalogError> {
        let mut words = 0;
        self.placed(catalog, texts, &mut |written| {
            words += 1;
            static_probe::place(written, words - 1)
        })
    }

    fn placed(
        &self,
        catalog: &Catalog,
        texts: &[Text],
        place: &mut dyn FnMut(&mut Written) -> Result<Loc, String>,
    ) -> Result<Vec<Arg>, CatalogError> {
        let mut args: Vec<Arg> = Vec::with_capacity(texts.len());
        for text in texts {
            let mut written = self.on(text, parse_arg(text.get_ref(), catalog))?;
            if args.iter().any(|arg| arg.name == written.name) {
                let what = format!("argument `{}` is named twice", written.name);
                return Err(self.error(text.span(), what));
            }
            let loc = self.on(text, place(&mut written))?;
            args.push(Arg {
                name: written.name,
                kind: written.kind,
                pass: written.pass,
                loc,
            });
        }
        Ok(args)
    }

    fn majors(&self, text: Option<&Text>) -> Result<Majors, CatalogError> {
        let Some(text) = text else {
            return Ok(Majors::ANY);
        };
        let form = || {
            format!(
                "majors \"{}\" is not of the form \"12\", \"11-12\", \"13-\" or \"-11\"",
                text.get_ref()
            )
        };
        self.on(text, Majors::parse(text.get_ref()).ok_or_else(form))
    }
}

/// Reads `extent.width: size @128`, with `(union)` after it where marked.
fn field(text: &str, size: u16, catalog: &Catalog) -> Result<StructField, String> {
    let form = || format!("field \"{text}\" is not of the form `name: KIND @OFFSET`");
    let (plain, union) = text.strip_suffix("(union)").map_or((text, false), |text| (text, true));
    let (path, rest) = plain.split_once(':').ok_or_else(form)?;
    let (kind, offset) = rest.rsplit_once('@').ok_or_else(form)?;
    let offset: u16 = offset.trim().parse().map_err(|_| form())?;
    let kind = Kind::parse(kind.trim(), catalog).map_err(|why| format!("field `{path}`: {why}"))?;
    let bytes = kind.bytes(catalog).ok_or_else(form)?;
    match offset.checked_add(bytes) {
        Some(end) if end <= size => Ok(StructField {
            path: path.trim().to_owned(),
            kind,
            offset,
            bytes,
            union,
        }),
        _ => Err(format!("field `{path}` reaches beyond the struct's {size} bytes")),
    }
}

fn full() -> String {
    "too many definitions".to_owned()
}

fn next(length: usize) -> Result<u16, String> {
    u16::try_from(length).map_err(|_| full())
}
