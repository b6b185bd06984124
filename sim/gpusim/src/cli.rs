//! The command line.

use std::env;
use std::process::ExitCode;
use std::time::Duration;

use gpusim_common::settings;

use crate::programs::{self, Account, Options, PROGRAMS};
use crate::scenarios::SCENARIOS;
use crate::{counts, cuda, pace};

/// The program: one scenario, one line about it for people and one for machines.
pub fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let Some(name) = args.first() else { return usage() };
    if name == "--list" {
        for (name, usage, about, _) in SCENARIOS {
            println!("{:32} {about}", format!("{name} {usage}"));
        }
        return ExitCode::SUCCESS;
    }
    if name == "--programs" {
        for (name, usage, about, _) in PROGRAMS {
            println!("{:72} {about}", format!("{name} {usage}"));
        }
        return ExitCode::SUCCESS;
    }
    if name == "book" {
        return programs::print_books(&args[1..]);
    }
    if let Some(program) = programs::find(name, &args[1..]) {
        return match Options::parse(&args[1..]) {
            Some(options) => run_program(name, program, &options),
            None => usage(),
        };
    }
    let Some((name, _, _, run)) = SCENARIOS.iter().find(|(known, ..)| known == name) else {
        return usage();
    };
    let mut numbers = Vec::new();
    for text in &args[1..] {
        match text.parse::<u64>() {
            Ok(number) => numbers.push(number),
            Err(_) => return usage(),
        }
    }
    begin();
    match run(&numbers) {
        Ok(summary) => {
            println!("{name}: {summary}");
            cuda::count_exit();
            counts::print(name);
            ExitCode::SUCCESS
        }
        Err(code) => {
            println!("{name}: ended early by error {code}");
            cuda::count_exit();
            counts::print(name);
            ExitCode::FAILURE
        }
    }
}

fn begin() {
    pace::stop_on_signals();
    cuda::count_registration();
    std::thread::sleep(Duration::from_secs_f64(
        settings::number("GPUSIM_DELAY_MS", 0.0) / 1000.0,
    ));
}

fn run_program(name: &str, program: programs::Program, options: &Options) -> ExitCode {
    begin();
    let mut account = Account::default();
    let result = program(options, &mut account);
    match &result {
        Ok(summary) => println!("{name}: {summary}"),
        Err(code) => println!("{name}: ended early by error {code}"),
    }
    // Programs of work keep no account of memory.
    if !programs::print_work() {
        account.print();
    }
    cuda::count_exit();
    counts::print(name);
    if result.is_ok() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn usage() -> ExitCode {
    eprintln!("usage: gpusim SCENARIO [NUMBER...]   (gpusim --list says which there are)");
    eprintln!("       gpusim PROGRAM --OPTION VALUE...   (gpusim --programs)");
    eprintln!("       gpusim book FILE...");
    ExitCode::from(2)
}
