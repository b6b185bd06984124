//! Which functions a run is about: globs, classes and layers. Pure.
//!
//! Filtering happens before attaching: a function that is filtered out costs nothing. Conditions on a single
//! call (duration, failure, process) are the kernel program's business.

use crate::catalog::{Catalog, Class, Layer, Row, glob_matches};
use crate::decode::class_is;

/// One `--filter` argument.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Rule {
    exclude: bool,
    pattern: Pattern,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Pattern {
    Glob(String),
    Class(String),
}

/// The selection of functions; see [`Filter::parse`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    rules: Vec<Rule>,
    layers: Vec<Layer>,
    only: Option<Roles>,
    getters: Getters,
}

/// Which functions that only give something out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Getters {
    #[default]
    All,
    OfErrors,
    None,
}

impl Getters {
    fn include(self, row: &Row) -> bool {
        match self {
            Getters::All => true,
            Getters::OfErrors => row.class == Class::Error,
            Getters::None => false,
        }
    }
}

/// What functions have to do with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Roles {
    /// Who holds memory.
    pub memory: bool,
    /// What streams are given to do, and when it is done. Follows from memory, too.
    pub work: bool,
    /// Kernels, and their names.
    pub launches: bool,
    /// What the kernel driver is asked for.
    pub ioctls: bool,
}

impl Roles {
    fn has(self, row: &Row) -> bool {
        let memory = (self.memory || self.work) && row.memory.is_some();
        let asks = self.ioctls && row.class == Class::Ioctl;
        memory || self.work && row.work.is_some() || self.launches && row.launch.is_some() || asks
    }
}

impl Filter {
    /// Every function that has a role in who holds memory, in all layers, and no other.
    pub fn memory() -> Filter {
        Filter {
            rules: Vec::new(),
            layers: vec![Layer::Runtime, Layer::Driver],
            only: Some(Roles {
                memory: true,
                ..Roles::default()
            }),
            getters: Getters::All,
        }
    }

    /// Without functions that only give something out and that programs call by the thousand, unless something else
    /// follows from them.
    #[must_use]
    pub fn without_getters(self) -> Filter {
        Filter {
            getters: Getters::None,
            ..self
        }
    }

    /// As [`Self::without_getters`], but with those that ask for errors, which tell whether anybody checks.
    #[must_use]
    pub fn without_queries(self) -> Filter {
        Filter {
            getters: Getters::OfErrors,
            ..self
        }
    }

    /// With all calls to the kernel driver, whatever else is selected.
    #[must_use]
    pub fn with_ioctls(mut self) -> Filter {
        self.layers.push(Layer::Kernel);
        if let Some(roles) = self.only.as_mut() {
            roles.ioctls = true;
        }
        self
    }

    /// Every function with one of `roles` in the layers of those names, and no other.
    ///
    /// # Errors
    /// Names the layer that does not exist, and those that do.
    pub fn of_roles(roles: Roles, layers: &[String]) -> anyhow::Result<Filter> {
        Ok(Filter {
            rules: Vec::new(),
            layers: parse_layers(layers)?,
            only: Some(roles),
            getters: Getters::All,
        })
    }

    /// Reads `--filter` rules (`GLOB`, `@CLASS`, `!` before either excludes) and `--layer` names.
    ///
    /// # Errors
    /// Names the class or layer that does not exist, and those that do.
    pub fn parse(rules: &[String], layers: &[String]) -> anyhow::Result<Filter> {
        let rules = rules
            .iter()
            .map(|rule| parse_rule(rule))
            .collect::<anyhow::Result<_>>()?;
        Ok(Filter {
            rules,
            layers: parse_layers(layers)?,
            only: None,
            getters: Getters::All,
        })
    }

    /// Whether functions of `layer` are looked at. A user's own hooks always are.
    pub fn has_layer(&self, layer: Layer) -> bool {
        layer == Layer::Custom || self.layers.contains(&layer)
    }

    /// Whether the function is traced: no rule excludes it and, if there are including rules, one does.
    pub fn selects(&self, catalog: &Catalog, row: &Row) -> bool {
        let layer = catalog.library_with(row.library).map(|library| library.layer);
        let mut including = self.rules.iter().filter(|rule| !rule.exclude).peekable();
        layer.is_some_and(|layer| self.has_layer(layer) || row.in_kernel.is_some())
            && self.only.is_none_or(|roles| roles.has(row))
            && (layer == Some(Layer::Custom) || self.takes(row))
            && !self.rules.iter().any(|rule| rule.exclude && rule.matches(row))
            && (including.peek().is_none() || including.any(|rule| rule.matches(row)))
    }

    /// Whether it is no getter that is left out: one that is asked for by name or class is not.
    fn takes(&self, row: &Row) -> bool {
        !is_getter(row) || self.getters.include(row) || self.asks_for(row)
    }

    /// Whether functions are not selected for being getters alone.
    pub fn leaves_getters_out(&self, catalog: &Catalog) -> bool {
        let all = Filter {
            getters: Getters::All,
            ..self.clone()
        };
        let mut rows = catalog.rows.iter();
        rows.any(|row| !self.takes(row) && all.selects(catalog, row))
    }

    /// The same of a recorded call, by the rules alone.
    pub fn selects_call(&self, symbol: &str, class: Class) -> bool {
        let mut including = self.rules.iter().filter(|rule| !rule.exclude).peekable();
        let matches = |rule: &Rule| rule.pattern.matches(&[symbol], class);
        !self.rules.iter().any(|rule| rule.exclude && matches(rule))
            && (including.peek().is_none() || including.any(matches))
    }

    /// Whether no function of CUDA with a role in who holds memory is left out, in the layers that are looked at.
    /// Else what is held cannot be told.
    pub fn covers_memory(&self, catalog: &Catalog) -> bool {
        let looked_at = |row: &&Row| {
            let library = catalog.library_with(row.library);
            let layer = library.map_or(Layer::Custom, |library| library.layer);
            row.memory.is_some() && layer != Layer::Custom && self.has_layer(layer)
        };
        let mut rows = catalog.rows.iter().filter(looked_at);
        rows.all(|row| self.selects(catalog, row))
    }

    /// Whether the driver is looked at, and none of its functions that has to do with a device's work, or with the memory
    /// that it is done in, is left out. Else nothing can be said of when a device was idle.
    pub fn covers_work(&self, catalog: &Catalog) -> bool {
        let driver = |row: &Row| {
            let library = catalog.library_with(row.library);
            library.is_some_and(|library| library.layer == Layer::Driver)
        };
        let mut rows = catalog
            .rows
            .iter()
            .filter(|row| row.work.is_some() || row.memory.is_some());
        self.has_layer(Layer::Driver) && rows.all(|row| !driver(row) || self.selects(catalog, row))
    }

    /// Whether the user asked for this very function or its class, so that its calls are shown though it is chatty.
    pub fn asks_for(&self, row: &Row) -> bool {
        self.rules
            .iter()
            .any(|rule| !rule.exclude && rule.is_specific() && rule.matches(row))
    }
}

fn is_getter(row: &Row) -> bool {
    row.chatty && row.memory.is_none() && row.work.is_none() && row.launch.is_none()
}

impl Rule {
    fn matches(&self, row: &Row) -> bool {
        self.pattern.matches(&[&row.symbol, &row.api], row.class)
    }

    fn is_specific(&self) -> bool {
        !matches!(&self.pattern, Pattern::Glob(glob) if glob == "*")
    }
}

impl Pattern {
    fn matches(&self, names: &[&str], class: Class) -> bool {
        match self {
            Pattern::Glob(glob) => names.iter().any(|name| glob_matches(glob, name)),
            Pattern::Class(wanted) => class_is(class, wanted),
        }
    }
}

fn parse_rule(text: &str) -> anyhow::Result<Rule> {
    let (exclude, rest) = text.strip_prefix('!').map_or((false, text), |rest| (true, rest));
    anyhow::ensure!(
        !rest.is_empty(),
        "--filter {text:?} is empty\nhint: a glob such as 'cudaMemcpy*', or @copy"
    );
    let pattern = match rest.strip_prefix('@') {
        Some(class) => Pattern::Class(known_class(class)?.to_owned()),
        None => Pattern::Glob(rest.to_owned()),
    };
    Ok(Rule { exclude, pattern })
}

/// The class of that name, as written after `@`.
///
/// # Errors
/// Names those that exist.
pub fn known_class(name: &str) -> anyhow::Result<&str> {
    if Class::ALL.iter().any(|class| class_is(*class, name)) {
        return Ok(name);
    }
    let known: Vec<&str> = Class::ALL.iter().map(|class| class.name()).collect();
    anyhow::bail!("no class is named {name:?}\nhint: one of {}", known.join(", "))
}

fn parse_layers(names: &[String]) -> anyhow::Result<Vec<Layer>> {
    let mut layers = Vec::new();
    for name in names.iter().flat_map(|names| names.split(',')) {
        match name {
            "runtime" => layers.push(Layer::Runtime),
            "driver" => layers.push(Layer::Driver),
            "kernel" => layers.push(Layer::Kernel),
            "all" => layers.extend([Layer::Runtime, Layer::Driver, Layer::Kernel]),
            _ => anyhow::bail!("no layer is named {name:?}\nhint: runtime, driver, kernel or all"),
        }
    }
    Ok(layers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::LazyLock;

    static CATALOG: LazyLock<Catalog> = LazyLock::new(|| Catalog::builtin().unwrap());

    #[test]
    fn getters_are_left_out_but_for_those_that_ask_for_errors_and_those_that_something_follows_from() {
        let all = Filter::parse(&[], &["all".to_owned()]).unwrap();
        let (few, fewest) = (all.clone().without_queries(), all.clone().without_getters());
        let selects = |symbol: &str| {
            let row = CATALOG.rows.iter().find(|row| row.symbol == symbol).unwrap();
            [&all, &few, &fewest].map(|filter| filter.selects(&CATALOG, row))
        };
        assert_eq!(selects("cudaGetDevice"), [true, false, false]);
        assert_eq!(selects("cuCtxGetCurrent"), [true, false, false]);
        assert_eq!(selects("cudaGetLastError"), [true, true, false]);
        assert_eq!(selects("cudaStreamQuery"), [true, true, true]);
        assert_eq!(selects("cuLaunchKernel"), [true, true, true]);
        assert_eq!(
            [all, few, fewest].map(|filter| filter.leaves_getters_out(&CATALOG)),
            [false, true, true]
        );
    }

    #[test]
    fn getters_that_are_asked_for_are_not_left_out() {
        let leaves_out = |rules: &[&str], symbol: &str| {
            let rules: Vec<String> = rules.iter().map(|rule| (*rule).to_owned()).collect();
            let filter = Filter::parse(&rules, &["all".to_owned()]).unwrap().without_queries();
            let row = CATALOG.rows.iter().find(|row| row.symbol == symbol).unwrap();
            (!filter.selects(&CATALOG, row), filter.leaves_getters_out(&CATALOG))
        };
        assert_eq!(leaves_out(&["cudaGetDevice"], "cudaGetDevice"), (false, false));
        assert_eq!(leaves_out(&["@query"], "cudaGetDevice"), (false, false));
        assert_eq!(
            leaves_out(&["@launch"], "cudaGetDevice"),
            (true, false),
            "not asked for at all"
        );
        assert_eq!(leaves_out(&["!@sync"], "cudaGetDevice"), (true, true));
        assert_eq!(leaves_out(&["*"], "cudaGetDevice"), (true, true));
    }

    fn selected(rules: &[&str], symbol: &str) -> bool {
        let rules: Vec<String> = rules.iter().map(|rule| (*rule).to_owned()).collect();
        let filter = Filter::parse(&rules, &["all".to_owned()]).unwrap();
        let row = CATALOG.rows.iter().find(|row| row.symbol == symbol).unwrap();
        filter.selects(&CATALOG, row)
    }

    #[test]
    fn without_rules_everything_is_selected() {
        assert!(selected(&[], "cudaMalloc"));
    }

    #[test]
    fn an_exclusion_wins_over_an_inclusion() {
        assert!(selected(&["@memory"], "cudaMalloc"));
        assert!(!selected(&["@memory", "!cudaMalloc"], "cudaMalloc"));
        assert!(selected(&["!cudaMalloc"], "cudaFree"));
    }

    #[test]
    fn a_glob_also_matches_the_documented_name() {
        assert!(selected(&["cuMemAlloc"], "cuMemAlloc_v2"));
        assert!(!selected(&["cudaMemcpy*"], "cudaMalloc"));
    }

    #[test]
    fn the_filter_for_memory_selects_what_has_a_role_in_it_and_no_more() {
        let filter = Filter::memory();
        assert!(filter.covers_memory(&CATALOG));
        assert!(
            CATALOG
                .rows
                .iter()
                .all(|row| filter.selects(&CATALOG, row) == row.memory.is_some())
        );
    }

    #[test]
    fn a_filter_that_leaves_out_a_release_cannot_tell_what_is_held() {
        let covers = |rules: &[&str], layer: &str| {
            let rules: Vec<String> = rules.iter().map(|rule| (*rule).to_owned()).collect();
            Filter::parse(&rules, &[layer.to_owned()])
                .unwrap()
                .covers_memory(&CATALOG)
        };
        assert!(
            covers(&[], "runtime,driver") && covers(&["!cudaLaunchKernel"], "runtime,driver") && covers(&[], "driver")
        );
        assert!(!covers(&["@alloc"], "runtime,driver") && !covers(&["!cuMemFree*"], "driver"));
    }

    #[test]
    fn a_filter_that_leaves_out_a_way_of_giving_work_cannot_tell_when_a_device_is_idle() {
        let covers = |rules: &[&str], layer: &str| {
            let rules: Vec<String> = rules.iter().map(|rule| (*rule).to_owned()).collect();
            Filter::parse(&rules, &[layer.to_owned()])
                .unwrap()
                .covers_work(&CATALOG)
        };
        assert!(covers(&[], "runtime,driver") && covers(&[], "driver") && covers(&["!cuda*"], "all"));
        assert!(!covers(&[], "runtime") && !Filter::memory().covers_work(&CATALOG));
        for rule in ["@launch", "!cuLaunchKernel", "!@sync", "!cuMemHostAlloc*"] {
            assert!(!covers(&[rule], "all"), "{rule}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_filter_is_read_or_refused_with_a_hint(rule in "\\PC{0,20}", layer in "[a-z,]{0,20}") {
            if let Err(error) = Filter::parse(&[rule], &[layer]) {
                assert!(error.to_string().contains("hint: "), "{error}");
            }
        }

        #[test]
        fn a_rule_and_its_exclusion_select_nothing_together(rule in "(@(alloc|copy|sync)|cuda[A-Z*?]{0,3})") {
            let rules = [rule.clone(), format!("!{rule}")];
            let filter = Filter::parse(&rules, &["all".to_owned()]).unwrap();
            assert!(!CATALOG.rows.iter().any(|row| filter.selects(&CATALOG, row)));
        }

        #[test]
        fn a_rule_selects_what_its_exclusion_leaves_out(rule in "(@(alloc|copy|sync)|cuda[A-Z*?]{0,3})") {
            let filter = |rule: String| Filter::parse(&[rule], &["all".to_owned()]).unwrap();
            let (with, without) = (filter(rule.clone()), filter(format!("!{rule}")));
            assert!(CATALOG.rows.iter().all(|row| with.selects(&CATALOG, row) != without.selects(&CATALOG, row)));
        }
    }

    #[test]
    fn an_unknown_class_names_the_known_ones() {
        let error = Filter::parse(&["@aloc".into()], &[]).unwrap_err().to_string();
        assert!(error.contains("\"aloc\"") && error.contains("alloc"), "{error}");
    }
}
