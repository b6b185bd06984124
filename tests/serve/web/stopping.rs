//! The beginning and the end.

use super::support::{Answer, World, scrape, settings};
use gpuscope::refusal;
use gpuscope::serve::http::Server;
use gpuscope::serve::{Exchange, Status};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

#[test]
fn a_port_in_use_names_who_to_ask() {
    let world = World::silent();
    let mut settings = settings(0, &Arc::default());
    settings.listen = vec![world.address()];
    let error = Server::start(settings, Arc::new(Exchange::new().unwrap()))
        .err()
        .unwrap();
    let said = refusal::message(&error);
    let (address, port) = (world.address(), world.address().port());
    assert!(
        said.starts_with(&format!("failed to listen on {address}: Address already in use")),
        "{said}"
    );
    assert!(
        said.contains(&format!("\nhint: ss -ltnp 'sport = :{port}' shows who has the port")),
        "{said}"
    );
}

#[test]
fn an_address_of_another_machine_is_refused() {
    let mut settings = settings(0, &Arc::default());
    settings.listen = vec!["192.0.2.1:9748".parse().unwrap()];
    let error = Server::start(settings, Arc::new(Exchange::new().unwrap()))
        .err()
        .unwrap();
    assert!(refusal::message(&error).contains("\nhint: ip address"), "{error:?}");
}

#[test]
fn a_path_that_is_taken_or_none_is_refused() {
    for path in ["", "metrics", "/healthz", "/readyz", "/a b", "/x?y", "/\n"] {
        let mut settings = settings(0, &Arc::default());
        settings.telemetry_path = path.to_owned();
        let error = Server::start(settings, Arc::new(Exchange::new().unwrap()))
            .err()
            .unwrap();
        assert!(refusal::message(&error).contains("\nhint: "), "{path:?} {error:?}");
    }
}

#[test]
fn several_addresses_are_listened_on() {
    let loopback = super::support::loopback();
    let world = World::with(|settings| settings.listen = vec![loopback, loopback], 0).gather();
    let addresses = world.server.as_ref().unwrap().addresses().to_vec();
    assert_eq!(addresses.len(), 2);
    for address in addresses {
        let mut stream = super::support::connect(address);
        stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
        assert_eq!(Answer::read(&mut stream).code, 200);
    }
}

#[test]
fn a_scrape_that_waits_is_answered_when_the_server_stops() {
    let mut world = World::silent();
    world.exchange.publish(scrape(3, Status::default()));
    std::thread::sleep(std::time::Duration::from_millis(300));
    world.exchange.take_wish();
    let mut stream = world.connect();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    while !world.exchange.take_wish() {
        std::thread::yield_now();
    }
    world.server.take().unwrap().stop();
    let answer = Answer::read(&mut stream);
    assert_eq!((answer.code, answer.text().as_str()), (200, "scrape 3 as Plain\n"));
}

#[test]
fn a_long_answer_is_finished_when_the_server_stops() {
    let mut world = World::gathering(8 << 20);
    let mut stream = world.connect();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut start = vec![0; 1000];
    stream.read_exact(&mut start).unwrap();
    let server = world.server.take().unwrap();
    let reader = std::thread::spawn(move || {
        stream.read_to_end(&mut start).unwrap();
        Answer::parse(&start)
    });
    server.stop();
    let answer = reader.join().unwrap();
    assert_eq!(
        answer.header("content-length"),
        Some(answer.body.len().to_string().as_str())
    );
}

#[test]
fn idle_and_half_open_connections_do_not_delay_the_end() {
    let mut world = World::gathering(0);
    let mut half = world.connect();
    half.write_all(b"GET /met").unwrap();
    let mut idle = world.connect();
    idle.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    idle.read_exact(&mut [0; 12]).unwrap();
    let address = world.address();
    world.server.take().unwrap().stop();
    assert!(TcpStream::connect(address).is_err(), "nobody listens any more");
}
