//! From the command line to settings. A flag replaces what the file says.

use super::place::Place;
use super::settings::{KEYS, Setting, Settings, Word, words};
use crate::cli::ServeArgs;

/// What GPUprobe's flags stand for.
const GPUPROBE: [(&str, &str); 3] = [
    ("--memleak", "memory,self"),
    ("--cudatrace", "api,errors,launches,self"),
    ("--bandwidth-util", "copies,self"),
];

/// Reads all flags that were given.
pub(super) fn read(args: &ServeArgs, settings: &mut Settings) {
    for (key, flag, shape) in KEYS {
        let place = Place::Flag(flag);
        let texts = given(args, key);
        if !texts.is_empty() {
            let words = texts.iter().flat_map(|text| words(shape, text, &place)).collect();
            settings.insert(key, Setting { words, place });
        }
    }
    gpuprobe(args, settings);
}

/// The texts that were given for a key.
fn given(args: &ServeArgs, key: &str) -> Vec<String> {
    let one = |text: &Option<String>| text.iter().cloned().collect();
    match key {
        "collect" => args.collect.clone(),
        "layer" => args.layer.clone(),
        "hooks" => args.hooks.clone(),
        "nvml_interval" => one(&args.nvml_interval),
        "budget" => one(&args.budget),
        "budget_except" => args.budget_except.clone(),
        "listen" => args.listen.clone(),
        "health_listen" => args.health_listen.clone(),
        "telemetry_path" => one(&args.telemetry_path),
        "web_config" => one(&args.web_config),
        "display_interval" => one(&args.display_interval),
        "labels" => args.labels.clone(),
        "kubelet" => one(&args.kubelet),
        "pod_resources" => one(&args.pod_resources),
        "top_kernels" => one(&args.top_kernels),
        "max_series" => one(&args.max_series),
        "max_owners" => one(&args.max_owners),
        "retain" => one(&args.retain),
        "keep" => one(&args.keep),
        "keep_memory" => one(&args.keep_memory),
        "keep_folder" => one(&args.keep_folder),
        "keep_disk" => one(&args.keep_disk),
        "otlp.url" => one(&args.otlp),
        "otlp.interval" => one(&args.otlp_interval),
        "otlp.timeout" => one(&args.otlp_timeout),
        "otlp.headers" => args.otlp_header.clone(),
        _ => Vec::new(),
    }
}

/// GPUprobe's flags replace the collectors of the file, and add to those of `--collect`.
fn gpuprobe(args: &ServeArgs, settings: &mut Settings) {
    let given = [args.memleak, args.cudatrace, args.bandwidth_util];
    let mut all: Vec<Word> = Vec::new();
    for ((flag, collectors), _) in GPUPROBE.iter().zip(given).filter(|(_, given)| *given) {
        let names = collectors.split(',').map(|name| Word {
            text: name.to_owned(),
            place: Place::Flag(flag),
        });
        all.extend(names);
    }
    let Some(first) = all.first() else { return };
    let place = first.place.clone();
    if !args.collect.is_empty() {
        all.extend(settings.remove("collect").into_iter().flat_map(|setting| setting.words));
    }
    settings.insert("collect", Setting { words: all, place });
}
