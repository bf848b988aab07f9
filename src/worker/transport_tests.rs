//! Framing of hostile bytes and of its own messages. Must not spawn processes.

use super::*;
use crate::base::tensor::Data;
use crate::base::{BackendName, DType, HostTensor};
use crate::ir::graph::{Graph, Mod, ModKind};
use crate::problem::ProblemSpec;
use crate::worker::protocol::{CompileRequest, Reply, RequestBody, ResponseBody, WorkerInfo};
use proptest::prelude::*;
use std::sync::Arc;

fn response(id: u64) -> Response {
    let info = WorkerInfo { host: "host \n with a newline".into(), ..WorkerInfo::default() };
    Response { id, body: ResponseBody::Done(Reply::Hello(info)), payloads: Vec::new() }
}

fn payload(name: &str, bytes: Vec<u8>) -> Payload {
    (PayloadInfo { name: name.into(), dtype: DType::U8, shape: vec![bytes.len()] }, bytes)
}

fn one_message(bytes: &[u8]) -> (Response, Vec<Payload>) {
    match read_response(&mut &*bytes) {
        Ok(Incoming::Message(message)) => message,
        other => panic!("{other:?}"),
    }
}

/// Its text would take more than the machine: the figure is known before.
#[test]
fn a_request_that_captures_too_much_is_refused_before_it_is_written() {
    let mut graph = Graph::default();
    // pages of zeros that nobody reads take no memory
    let bias = HostTensor::new([1 << 31], Data::U8(vec![0; 1 << 31])).unwrap();
    let read = graph.add_capture("bias", bias);
    assert_eq!(graph.capture(read).name, "bias");
    let root = graph.float(0.0);
    let score = Mod { kind: ModKind::Score, graph, root, sources: Vec::new() };
    let problem = ProblemSpec { score: Some(Arc::new(score)), ..ProblemSpec::plain(1, (1, 1), (8, 8), 16) };
    let body = RequestBody::Compile(Box::new(CompileRequest { problem, backend: BackendName::Flex, arch: None }));
    let mut written = Vec::new();
    let why = write_request(&mut written, &Request { id: 1, body }).unwrap_err();
    assert!(why.code == TOO_LARGE && why.message.contains("2.7 GiB"), "{}", why.message);
    assert!(written.is_empty());
}

proptest! {
    #![proptest_config(maskloom_testing::cases::kept_beside())]

    #[test]
    fn a_message_comes_back_whole(id in any::<u64>(), blobs in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..4)) {
        let payloads: Vec<Payload> = blobs.iter().enumerate().map(|(i, b)| payload(&i.to_string(), b.clone())).collect();
        let mut stream = Vec::new();
        write_response(&mut stream, &response(id), &payloads).unwrap();
        write_response(&mut stream, &response(id ^ 1), &[]).unwrap();
        let mut reader = &stream[..];
        let Ok(Incoming::Message((first, got))) = read_response(&mut reader) else { panic!("no first message") };
        prop_assert_eq!(first.id, id);
        prop_assert_eq!(got, payloads);
        let Ok(Incoming::Message((second, _))) = read_response(&mut reader) else { panic!("out of step") };
        prop_assert_eq!(second.id, id ^ 1);
        prop_assert!(matches!(read_response(&mut reader), Ok(Incoming::End)));
    }

    #[test]
    fn any_bytes_end_in_a_message_an_end_or_a_diagnostic(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let mut reader = &bytes[..];
        while let Ok(Incoming::Noise(_) | Incoming::Message(_)) = read_response(&mut reader) {}
        let mut reader = &bytes[..];
        while let Ok(Incoming::Noise(_) | Incoming::Message(_)) = read_request(&mut reader) {}
    }

    #[test]
    fn every_truncation_is_told(cut in 1usize..400) {
        let mut stream = Vec::new();
        write_response(&mut stream, &response(7), &[payload("a", vec![9; 200])]).unwrap();
        let cut = cut.min(stream.len() - 1);
        prop_assert!(read_response(&mut &stream[..cut]).is_err());
    }
}

#[test]
fn noise_does_not_put_the_stream_out_of_step() {
    let mut stream = b"Welcome to gpu1!\r\n\n".to_vec();
    write_response(&mut stream, &response(3), &[]).unwrap();
    let mut reader = &stream[..];
    assert!(matches!(read_response(&mut reader), Ok(Incoming::Noise(text)) if text == "Welcome to gpu1!"));
    assert!(matches!(read_response(&mut reader), Ok(Incoming::Noise(text)) if text.is_empty()));
    assert_eq!(one_message(reader).0.id, 3);
}

/// A banner ends where the message begins, and what it says before is none.
#[test]
fn a_greeting_is_what_has_a_number_that_was_sent() {
    let mut stream = b"motd {\"id\":3} {\"id\":1,\"body\":0} ".to_vec();
    write_response(&mut stream, &response(7), &[]).unwrap();
    let sent = |id| id == 7;
    assert!(matches!(read_greeting(&mut &stream[..], false, sent), Ok(Incoming::Message((first, _))) if first.id == 7));
    assert!(matches!(read_greeting(&mut &stream[..], true, |id| id == 8), Ok(Incoming::Noise(_))));
    // one that is ours and says something else is another version's
    assert_eq!(read_greeting(&mut &b"{\"id\":7}\n"[..], false, sent).unwrap_err().code, "protocol-header");
}

#[test]
fn a_lying_header_costs_no_memory() {
    let mut header = response(1);
    header.payloads = vec![PayloadInfo { name: "big".into(), dtype: DType::F64, shape: vec![1 << 30] }];
    let mut stream = serde_json::to_vec(&header).unwrap();
    stream.extend(b"\nshort");
    assert_eq!(read_response(&mut &stream[..]).unwrap_err().code, CUT_SHORT);
    header.payloads[0].shape = vec![usize::MAX, 3];
    let mut stream = serde_json::to_vec(&header).unwrap();
    stream.push(b'\n');
    assert_eq!(read_response(&mut &stream[..]).unwrap_err().code, "protocol-payload");
}

#[test]
fn an_endless_line_stops_at_the_limit() {
    let mut reader = std::io::BufReader::new(std::io::repeat(b'{'));
    assert_eq!(read_request_within(&mut reader, 1000).unwrap_err().1.code, "protocol-header");
}

#[test]
fn requests_come_back_and_a_bad_one_leaves_the_next_readable() {
    let mut stream = b"{\"id\": 1, \"body\": {\"ask\": \"dance\"}}\n".to_vec();
    write_request(&mut stream, &Request { id: 2, body: RequestBody::Doctor }).unwrap();
    let mut reader = &stream[..];
    assert_eq!(read_request(&mut reader).unwrap_err().1.code, "protocol-header");
    assert!(matches!(read_request(&mut reader), Ok(Incoming::Message(r)) if r.id == 2));
}

#[test]
fn a_payload_that_is_not_what_it_says_is_not_sent() {
    let mut wrong = payload("a", vec![1, 2, 3]);
    wrong.0.shape = vec![4];
    let mut stream = Vec::new();
    assert!(write_response(&mut stream, &response(1), &[wrong]).is_err());
    assert!(stream.is_empty());
}

/// A request that cannot be read is answered by its own number, so that nobody waits for ever.
#[test]
fn a_broken_request_keeps_its_number() {
    let mut reader =
        std::io::Cursor::new(b"{\"id\": 7, \"body\": {\"ask\": \"no such thing\"}}\n{\"id\": -1}\n".to_vec());
    assert_eq!(read_request(&mut reader).unwrap_err().0, 7);
    assert_eq!(read_request(&mut reader).unwrap_err().0, 0);
}
