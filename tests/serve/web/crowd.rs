//! Many clients at once.

use super::support::{Answer, World, connect, scrape};
use gpuscope::serve::Status;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::sync::atomic::Ordering;
use std::time::Duration;

const SCRAPE: &[u8] = b"GET /metrics HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n";
const CROWD: usize = 10_000;
/// Client and server live in one process: two descriptors for each scrape that is served, and what else is open.
const SPARE: usize = 1500;

/// How many clients this process may be at once.
fn crowd() -> usize {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: reads into and sets from a structure of ours
    unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit);
        limit.rlim_cur = limit.rlim_max;
        libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
        libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit);
    }
    let most = usize::try_from(limit.rlim_cur)
        .unwrap_or(CROWD + SPARE)
        .saturating_sub(SPARE);
    if most < CROWD {
        eprintln!("only {most} clients at once: ulimit -Hn is {}", limit.rlim_cur);
    }
    most.min(CROWD)
}

#[test]
fn ten_thousand_scrapes_at_once_share_one_text() {
    let world = World::gathering(200_000);
    let size = world.get("/metrics", "Accept-Encoding: gzip\r\n").body.len();
    let address = world.address();
    let crowd = crowd();
    let mut streams: Vec<TcpStream> = Vec::with_capacity(crowd);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(move || {
                    let ask = |_| {
                        let mut stream = connect(address);
                        stream.write_all(SCRAPE).unwrap();
                        stream
                    };
                    (0..crowd / 8).map(ask).collect::<Vec<_>>()
                })
            })
            .collect();
        streams.extend(threads.into_iter().flat_map(|thread| thread.join().unwrap()));
    });
    let mut codes = BTreeMap::new();
    for mut stream in streams {
        let answer = Answer::read(&mut stream);
        *codes.entry(answer.code).or_insert(0) += 1;
        assert!(
            answer.body.len().abs_diff(size) < 100,
            "{} is not {size}",
            answer.body.len()
        );
    }
    let expected = crowd / 8 * 8;
    assert_eq!(codes, BTreeMap::from([(200, expected)]));
    let counted: u64 = world.requests().iter().map(|(_, count)| count).sum();
    assert_eq!(counted, expected as u64 + 1);
    let rendered = world.rendered.load(Ordering::Relaxed);
    assert!(
        rendered < expected as u64 / 10,
        "{rendered} texts for {expected} scrapes"
    );
}

#[test]
fn half_open_connections_do_not_keep_a_scrape_out() {
    let world = World::gathering(0);
    let half_open: Vec<TcpStream> = (0..3000)
        .map(|_| {
            let mut stream = world.connect();
            stream.write_all(b"GET /metrics HTTP/1.1\r\nX-Slow: ").unwrap();
            stream
        })
        .collect();
    for _ in 0..20 {
        assert_eq!(world.get("/metrics", "").code, 200);
    }
    drop(half_open);
}

#[test]
fn idle_connections_give_their_place_away() {
    let world = World::gathering(0);
    let idle: Vec<TcpStream> = (0..600)
        .map(|_| {
            let mut stream = world.connect();
            stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
            let mut start = [0; 12];
            stream.read_exact(&mut start).unwrap();
            assert_eq!(&start, b"HTTP/1.1 200");
            stream
        })
        .collect();
    assert_eq!(world.get("/metrics", "").code, 200);
    drop(idle);
}

#[test]
fn readers_who_never_read_do_not_keep_a_scrape_out() {
    // more than the buffers of a socket hold
    let world = World::gathering(16 << 20);
    let stuck: Vec<TcpStream> = (0..600)
        .map(|_| {
            let mut stream = world.connect();
            stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
            stream
        })
        .collect();
    assert_eq!(world.get("/healthz", "").code, 200);
    drop(stuck);
}

#[test]
fn who_does_not_go_on_is_left() {
    let world = World::gathering(16 << 20);
    let mut asking = world.connect();
    asking.write_all(b"GET /metr").unwrap();
    let mut taking = world.connect();
    taking.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    assert_eq!(asking.read(&mut [0; 100]).unwrap(), 0, "closed without an answer");
    // the server has given up, and what was on its way is less than was asked for
    std::thread::sleep(Duration::from_secs(2));
    let mut taken = Vec::new();
    let _ = taking.read_to_end(&mut taken);
    assert!((1..16 << 20).contains(&taken.len()), "{}", taken.len());
}

/// Set in the child that has few descriptors.
const CHILD: &str = "GPUSCOPE_TEST_FEW_DESCRIPTORS";

#[test]
fn without_a_free_descriptor_the_server_waits_for_one() {
    let name = "crowd::without_a_free_descriptor_the_server_waits_for_one";
    if std::env::var_os(CHILD).is_some() {
        return with_few_descriptors();
    }
    let mut child = Command::new("prlimit");
    child.arg("--nofile=64").arg(std::env::current_exe().unwrap());
    let output = child.args([name]).env(CHILD, "1").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("ok. 1 passed"), "{output:?}");
}

fn with_few_descriptors() {
    let world = World::gathering(0);
    for _ in 0..3 {
        let address = world.address();
        let clients: Vec<TcpStream> = std::iter::from_fn(|| TcpStream::connect(address).ok()).collect();
        assert!(clients.len() < 64, "{}", clients.len());
        drop(clients);
        assert_eq!(world.get("/metrics", "").code, 200);
    }
}

/// Set in the child whose memory is measured alone.
const MEASURED: &str = "GPUSCOPE_TEST_MEMORY";
const PAGE_BYTES: usize = 12 << 20;
const SLOW_READERS: u64 = 200;
/// Their scrapes are too old to be given to others, so that each has a text made.
const READERS_OF_OLD: u64 = 40;
const IMPATIENT: &[u8] = b"GET /metrics HTTP/1.1\r\nHost: x\r\nX-Prometheus-Scrape-Timeout-Seconds: 0.1\r\n\r\n";
/// Beside what texts may take: the program, and a text while it is written.
const BESIDE_TEXTS: u64 = 100 << 20;

#[test]
fn slow_readers_of_long_pages_do_not_add_up() {
    let name = "crowd::slow_readers_of_long_pages_do_not_add_up";
    if std::env::var_os(MEASURED).is_some() {
        return with_slow_readers();
    }
    let mut child = Command::new(std::env::current_exe().unwrap());
    let output = child.args([name, "--nocapture"]).env(MEASURED, "1").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("ok. 1 passed"), "{output:?}");
}

/// Each asks for a page of its own and takes a little of it again and again.
fn with_slow_readers() {
    let world = World::with(
        |settings| settings.render = Box::new(|scrape, _| (scrape.number.to_string() + &" ".repeat(PAGE_BYTES)).into()),
        0,
    );
    let mut readers: Vec<TcpStream> = Vec::new();
    let mut most = 0;
    for number in 1..=SLOW_READERS {
        let mut scrape = scrape(number, Status::default());
        if number <= READERS_OF_OLD {
            scrape.at -= Duration::from_secs(10);
        }
        world.exchange.publish(scrape);
        let mut reader = world.connect();
        reader.write_all(IMPATIENT).unwrap();
        reader.read_exact(&mut [0; 100]).unwrap();
        readers.push(reader);
        for reader in &mut readers {
            // who was sent away reads an error
            let _ = reader.read(&mut [0; 100]);
        }
        most = most.max(resident_bytes());
    }
    assert!(most < (64 << 20) + BESIDE_TEXTS, "{} MiB", most >> 20);
    let answer = world.get("/metrics", "Accept-Encoding: gzip\r\n");
    assert_eq!(answer.code, 200, "others are answered all the same");
    let last = readers.pop().unwrap();
    assert!(
        taken_by(last) > PAGE_BYTES - (64 << 10),
        "who has just come gets all of it"
    );
}

/// Bytes of the body that are left, and the few that were read.
fn taken_by(mut reader: TcpStream) -> usize {
    let mut rest = vec![0; PAGE_BYTES];
    let mut left = 0;
    reader.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    while let Ok(count @ 1..) = reader.read(&mut rest) {
        left += count;
    }
    left
}

fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = text.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}
