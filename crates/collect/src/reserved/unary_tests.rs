use super::*;
use proptest::prelude::*;
use std::thread;

/// A server that answers with `bytes`, then waits until the client is gone.
fn against(bytes: Vec<u8>) -> Result<Vec<u8>, String> {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let server = thread::spawn(move || {
        let _ = theirs.write_all(&bytes);
        let mut asked = Vec::new();
        let _ = theirs.read_to_end(&mut asked);
        asked
    });
    let answer = call(ours, "/v1.PodResourcesLister/List", Duration::from_millis(300));
    let asked = server.join().unwrap();
    assert!(asked.starts_with(PREFACE));
    answer
}

fn message_of(content: &[u8]) -> Vec<u8> {
    [&[0], (content.len() as u32).to_be_bytes().as_slice(), content].concat()
}

fn data(content: &[u8]) -> Vec<u8> {
    let chunks = content.chunks(FRAME_BYTES);
    chunks.flat_map(|chunk| frame(DATA, 0, STREAM, chunk)).collect()
}

fn headers_frame(flags: u8) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | flags, STREAM, b"\x88")
}

/// What a server of grpcio 1.85.3 answered to the request of [`request`], which had the message of [`LISTED`] to give.
const ANSWERED: [&str; 6] = [
    "000018040000000000000400400000000500400000000600004000fe0300000001000004080000000000003f00010000",
    "0004010000000000000408000000000000000005000008060000000000ae02ec7c80bae6bb00004f0104000000012088",
    "400c636f6e74656e742d74797065106170706c69636174696f6e2f677270634014677270632d6163636570742d656e63",
    "6f64696e67176964656e746974792c206465666c6174652c20677a697000002f000000000001000000002a0a280a0161",
    "12026d6c1a1f0a046d61696e12170a0e6e76696469612e636f6d2f67707512054750552d3100001e010500000001400b",
    "677270632d7374617475730130000c677270632d6d65737361676500",
];
const LISTED: &str = "0a280a016112026d6c1a1f0a046d61696e12170a0e6e76696469612e636f6d2f67707512054750552d31";
/// The same server, asked for a method that it does not have.
const REFUSED: [&str; 4] = [
    "000018040000000000000400400000000500400000000600004000fe0300000001000004080000000000003f00010000",
    "00040100000000000004080000000000000000050000080600000000005ed470352a0972100000510105000000012088",
    "400c636f6e74656e742d74797065106170706c69636174696f6e2f67727063400b677270632d73746174757302313200",
    "0c677270632d6d657373616765114d6574686f64206e6f7420666f756e6421",
];

fn bytes_of(hexadecimal: &str) -> Vec<u8> {
    let digits = hexadecimal.as_bytes().chunks(2);
    let byte = |two: &[u8]| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap();
    digits.map(byte).collect()
}

#[test]
fn a_server_of_googles_library_is_understood() {
    assert_eq!(body_of(&bytes_of(&ANSWERED.concat())), Ok(bytes_of(LISTED)));
    let refused = body_of(&bytes_of(&REFUSED.concat()));
    assert_eq!(refused, Err("the call was refused".to_owned()));
}

#[test]
fn the_message_of_the_answer_is_given() {
    let whole = [
        frame(SETTINGS, 0, 0, b""),
        headers_frame(0),
        data(&message_of(b"hello")),
        headers_frame(END_STREAM),
    ];
    assert_eq!(against(whole.concat()), Ok(b"hello".to_vec()));
}

#[test]
fn what_comes_between_and_padding_change_nothing() {
    let padded = [&[2], &message_of(b"hello")[..6], &[0, 0]].concat();
    let whole = [
        frame(SETTINGS, 0, 0, b""),
        frame(PING, 0, 0, b"12345678"),
        frame(GOAWAY, 0, 0, b"\x7f\xff\xff\xff\0\0\0\0"),
        headers_frame(0),
        frame(DATA, PADDED, STREAM, &padded),
        frame(0x77, 0, 9, b"of tomorrow"),
        frame(WINDOW_UPDATE, 0, 0, b"\0\0\0\x09"),
        frame(DATA, END_STREAM, STREAM, &message_of(b"hello")[6..]),
    ];
    assert_eq!(against(whole.concat()), Ok(b"hello".to_vec()));
}

#[test]
fn an_answer_of_many_frames_is_put_together() {
    let long: Vec<u8> = (0..1_000_000u32).map(|number| number as u8).collect();
    let whole = [headers_frame(0), data(&message_of(&long)), headers_frame(END_STREAM)];
    assert_eq!(against(whole.concat()), Ok(long));
}

#[test]
fn what_a_server_does_wrong_is_told() {
    let huge = [0; FRAME_BYTES];
    let endless: Vec<u8> = (0..=MOST_BYTES / FRAME_BYTES + 1)
        .flat_map(|_| frame(DATA, 0, STREAM, &huge))
        .collect();
    let of_headers = |rest: Vec<u8>| [headers_frame(0), rest].concat();
    let wrong = [
        (headers_frame(END_STREAM), "the call was refused"),
        (Vec::new(), "no answer in time"),
        (of_headers(Vec::new()), "no answer in time"),
        (of_headers(data(b"\0\0\0\0\x09abc")), "no answer in time"),
        (
            of_headers([data(b"\0\0\0\0\x09abc"), headers_frame(END_STREAM)].concat()),
            "the answer is not one message",
        ),
        (
            of_headers([data(b"\x01\0\0\0\0"), headers_frame(END_STREAM)].concat()),
            "the answer is compressed, which was not asked for",
        ),
        (endless, "the answer is longer than 16 MiB"),
        (
            b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(),
            "the answer is not one of HTTP/2",
        ),
        (frame(RST_STREAM, 0, STREAM, &[0; 4]), "the call was broken off"),
        (frame(GOAWAY, 0, 0, &[0; 8]), "the server takes no calls"),
        (frame(GOAWAY, 0, 0, b""), "the server takes no calls"),
        (
            frame(PUSH_PROMISE, 0, STREAM, &[0; 4]),
            "the answer is not one of HTTP/2",
        ),
        (frame(DATA, PADDED, STREAM, b"\x09"), "the answer is not one of HTTP/2"),
    ];
    for (bytes, words) in wrong {
        assert_eq!(against(bytes), Err(words.to_owned()));
    }
}

#[test]
fn a_server_that_never_stops_talking_is_left_in_time() {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let server = thread::spawn(move || {
        let ping = frame(PING, ACK, 0, b"12345678").repeat(100);
        while theirs.write_all(&ping).is_ok() {}
    });
    assert_eq!(
        call(ours, "/x", Duration::from_millis(100)),
        Err("no answer in time".to_owned())
    );
    server.join().unwrap();
}

#[test]
fn a_server_that_goes_away_is_told() {
    assert_eq!(
        body_of(&headers_frame(0)),
        Err("the answer ends before its end".to_owned())
    );
}

proptest! {
    #[test]
    fn any_bytes_are_an_answer_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = body_of(&bytes);
        let _ = body_of(&[headers_frame(0), frame(DATA, 0, STREAM, &bytes), headers_frame(END_STREAM)].concat());
    }

    #[test]
    fn a_message_in_frames_of_any_size_is_itself(content in prop::collection::vec(any::<u8>(), 0..300), size in 1usize..50) {
        let frames: Vec<u8> = message_of(&content).chunks(size).flat_map(|chunk| frame(DATA, 0, STREAM, chunk)).collect();
        prop_assert_eq!(body_of(&[frames, headers_frame(END_STREAM)].concat()), Ok(content));
    }
}
