//! A client beside workers that end, babble, keep silent and lie.
//!
//! Invariant: each ends in one diagnostic within the patience that it was given, and leaves no process.

use super::*;

fn shell(script: &str) -> Client {
    Client::launch(&Target::from_words(&["sh", "-c", script])).expect("sh starts")
}

#[test]
fn a_death_is_told_once_with_its_last_words() {
    let mut client = shell("echo 'Welcome to gpu1'; echo 'no such GPU' >&2; exit 3");
    let id = client.send(RequestBody::Doctor);
    let why = client.wait(id).unwrap_err();
    assert_eq!(why[0].code, "worker-died");
    for words in ["exit status 3", "no such GPU", "Welcome to gpu1"] {
        assert!(why[0].message.contains(words), "{}", why[0].message);
    }
    assert_eq!(client.poll().len(), 1);
    assert!(client.poll().is_empty() && !client.is_alive());
    assert_eq!(client.wait(id).unwrap_err()[0].code, "worker-died");
}

/// Takes a request, and has its number.
const NUMBER: &str = "read line; id=${line#*:}; id=${id%%,*}; ";

#[test]
fn garbage_from_a_worker_ends_it() {
    let mut client = shell(&format!("{NUMBER}echo \"{{\\\"id\\\": $id}}\"; sleep 60"));
    let id = client.send(RequestBody::Doctor);
    let why = client.wait(id).unwrap_err();
    assert!(why[0].message.contains("not a message of Maskloom"), "{}", why[0].message);
    // the message must not suggest another user or missing memory
    let reported = &why[0].message;
    assert!(reported.contains("Maskloom stopped it") && !reported.contains("SIGKILL"), "{reported}");
}

/// The number of the first request of any program, a worker's whole answer and its signs of life, and payloads that never come.
#[test]
fn what_a_login_prints_is_never_a_message() {
    let printed = [
        r#"{"id":1}"#,
        r#"{"id":0}"#,
        r#"{"id":-1} {"id":{"id":1}}"#,
        r#"last login: {"id":2} "#,
        r#"{"id":1,"body":{"say":"done","reply":"bye"}}"#,
        r#"{"id":1,"body":{"say":"failed","why":[]}}"#,
        r#"{"id":1,"body":{"say":"done","reply":"bye"},"payloads":[{"name":"x","dtype":"f32","shape":[64]}]}"#,
    ];
    for printed in printed {
        // a login that starts a worker of another one has its signs of life, too
        for before in ["", HELLO] {
            let answer = r#"printf '{"id":%s,"body":{"say":"done","reply":"bye"}}\n' $id"#;
            let mut client =
                shell(&format!("{before}printf '%s' '{printed}'; {before}echo; {NUMBER}{answer}; sleep 60"));
            let id = client.send(RequestBody::Hello { protocol: PROTOCOL_VERSION });
            let answer = client.wait(id).unwrap_or_else(|why| panic!("{printed}: {why:?}"));
            assert!(matches!(answer.reply, Reply::Bye {}) && answer.payloads.is_empty(), "{printed}: {answer:?}");
        }
    }
}

#[test]
fn a_missing_program_is_a_diagnostic() {
    let why = Client::launch(&Target::new("no-such-program-of-ours worker")).err().expect("refused");
    assert_eq!(why.code, "target-launch");
}

#[test]
fn answers_to_others_stay_for_poll() {
    let answer = r#"printf '{"id":%s,"body":{"say":"done","reply":"bye"}}\n' "#;
    let mut client = shell(&format!("{NUMBER}first=$id; {NUMBER}{answer} $first; {answer} $id; sleep 60"));
    let [first, second] = [client.send(RequestBody::Doctor), client.send(RequestBody::Doctor)];
    client.wait(second).unwrap();
    assert!(matches!(&client.poll()[..], [Event::Message { id, .. }] if *id == first));
    client.kill();
}

/// Short enough for a test, long enough for a busy machine.
const SHORT: Patience = Patience {
    greeting: Duration::from_millis(1500),
    silence: Duration::from_millis(1500),
    ending: Duration::from_millis(500),
    asks: true,
};

const HELLO: &str = r#"printf '{"id":%s,"body":{"say":"alive"}}\n' 0; "#;

/// What a worker's silence or babble comes to.
fn fate(script: &str) -> String {
    let marker = format!("sleep 61{}.{}", NEXT_ID.fetch_add(1, Ordering::Relaxed), std::process::id());
    let script = script.replace("SLEEP", &marker);
    let target = Target::from_words(&["sh", "-c", &script]);
    let mut client = Client::launch_with(&target, SHORT, Box::new(|| {})).expect("sh starts");
    let began = Instant::now();
    let id = client.send(RequestBody::Doctor);
    let why = client.wait(id).unwrap_err();
    assert!(began.elapsed() < Duration::from_secs(30), "{script}: {:?}", began.elapsed());
    assert_eq!(why[0].code, "worker-died");
    drop(client);
    gone(&marker);
    why[0].message.clone()
}

/// Nothing that a worker started is left.
fn gone(marker: &str) {
    let patience = Instant::now() + Duration::from_secs(10);
    let running = || {
        let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        all.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
            .filter(|line| !line.starts_with(b"sh"))
            .any(|line| String::from_utf8_lossy(&line).replace('\0', " ").contains(marker))
    };
    while running() {
        assert!(Instant::now() < patience, "`{marker}` still runs");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn every_silence_has_an_end() {
    for script in [
        // no word at all; half a message; a greeting of another request; a line that never ends
        "SLEEP",
        "printf '{\"id\":1,'; SLEEP",
        "printf 'motd '; SLEEP",
        "echo '{ motd }'; SLEEP",
        "echo words >&2; SLEEP",
    ] {
        let reported = fate(script);
        assert!(reported.contains("was stopped: no answer for 1.5 s"), "{script}: {reported}");
    }
    // the last one says something all the time, and never a whole message
    for script in ["SLEEP", "printf '{\"id\":1,'; SLEEP", "while :; do printf x; sleep 0.1; done"] {
        let reported = fate(&format!("{HELLO}{script}"));
        assert!(reported.contains("was stopped: no sign of life for 1.5 s"), "{script}: {reported}");
    }
    assert!(fate("exec >/dev/null; SLEEP").contains("ended: it closed its output; Maskloom stopped it"));
    let payload = r#"printf '{"id":%s,"body":{"say":"done","reply":"bye"},"payloads":[{"name":"x","dtype":"f32","shape":[4294967296]}]}\n' $id; SLEEP"#;
    assert!(fate(&format!("{HELLO}{NUMBER}{payload}")).contains("no sign of life"), "a payload that was announced");
}

#[test]
fn babble_has_an_end() {
    assert!(fate("yes").contains("it prints lines without an end"));
    assert!(fate(&format!("{HELLO}yes")).contains("it prints lines without an end"));
    assert!(fate("tr '\\0' x </dev/zero").contains("a header line is longer than"));
    assert!(fate("yes >&2").contains("no answer for 1.5 s"));
}

#[test]
fn an_end_is_seen_though_a_grandchild_holds_the_output() {
    let reported = fate("SLEEP & exit 3");
    assert!(reported.contains("exit status 3; something that it started holds its output open"), "{reported}");
}

#[test]
fn a_stopped_worker_is_told() {
    let reported = fate(&format!("{HELLO}kill -STOP $$; SLEEP"));
    assert!(reported.contains("no sign of life"), "{reported}");
}

#[test]
fn a_greeting_may_follow_a_banner_without_a_newline() {
    let mut client = Client::launch_with(
        &Target::from_words(&["sh", "-c", &format!("echo '{{ motd }}'; printf 'motd '; {HELLO}read line; exit 4")]),
        SHORT,
        Box::new(|| {}),
    )
    .expect("sh starts");
    let id = client.send(RequestBody::Doctor);
    let why = client.wait(id).unwrap_err();
    assert!(why[0].message.contains("exit status 4"), "{}", why[0].message);
}

/// A worker answers its greeting at once, whatever else it does: signs of life alone are another program's.
#[test]
fn signs_of_life_are_no_answer_to_a_greeting() {
    let target = Target::from_words(&["sh", "-c", &format!("while :; do {HELLO}sleep 0.2; done")]);
    let mut client = Client::launch_with(&target, SHORT, Box::new(|| {})).expect("sh starts");
    let why = client.hello().unwrap_err();
    assert!(why[0].message.contains("was stopped: no answer for 1.5 s"), "{}", why[0].message);
    // a long run has no other signs
    let mut client = Client::launch_with(&target, SHORT, Box::new(|| {})).expect("sh starts");
    client.send(RequestBody::Doctor);
    std::thread::sleep(2 * SHORT.greeting);
    assert!(client.poll().is_empty() && client.is_alive());
}

#[test]
fn a_failure_without_a_reason_has_words() {
    let mut client =
        shell(&format!("{NUMBER}printf '{{\"id\":%s,\"body\":{{\"say\":\"failed\",\"why\":[]}}}}\\n' $id; sleep 60"));
    let answer = {
        let id = client.send(RequestBody::Doctor);
        client.wait(id)
    };
    let why = answer.unwrap_err();
    assert!(why[0].message.contains("gives no reason"), "{why:?}");
}

/// Before it was looked at for the first time: its parent ends with the end of its input.
#[cfg(target_os = "linux")]
#[test]
fn what_has_a_session_of_its_own_goes_with_a_client_that_is_gone_at_once() {
    let marker = format!("62{}", std::process::id());
    let mut client = shell(&format!("setsid sleep {marker} & {NUMBER}echo here >&2; cat >/dev/null"));
    client.send(RequestBody::Doctor);
    let until = Instant::now() + Duration::from_secs(20);
    while client.kin.iter().all(|kin| {
        lock(kin).look();
        !lock(kin).has_seen()
    }) {
        assert!(Instant::now() < until, "it never started");
        std::thread::sleep(Duration::from_millis(2));
    }
    // as if nobody had looked yet
    client.kin.iter().for_each(|kin| lock(kin).forget());
    drop(client);
    gone(&format!("sleep {marker}"));
}

/// What ssh does for a password.
#[test]
fn a_question_on_the_terminal_fails_at_once() {
    let reported = fate("stty -echo </dev/tty || exit 5; read answer </dev/tty; SLEEP");
    assert!(reported.contains("exit status 5"), "{reported}");
}

/// A worker answers what it cannot read under no number, and its client would wait for ever.
#[test]
fn a_request_that_is_too_large_is_refused_here_and_the_next_one_is_sent() {
    let (requests, outgoing) = channel();
    requests.send(Request { id: 1, body: RequestBody::Hello { protocol: u32::MAX } }).unwrap();
    requests.send(Request { id: 2, body: RequestBody::Doctor }).unwrap();
    drop(requests);
    let (mut written, refused) = (Vec::new(), Mutex::new(Vec::new()));
    let limit = serde_json::to_vec(&Request { id: 2, body: RequestBody::Doctor }).unwrap().len() as u64;
    write_requests(&mut written, None, &outgoing, limit, |id, why| lock(&refused).push((id, why.code)));
    assert_eq!(*lock(&refused), [(1, transport::TOO_LARGE.into())]);
    assert!(matches!(transport::read_request(&mut &written[..]), Ok(Incoming::Message(Request { id: 2, .. }))));
}
