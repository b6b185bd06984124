use super::*;
use crate::cli::{Cli, Command};
use clap::Parser;
use proptest::prelude::*;

fn args(words: &[&str]) -> ServeArgs {
    match Cli::try_parse_from([&["gpuscope", "serve"], words].concat())
        .unwrap()
        .command
    {
        Command::Serve(args) => *args,
        other => panic!("{other:?}"),
    }
}

fn flags(words: &[&str]) -> Result<Config, String> {
    parse(&args(words), None).map_err(|mistakes| mistakes.to_string())
}

fn file(text: &str) -> Result<Config, String> {
    parse(&ServeArgs::default(), Some((Path::new("/etc/g.toml"), text.as_bytes()))).map_err(|said| said.to_string())
}

fn names(config: &Config) -> Vec<&'static str> {
    config.collect.iter().map(|collector| collector.name()).collect()
}

#[test]
fn without_anything_there_are_defaults() {
    assert_eq!(flags(&[]), Ok(Config::default()));
    assert_eq!(file(""), Ok(Config::default()));
}

#[test]
fn a_flag_and_a_key_of_the_file_say_the_same() {
    for (words, text) in [
        (&["--collect", "api,nvml"][..], "collect = [\"api\", \"nvml\"]"),
        (&["--collect", "!api"], "collect = \"!api\""),
        (&["--layer", "runtime"], "layer = \"runtime\""),
        (&["--hooks", "/a", "--hooks", "/b,c"], "hooks = [\"/a\", \"/b,c\"]"),
        (&["--nvml-interval", "2s"], "nvml_interval = \"2s\""),
        (
            &["--listen", "[::1]:0,127.0.0.1:80"],
            "listen = [\"[::1]:0\", \"127.0.0.1:80\"]",
        ),
        (&["--metrics-addr", "0.0.0.0:9000"], "listen = \"0.0.0.0:9000\""),
        (&["--health-listen", "0.0.0.0:9749"], "health_listen = \"0.0.0.0:9749\""),
        (&["--telemetry-path", "/m"], "telemetry_path = \"/m\""),
        (&["--web-config", "/w.yml"], "web_config = \"/w.yml\""),
        (&["--display-interval", "5s"], "display_interval = \"5s\""),
        (&["--display-interval", "5"], "display_interval = \"5s\""),
        (&["--labels", "pid,env:USER"], "labels = [\"pid\", \"env:USER\"]"),
        (&["--labels", ""], "labels = []"),
        (
            &["--kubelet", "http://127.0.0.1:10255"],
            "kubelet = \"http://127.0.0.1:10255\"",
        ),
        (&["--pod-resources", "/run/k.sock"], "pod_resources = \"/run/k.sock\""),
        (&["--keep", "60s"], "keep = \"1min\""),
        (&["--keep-memory", "8MiB"], "keep_memory = \"8MiB\""),
        (&["--keep-folder", "/k"], "keep_folder = \"/k\""),
        (&["--keep-disk", "2048MiB"], "keep_disk = \"2GiB\""),
        (&["--pod-resources", "off"], "pod_resources = \"off\""),
        (&["--top-kernels", "0"], "top_kernels = 0"),
        (&["--max-series", "100000"], "max_series = 100_000"),
        (&["--max-owners", "7"], "max_owners = 7"),
        (&["--retain", "10min"], "retain = \"10min\""),
        (
            &["--otlp", "http://c:4318/v1/metrics"],
            "otlp.url = \"http://c:4318/v1/metrics\"",
        ),
        (
            &[
                "--otlp",
                "https://c/",
                "--otlp-interval",
                "1min",
                "--otlp-timeout",
                "2s",
                "--otlp-header",
                "A=b=c",
            ],
            "[otlp]\nurl = \"https://c/\"\ninterval = \"1min\"\ntimeout = \"2s\"\nheaders = { a = \"b=c\" }",
        ),
    ] {
        let by_flags = flags(words).unwrap();
        assert_ne!(by_flags, Config::default(), "{words:?}");
        assert_eq!(file(text), Ok(by_flags), "{text}");
    }
}

#[test]
fn a_flag_goes_before_the_file() {
    let text = "max_owners = 7\nretain = \"2h\"\ndisplay_interval = \"5s\"\ncollect = \"nvml\"";
    let read = |words: &[&str]| parse(&args(words), Some((Path::new("g.toml"), text.as_bytes()))).unwrap();
    let config = read(&["--max-owners", "8", "--display-interval", "off"]);
    assert_eq!((config.max_owners, config.retain), (8, Duration::from_secs(7200)));
    assert_eq!(config.display_interval, None);
    assert_eq!(names(&read(&["--memleak"])), ["memory", "self"]);
}

#[test]
fn files_are_named_relative_to_the_file_that_names_them() {
    let config = file("hooks = [\"h.toml\"]\nweb_config = \"../w.yml\"").unwrap();
    assert_eq!(config.hooks, [Path::new("/etc/h.toml")]);
    assert_eq!(config.web_config.as_deref(), Some(Path::new("/etc/../w.yml")));
    assert_eq!(flags(&["--hooks", "h.toml"]).unwrap().hooks, [Path::new("h.toml")]);
}

#[test]
fn flags_of_gpuprobe_name_collectors() {
    for (words, expected) in [
        (&["--memleak"][..], &["memory", "self"][..]),
        (&["--cudatrace"], &["api", "errors", "launches", "self"]),
        (&["--bandwidth-util"], &["copies", "self"]),
        (&["--memleak", "--bandwidth-util"], &["memory", "copies", "self"]),
        (&["--memleak", "--collect", "sync"], &["memory", "sync", "self"]),
    ] {
        assert_eq!(names(&flags(words).unwrap()), expected, "{words:?}");
    }
}

#[test]
fn what_slows_others_down_is_measured_only_where_it_is_asked_for() {
    let usual = flags(&[]).unwrap();
    for (collector, name) in [
        (Collector::Getters, "getters"),
        (Collector::Buckets, "buckets"),
        (Collector::Driver, "driver"),
        (Collector::Sites, "sites"),
    ] {
        assert!(!usual.collect.contains(&collector), "{name}");
        assert_eq!(names(&flags(&["--collect", name]).unwrap()), [name]);
    }
    assert!(flags(&["--collect", "driver"]).unwrap().needs_probes());
}

#[test]
fn what_is_behind_a_plus_is_measured_beside_the_usual() {
    let usual = flags(&[]).unwrap().collect;
    let with = |words: &str| flags(&["--collect", words]).unwrap().collect;
    let mut more = usual.clone();
    more.extend([Collector::Sites, Collector::Driver]);
    assert_eq!(with("+sites,+driver"), more);
    more.remove(&Collector::Driver);
    more.remove(&Collector::Memory);
    assert_eq!(with("+sites,!memory"), more);
    assert_eq!(with("+api"), usual);
    assert!(flags(&["--collect", "+"]).is_err() && flags(&["--collect", "+nothing"]).is_err());
}

#[test]
fn the_layer_of_the_kernel_is_the_collector_driver() {
    let collects = |words: &[&str]| flags(words).unwrap().collect.contains(&Collector::Driver);
    assert!(collects(&["--layer", "kernel"]) && collects(&["--layer", "all", "--collect", "api"]));
    assert!(!collects(&["--layer", "runtime,driver"]));
    let all = flags(&["--layer", "all"]).unwrap();
    assert_eq!(file(&all.show()), Ok(all));
}

#[test]
fn collectors_without_probes_need_none() {
    assert!(!flags(&["--collect", "nvml,xid,self"]).unwrap().needs_probes());
    for collector in ["api", "errors", "memory", "launches", "copies", "sync"] {
        assert!(flags(&["--collect", collector]).unwrap().needs_probes(), "{collector}");
    }
}

#[test]
fn what_is_wrong_with_a_flag_is_said_with_its_name_and_the_cure() {
    for (words, said) in [
        (
            &["--collect", "ap"][..],
            "--collect: unknown collector \"ap\"; hint: did you mean api?",
        ),
        (
            &["--collect", "xxxxxxx"],
            "hint: some of api, getters, buckets, errors, memory",
        ),
        (&["--collect", ","], "--collect: nothing is measured; hint: some of"),
        (&["--collect", "api,!api"], "nothing is measured"),
        (
            &["--layer", "kernal"],
            "--layer: no layer is named \"kernal\"; hint: runtime, driver, kernel or all",
        ),
        (&["--layer", ""], "--layer: there is no value; hint: leave it out"),
        (
            &["--listen", "9748"],
            "--listen: \"9748\" is no address with a port; hint: an IP address and a port",
        ),
        (
            &["--listen", ":9748"],
            "hint: 127.0.0.1:9748 for this machine only, [::]:9748 for others",
        ),
        (
            &["--listen", "localhost:9748"],
            "hint: an IP address and a port, such as 127.0.0.1:9748",
        ),
        (
            &["--listen", "127.0.0.1:80,127.0.0.1:80"],
            "is there twice; hint: write it once",
        ),
        (&["--listen", ""], "--listen: there is no value"),
        (
            &["--nvml-interval", "1"],
            "\"1\" is no duration; hint: a number and s, min, h or d",
        ),
        (&["--nvml-interval", "999ms"], "is too short; hint: at least 1s"),
        (&["--nvml-interval", "2h"], "is too long; hint: at most 1h"),
        (&["--display-interval", "x"], "--display-interval: \"x\" is no duration"),
        (&["--retain", "1w"], "--retain: \"1w\" is no duration"),
        (
            &["--telemetry-path", "metrics"],
            "does not begin with a slash; hint: such as /metrics",
        ),
        (&["--telemetry-path", "/readyz"], "is a page of its own"),
        (&["--telemetry-path", "/m?x"], "no letter, digit"),
        (
            &["--labels", "containr"],
            "--labels: \"containr\" is no label; hint: comm, exe",
        ),
        (
            &["--labels", "env:a-b,env:a_b"],
            "would both be the label env_a_b; hint: leave one out",
        ),
        (&["--labels", "env:A=B"], "hint: env:JOB_NAME"),
        (&["--labels", "pid,pid"], "is there twice"),
        (
            &["--kubelet", "127.0.0.1:10255"],
            "hint: such as http://127.0.0.1:10255",
        ),
        (&["--top-kernels", "1001"], "hint: a whole number from 0 to 1000"),
        (&["--max-series", "-1"], "--max-series"),
        (&["--max-series", "99"], "a whole number from 100 to 1000000"),
        (&["--max-owners", "0"], "a whole number from 1 to 100000"),
        (
            &["--otlp", "grpc://c"],
            "--otlp: \"grpc://c\" is no http:// or https:// address",
        ),
        (&["--otlp", "http://c:/"], "is no http:// or https:// address"),
        (&["--otlp-timeout", "5s"], "nothing is pushed without a URL"),
        (
            &["--otlp", "http://c/", "--otlp-header", "nothing"],
            "a header is NAME=VALUE",
        ),
        (
            &["--otlp", "http://c/", "--otlp-header", "a b=c"],
            "is no name of a header",
        ),
        (&["--hooks", ""], "--hooks: \"\" is no name of a file"),
        (
            &["--budget", "1"],
            "\"1\" does not do; hint: from 0.01% to 100%, such as 1%",
        ),
        (&["--budget", "0%"], "\"0%\" does not do"),
        (&["--budget", "-1%"], "\"-1%\" does not do"),
        (&["--budget", "NaN%"], "\"NaN%\" does not do"),
        (&["--budget", "inf %"], "\"inf %\" does not do"),
        (
            &["--budget-except", "comm=x"],
            "--budget-except: there is no budget that it could be an exception from; hint: --budget 1%, say",
        ),
        (
            &["--budget", "1%", "--budget-except", "comm"],
            "--budget-except: \"comm\" is not LABEL=GLOB; hint: such as unit=render-*.service or cgroup=/batch.slice/*",
        ),
        (
            &["--budget", "1%", "--budget-except", "cgroups=/x"],
            "there is no label \"cgroups\"; hint: comm, exe",
        ),
        (
            &["--budget", "1%", "--budget-except", "env:TEAM=render"],
            "env:TEAM is not among the labels; hint: add it to --labels, or name a cgroup",
        ),
        (
            &["--collect", "nvml", "--budget", "1%"],
            "--budget: nothing is probed that could take a program's time; hint: leave it out, or collect api",
        ),
    ] {
        let words: Vec<String> = match words {
            [flag, value] => vec![format!("{flag}={value}")],
            more => more.iter().map(|word| (*word).to_owned()).collect(),
        };
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let refused = flags(&words).expect_err(&format!("{words:?}"));
        assert!(refused.contains(said), "{words:?}: {refused}");
    }
}

#[test]
fn what_is_wrong_with_a_file_is_said_with_its_place_and_the_cure() {
    for (text, said) in [
        (
            "colect = []",
            "/etc/g.toml:1:1: unknown key \"colect\"; hint: did you mean collect?",
        ),
        (
            "\n\n  top-kernals = 5",
            "/etc/g.toml:3:3: unknown key \"top_kernals\"; hint: did you mean top_kernels?",
        ),
        ("xxxxxxxxxx = 5", "hint: one of collect, layer, hooks"),
        (
            "[otlp]\nul = 5",
            "/etc/g.toml:2:1: unknown key \"ul\"; hint: did you mean otlp.url?",
        ),
        ("[otl]\n", "hint: did you mean otlp?"),
        (
            "otlp = \"http://c\"",
            "/etc/g.toml:1:8: otlp: write a table, such as [otlp] with url = ",
        ),
        (
            "collect = [[\"api\"]]",
            "/etc/g.toml:1:11: collect: write a list of texts",
        ),
        ("collect = []", "/etc/g.toml:1:1: nothing is measured"),
        ("listen = 9748", "/etc/g.toml:1:10: \"9748\" is no address"),
        (
            "top_kernels = 1.5",
            "/etc/g.toml:1:15: \"1.5\" does not do; hint: a whole number",
        ),
        ("top_kernels = [1]", "top_kernels: write one value"),
        ("retain = 5", "/etc/g.toml:1:10: \"5\" is no duration"),
        ("retain = \"5s\"\nretain = \"6s\"", "/etc/g.toml:2:1: duplicate key"),
        ("retain = \"5s", "/etc/g.toml:1:1"),
        ("öö = \"é\" x", "/etc/g.toml:1:"),
        (
            "[otlp]\nheaders = { a = \"b\" }",
            "/etc/g.toml:2:1: nothing is pushed without a URL",
        ),
        (
            "[otlp]\nurl = \"http://c\"\nheaders = [\"a\"]",
            "/etc/g.toml:3:11: otlp.headers: write a table",
        ),
        (
            "[otlp]\nurl = \"http://c\"\nheaders.a = []",
            "otlp.headers: its values are texts",
        ),
    ] {
        let refused = file(text).expect_err(text);
        assert!(refused.contains(said), "{text}: {refused}");
    }
}

#[test]
fn every_mistake_is_told_of_and_a_secret_is_not() {
    let text = "retain = 1\nlisten = \"x\"\n[otlp]\nurl = \"http://c\"\nheaders = { a = \"hidden\\n\" }";
    let refused = file(text).unwrap_err();
    let places: Vec<&str> = refused.lines().filter_map(|line| line.split(": ").next()).collect();
    assert_eq!(places.len(), 3, "{refused}");
    for place in ["/etc/g.toml:1:10", "/etc/g.toml:2:10", "/etc/g.toml:5:13"] {
        assert!(places.contains(&place), "{place}: {refused}");
    }
    assert!(!refused.contains("hidden"), "{refused}");
    let config = file("[otlp]\nurl = \"http://c\"\nheaders = { a = \"hidden\" }").unwrap();
    assert!(config.show().contains("\"a\"") && !config.show().contains("hidden"));
}

#[test]
fn what_needs_a_restart_is_said_and_kept() {
    let now = Config::default();
    let text =
        "listen = \"[::]:1\"\ncollect = \"api\"\nlayer = \"driver\"\nhooks = [\"h\"]\nmax_owners = 5\nlabels = []";
    let new = file(text).unwrap();
    let said = now.changes_that_need_a_restart(&new);
    let keys: Vec<&str> = said.iter().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(keys, ["collect", "layer", "hooks", "listen"]);
    assert_eq!(
        said[3],
        "listen stays [\"127.0.0.1:9748\"]; for [\"[::]:1\"], restart gpuscope"
    );
    let after = now.reloaded(new);
    assert_eq!(
        (after.listen.clone(), after.max_owners, after.labels.len()),
        (now.listen.clone(), 5, 0)
    );
    assert!(now.changes_that_need_a_restart(&after).is_empty());
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    for (path, why) in [
        ("/nonexistent/g.toml", "No such file"),
        ("/", "directory"),
        ("/dev/zero", "longer than 1 MiB"),
    ] {
        let error = check(&args(&["--config", path])).unwrap_err();
        let said = crate::refusal::message(&error);
        assert!(
            said.contains(path) && said.contains(why) && said.contains("hint: "),
            "{said}"
        );
        assert!(error.is::<Usage>());
    }
}

#[test]
fn what_is_kept_has_bounds_and_needs_calls() {
    for (words, said) in [
        (
            &["--keep", "60"][..],
            "--keep: \"60\" is no duration; hint: a number and s",
        ),
        (&["--keep", "2h"], "--keep: \"2h\" is too long; hint: at most 1h"),
        (
            &["--keep-memory", "1KiB"],
            "--keep-memory: \"1KiB\" does not do; hint: a size from 1MiB to 1TiB",
        ),
        (
            &["--keep-disk", "5"],
            "--keep-disk: \"5\" does not do; hint: a size from 1MiB to 1TiB",
        ),
        (
            &["--keep", "60s", "--collect", "nvml,self"],
            "--keep: no call is traced that could be kept; hint: collect api",
        ),
    ] {
        let refused = flags(words).unwrap_err();
        assert!(refused.starts_with(said), "{refused}");
    }
}

const PAGE: &str = include_str!("../../../docs/serve.md");

/// The blocks of the page in this language.
fn blocks(language: &str) -> Vec<&'static str> {
    let fence = format!("```{language}\n");
    PAGE.split(&fence)
        .skip(1)
        .filter_map(|rest| rest.split("\n```").next())
        .collect()
}

#[test]
fn the_file_of_the_documentation_is_right_and_has_every_key() {
    let blocks = blocks("toml");
    let [text] = blocks.as_slice() else {
        panic!("one file, not {blocks:?}")
    };
    let config = file(text).unwrap();
    let shown = config.show();
    for (key, _, _) in settings::KEYS {
        let name = key.strip_prefix("otlp.").unwrap_or(key);
        let has = |text: &str| text.lines().any(|line| line.starts_with(&format!("{name} = ")));
        assert!(has(text) && has(&shown), "{key}");
    }
}

#[test]
fn the_documentation_has_every_flag_and_no_other() {
    let command = <Cli as clap::CommandFactory>::command();
    let serve = command.find_subcommand("serve").unwrap();
    for flag in serve
        .get_arguments()
        .flat_map(|one| one.get_long_and_visible_aliases().unwrap_or_default())
    {
        assert!(PAGE.contains(&format!("--{flag}")), "--{flag}");
    }
    for (_, flag, _) in settings::KEYS {
        let flag = flag.trim_start_matches('-');
        assert!(serve.get_arguments().any(|one| one.get_long() == Some(flag)), "{flag}");
    }
}

#[test]
fn every_metric_of_the_documentation_exists() {
    let words = PAGE.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let named: BTreeSet<&str> = words
        .filter(|word| word.starts_with("gpuscope_") || word.starts_with("process_"))
        .collect();
    for name in named.iter().filter(|name| **name != "gpuscope_gpu_") {
        assert!(
            crate::serve::metrics::all().any(|metric| metric.name == *name),
            "{name}"
        );
    }
    assert!(named.len() > 20, "{named:?}");
}

#[test]
fn the_documentation_has_the_default_of_every_key() {
    let shown = Config::default().show();
    let row = |flag: &str| {
        PAGE.lines()
            .find(|line| line.starts_with(&format!("| `{flag} ")))
            .unwrap()
    };
    for (key, flag, _) in settings::KEYS.iter().filter(|(key, _, _)| !key.starts_with("otlp.")) {
        let line = shown
            .lines()
            .find(|line| line.starts_with(&format!("{key} = ")))
            .unwrap();
        let value = line.split_once(" = ").unwrap().1;
        let words = value.trim_matches(['[', ']']).replace(['"', ' '], "");
        let default = row(flag).split('|').nth(2).unwrap().replace('`', "");
        match *key {
            "collect" => assert_eq!(default.trim(), "all but getters, buckets, driver and sites"),
            "hooks" | "web_config" => assert_eq!(default.trim(), ""),
            _ => assert_eq!(default.trim(), words, "{key}"),
        }
    }
}

/// Texts that are nearly files.
fn lines() -> impl Strategy<Value = String> {
    let key = prop::sample::select(settings::KEYS.map(|(key, _, _)| key).to_vec());
    let value = prop_oneof![
        Just("\"off\"".to_owned()),
        "\"[a-z0-9:/.,!=]{0,12}\"",
        "[0-9]{1,6}",
        Just("[\"api\", \"[::]:1\", \"comm\"]".to_owned()),
        Just("{ a = \"b\" }".to_owned()),
        Just("1979-05-27".to_owned()),
        "\\PC{0,8}",
    ];
    prop::collection::vec((key, value), 0..8).prop_map(|lines| {
        lines
            .into_iter()
            .map(|(key, value)| format!("{key} = {value}\n"))
            .collect()
    })
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused_with_a_place(bytes in prop::collection::vec(any::<u8>(), 0..256)) {
        refused_well(&bytes);
    }

    #[test]
    fn any_lines_are_read_or_refused_with_a_place(text in lines()) {
        refused_well(text.as_bytes());
    }

    #[test]
    fn what_is_shown_says_the_same(text in lines(), path in "/\\PC{1,20}\\x01?") {
        let text = format!("{text}\n");
        let Ok(mut config) = file(&text) else { return Ok(()) };
        config.web_config = Some(PathBuf::from(path));
        if let Some(otlp) = &mut config.otlp {
            otlp.headers.clear();
        }
        prop_assert_eq!(file(&config.show()), Ok(config));
    }
}

fn refused_well(bytes: &[u8]) {
    let path = Path::new("g.toml");
    let Err(mistakes) = parse(&ServeArgs::default(), Some((path, bytes))) else {
        return;
    };
    let lines = bytes.iter().filter(|byte| **byte == b'\n').count() + 1;
    for mistake in mistakes.0 {
        let mut parts = mistake.splitn(4, ':');
        assert_eq!(parts.next(), Some("g.toml"), "{mistake}");
        let line: usize = parts.next().unwrap().parse().unwrap();
        assert!((1..=lines).contains(&line), "{mistake}");
        assert!(!mistake.contains(char::is_control), "{mistake:?}");
    }
}
