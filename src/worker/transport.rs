//! Framing: one JSON header line, then the payloads that it announces, over any byte stream.
//!
//! Invariant: for any bytes, reading ends with a message, the end of the stream or a [`Diagnostic`]; it never panics,
//! and never allocates more than has arrived. Must not know the messages' meaning.

use crate::base::Diagnostic;
use crate::worker::protocol::{PayloadInfo, Request, Response, ResponseBody};
use serde::Serialize;
use std::io::{BufRead, Read, Write};

/// Longest header line, bytes. Captured tensors travel inside it as base64, so it is generous.
pub const MAX_HEADER: u64 = 1 << 30;
/// Longest line before a worker's first message, bytes, and longest first message.
const MAX_GREETING: u64 = 1 << 20;
/// How every response begins.
const MARK: &[u8] = b"{\"id\":";
/// Most payload bytes of one message.
pub const MAX_PAYLOAD: u64 = 1 << 34;
/// Most payloads of one message.
const MAX_PAYLOADS: usize = 4096;

/// A tensor of a message: its description, and its little-endian bytes.
pub type Payload = (PayloadInfo, Vec<u8>);

/// The result of one read.
#[derive(Debug)]
pub enum Incoming<T> {
    /// A whole message.
    Message(T),
    /// A line that is no message: a login banner, a library's print. The stream is still in step.
    Noise(String),
    /// The stream ended between messages.
    End,
}

/// The code of a stream that ended inside a message: nothing follows it.
pub const CUT_SHORT: &str = "protocol-cut-short";
/// The code of a stream that could not be read or written: nothing follows it either.
pub const BROKEN: &str = "protocol-io";
/// The code of a request that no worker would read.
pub const TOO_LARGE: &str = "request-too-large";

fn broken(code: &'static str, message: String) -> Diagnostic {
    Diagnostic::error(code, message)
        .hint("both sides must be the same version of Maskloom, and nothing else may write to the worker's stdout")
}

fn io_error(what: &str, error: &std::io::Error) -> Diagnostic {
    broken(BROKEN, format!("{what} failed: {error}"))
}

/// Number of bytes a payload announces. Errors: the shape overflows, or is above the limit.
pub fn payload_bytes(info: &PayloadInfo) -> Result<u64, Diagnostic> {
    let size = info.dtype.size() as u64;
    let bytes = info.shape.iter().try_fold(size, |n, d| n.checked_mul(*d as u64));
    bytes.filter(|n| *n <= MAX_PAYLOAD).ok_or_else(|| {
        let message = format!("payload `{}` of shape {:?} is above {MAX_PAYLOAD} bytes", info.name, info.shape);
        broken("protocol-payload", message)
    })
}

/// Reads one line without its newline. None: the stream ended before any byte.
fn read_line(from: &mut impl BufRead, limit: u64) -> Result<Option<Vec<u8>>, Diagnostic> {
    let mut line = Vec::new();
    from.take(limit + 1).read_until(b'\n', &mut line).map_err(|e| io_error("reading a header", &e))?;
    if line.is_empty() {
        return Ok(None);
    }
    if line.pop_if(|b| *b == b'\n').is_none() {
        return Err(if line.len() as u64 > limit {
            broken("protocol-header", format!("a header line is longer than {limit} bytes"))
        } else {
            broken(CUT_SHORT, format!("the stream ended inside a header, after {} bytes", line.len()))
        });
    }
    line.pop_if(|b| *b == b'\r');
    Ok(Some(line))
}

/// Whether a line claims to be a message; everything else is noise.
fn is_header(line: &[u8]) -> bool {
    line.first() == Some(&b'{')
}

/// Where a message begins in a line: something may have been printed before it, without a newline.
fn message_in(line: &[u8]) -> Option<usize> {
    marks(line).next()
}

/// Where a message may begin.
fn marks(line: &[u8]) -> impl Iterator<Item = usize> {
    line.windows(MARK.len()).enumerate().filter(|(_, part)| *part == MARK).map(|(at, _)| at)
}

/// The same before the first answer, where a login may print what looks like a message: one has the number of a request that was sent,
/// or is a sign of life.
fn greeting_in(line: &[u8], sent: impl Fn(u64) -> bool) -> Option<usize> {
    let is_ours = |at: &usize| match number_of(&line[*at..]) {
        Some(0) => matches!(parse(&line[*at..]), Ok(Response { body: ResponseBody::Alive, .. })),
        Some(id) => sent(id),
        None => false,
    };
    marks(line).find(is_ours)
}

fn shown(line: &[u8]) -> String {
    String::from_utf8_lossy(&line[..line.len().min(200)]).into_owned()
}

fn parse<T: serde::de::DeserializeOwned>(line: &[u8]) -> Result<T, Diagnostic> {
    serde_json::from_slice(line)
        .map_err(|e| broken("protocol-header", format!("a header is not a message of Maskloom: {e}: {}", shown(line))))
}

/// Reads one request. A broken header does not put the stream out of step, for requests have no payloads: read on. The error
/// has the request's number where the header still says it, and 0 otherwise: whoever waits for the answer gets it.
pub fn read_request(from: &mut impl BufRead) -> Result<Incoming<Request>, (u64, Diagnostic)> {
    read_request_within(from, MAX_HEADER)
}

fn read_request_within(from: &mut impl BufRead, limit: u64) -> Result<Incoming<Request>, (u64, Diagnostic)> {
    match read_line(from, limit).map_err(|why| (0, why))? {
        None => Ok(Incoming::End),
        Some(line) if !is_header(&line) => Ok(Incoming::Noise(shown(&line))),
        Some(line) => parse(&line).map(Incoming::Message).map_err(|why| (number_of(&line).unwrap_or(0), why)),
    }
}

/// The `id` of a header, whatever else it says.
fn number_of(line: &[u8]) -> Option<u64> {
    #[derive(serde::Deserialize)]
    struct Numbered {
        id: u64,
    }
    serde_json::from_slice::<Numbered>(line).ok().map(|header| header.id)
}

/// Reads one response and its payloads. After an error the stream is out of step: stop reading.
pub fn read_response(from: &mut impl BufRead) -> Result<Incoming<(Response, Vec<Payload>)>, Diagnostic> {
    read_response_within(from, MAX_HEADER, message_in)
}

/// The same until the first answer: a login, a library and a shell may print before it, also a line that looks like a message. `sent`
/// knows the numbers of requests. Before a first sign of life, which is short, lines are.
pub fn read_greeting(
    from: &mut impl BufRead,
    heard: bool,
    sent: impl Fn(u64) -> bool,
) -> Result<Incoming<(Response, Vec<Payload>)>, Diagnostic> {
    read_response_within(from, if heard { MAX_HEADER } else { MAX_GREETING }, |line| greeting_in(line, sent))
}

/// A line before the worker has its pipe: whatever a login prints, it is no message. Errors: the end, a line without an end.
pub fn read_noise(from: &mut impl BufRead) -> Result<Option<String>, Diagnostic> {
    Ok(read_line(from, MAX_GREETING)?.map(|line| String::from_utf8_lossy(&line).into_owned()))
}

fn read_response_within(
    from: &mut impl BufRead,
    limit: u64,
    message_in: impl FnOnce(&[u8]) -> Option<usize>,
) -> Result<Incoming<(Response, Vec<Payload>)>, Diagnostic> {
    let Some(line) = read_line(from, limit)? else { return Ok(Incoming::End) };
    let Some(start) = message_in(&line) else { return Ok(Incoming::Noise(shown(&line))) };
    let mut response: Response = parse(&line[start..])?;
    let infos = std::mem::take(&mut response.payloads);
    if infos.len() > MAX_PAYLOADS {
        return Err(broken("protocol-payload", format!("a message announces {} payloads", infos.len())));
    }
    let mut left = MAX_PAYLOAD;
    let mut payloads = Vec::with_capacity(infos.len());
    for info in infos {
        let want = payload_bytes(&info)?;
        left = left.checked_sub(want).ok_or_else(|| {
            broken("protocol-payload", format!("a message announces more than {MAX_PAYLOAD} bytes of payloads"))
        })?;
        let bytes = read_payload(from, &info, want)?;
        payloads.push((info, bytes));
    }
    Ok(Incoming::Message((response, payloads)))
}

/// Grows with what arrives, so that a lying header cannot exhaust the memory.
fn read_payload(from: &mut impl Read, info: &PayloadInfo, want: u64) -> Result<Vec<u8>, Diagnostic> {
    let mut bytes = Vec::new();
    from.take(want).read_to_end(&mut bytes).map_err(|e| io_error("reading a payload", &e))?;
    if bytes.len() as u64 == want {
        return Ok(bytes);
    }
    let message = format!("the stream ended inside payload `{}`: {} of {want} bytes", info.name, bytes.len());
    Err(broken(CUT_SHORT, message))
}

/// A header with its newline. None: it is longer than a reader takes.
fn header_line(header: &impl Serialize, limit: u64) -> Result<Option<Vec<u8>>, Diagnostic> {
    let mut line = Limited { bytes: Vec::new(), limit };
    match serde_json::to_writer(&mut line, header) {
        Ok(()) => {}
        Err(e) if e.is_io() => return Ok(None),
        Err(e) => return Err(broken("protocol-header", format!("cannot write the message: {e}"))),
    }
    line.bytes.push(b'\n');
    Ok(Some(line.bytes))
}

/// Bytes up to a limit, so that what is too long costs no memory beyond it.
struct Limited {
    bytes: Vec<u8>,
    limit: u64,
}

impl Write for Limited {
    fn write(&mut self, more: &[u8]) -> std::io::Result<usize> {
        if (self.bytes.len() + more.len()) as u64 > self.limit {
            return Err(std::io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(more);
        Ok(more.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Bytes of captured tensors inside a line: base64.
fn in_text(bytes: u64) -> u64 {
    bytes.saturating_mul(4) / 3
}

/// Writes one request and flushes. Errors: [`TOO_LARGE`], and then nothing was written; the stream is broken.
pub fn write_request(to: &mut impl Write, request: &Request) -> Result<(), Diagnostic> {
    write_request_within(to, request, MAX_HEADER)
}

/// The same with a limit of its own.
pub(super) fn write_request_within(to: &mut impl Write, request: &Request, limit: u64) -> Result<(), Diagnostic> {
    let captured = request.body.captured_bytes();
    let gib = |bytes: u64| bytes as f64 / (1u64 << 30) as f64;
    let too_large = || {
        let message = format!(
            "this request takes more than {:.1} GiB, which is all that a worker reads; tensors that the mods capture are {:.1} GiB of it",
            gib(limit),
            gib(in_text(captured)),
        );
        Diagnostic::error(TOO_LARGE, message).hint(
            "capture at most 0.7 GiB: a smaller dtype, one table for all heads or batch entries, shorter axes, or compute the values in the mod",
        )
    };
    // what is far too large is not written first
    if in_text(captured) > limit {
        return Err(too_large());
    }
    let line = header_line(request, limit)?.ok_or_else(too_large)?;
    to.write_all(&line).and_then(|()| to.flush()).map_err(|e| io_error("writing a request", &e))
}

/// Writes one response, which announces exactly `payloads`, and flushes.
pub fn write_response(to: &mut impl Write, response: &Response, payloads: &[Payload]) -> Result<(), Diagnostic> {
    let mut header = response.clone();
    header.payloads = payloads.iter().map(|(info, _)| info.clone()).collect();
    for (info, bytes) in payloads {
        if payload_bytes(info)? != bytes.len() as u64 {
            let message = format!("payload `{}` of shape {:?} has {} bytes", info.name, info.shape, bytes.len());
            return Err(broken("protocol-payload", message));
        }
    }
    let line = header_line(&header, MAX_HEADER)?
        .ok_or_else(|| broken("protocol-header", format!("an answer is longer than {MAX_HEADER} bytes")))?;
    to.write_all(&line).map_err(|e| io_error("writing a header", &e))?;
    for (_, bytes) in payloads {
        to.write_all(bytes).map_err(|e| io_error("writing a payload", &e))?;
    }
    to.flush().map_err(|e| io_error("writing a response", &e))
}

#[cfg(test)]
#[path = "transport_tests.rs"]
mod tests;
