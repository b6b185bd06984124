//! One connection, from its first byte to its last.

use super::answer::answer;
use super::limits::{HEADER_BYTES, HEADER_LINES};
use super::reply::Page;
use super::seats::{Phase, Seat, Taken};
use super::site::{Door, Site};
use super::watched::Watched;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

/// For a client that still writes what was refused, so that it can read why.
const LINGER: Duration = Duration::from_millis(500);
const LINGER_BYTES: u64 = 1 << 20;

/// Serves until the client or its seat has had enough.
pub(crate) async fn serve(stream: TcpStream, door: Door, taken: Taken, site: Arc<Site>) {
    // small answers go out at once
    let _ = stream.set_nodelay(true);
    let seat = &taken.seat;
    tokio::select! {
        () = open(stream, door, seat, &site) => {}
        () = seat.sent_away() => {}
    }
}

async fn open(mut stream: TcpStream, door: Door, seat: &Arc<Seat>, site: &Site) {
    let tls = site.protection.rules().tls.clone().filter(|_| door == Door::All);
    let Some(tls) = tls else {
        return speak(stream, door, seat, site).await;
    };
    if speaks_clear(&stream).await {
        site.tally.count(400);
        if stream.write_all(CLEAR).await.is_ok() && stream.shutdown().await.is_ok() {
            linger(stream).await;
        }
    } else if let Ok(stream) = TlsAcceptor::from(tls).accept(stream).await {
        speak(stream, door, seat, site).await;
    }
}

const CLEAR: &[u8] = b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\
                       \r\nTLS is spoken here\nhint: https:// instead of http://\n";

/// Whether a client of a port with TLS begins as a method of HTTP does.
async fn speaks_clear(stream: &TcpStream) -> bool {
    let mut first = [0];
    matches!(stream.peek(&mut first).await, Ok(1)) && first[0].is_ascii_uppercase()
}

async fn speak<S: AsyncRead + AsyncWrite + Unpin>(stream: S, door: Door, seat: &Arc<Seat>, site: &Site) {
    let stream = Watched {
        stream,
        seat: Arc::clone(seat),
    };
    let service = service_fn(|request: Request<Incoming>| one(request, door, seat, site));
    let mut connection = http().serve_connection(TokioIo::new(stream), service);
    let ended = tokio::select! {
        ended = &mut connection => ended,
        () = site.stops() => {
            Pin::new(&mut connection).graceful_shutdown();
            (&mut connection).await
        }
    };
    if let Err(error) = ended
        && error.is_parse()
    {
        // hyper has answered
        site.tally.count(if error.is_parse_too_large() { 431 } else { 400 });
        linger(connection.into_parts().io.into_inner().stream).await;
    }
}

async fn one(request: Request<Incoming>, door: Door, seat: &Seat, site: &Site) -> Result<Page, Infallible> {
    seat.set(Phase::Answered);
    let (page, scrape) = answer(site, door, request).await;
    site.tally.count(page.status().as_u16());
    seat.begins_to_take(scrape);
    Ok(page)
}

/// Closing with unread bytes would take back what was answered.
async fn linger(stream: impl AsyncRead + Unpin) {
    let mut rest = stream.take(LINGER_BYTES);
    let _ = tokio::time::timeout(LINGER, tokio::io::copy(&mut rest, &mut tokio::io::sink())).await;
}

fn http() -> http1::Builder {
    let mut http = http1::Builder::new();
    // hyper's own clock for headers is not used: the seat has one for everything
    http.max_header_size(HEADER_BYTES)
        .max_buf_size(HEADER_BYTES)
        .max_headers(HEADER_LINES)
        .header_read_timeout(None);
    http
}
