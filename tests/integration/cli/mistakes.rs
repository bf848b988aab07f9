//! Wrong usage, broken files, full disks: their messages and exit status.

use super::{BAND, Bench};
use std::io::Read;
use std::process::{Command, Stdio};

#[test]
fn wrong_use_is_status_two() {
    let bench = Bench::new();
    for (args, words) in [
        (&["dance"][..], &["error[unknown-command]"][..]),
        (
            &["chek", "band.json"],
            &["error[unknown-command]", "`chek` is not a command", "did you mean `maskloom check`?"],
        ),
        (&["band.json", "--frob"], &["unexpected argument '--frob'"]),
        (&["run"], &["<PRESET>"]),
        (&["run", "slidin_window"], &["error[unknown-preset]", "did you mean `sliding_window`?"]),
        (&["run", "band.json", "--backend", "flexx"], &["there is no backend named `flexx`", "flash_attention_2"]),
        (&["run", "band.json", "--device", "gpu"], &["`gpu` is not a device"]),
        (&["run", "band.json", "--dtype", "fp8"], &["bf16, f16, f32"]),
        (&["run", "band.json", "--seq", "0"], &["error[zero-length]"]),
        (&["run", "band.json", "--seq", "1099511627776"], &["error[length-too-large]"]),
        (&["run", "band.json", "--axes", "text 5 | image 4y4"], &["error[axis-notation]"]),
        (&["run", "band.json", "--arg", "window=5"], &["error[argument-layer]"]),
    ] {
        bench.run(args).fails(2, words);
    }
}

/// A negative number is a value that an option refuses, not another option.
#[test]
fn a_negative_number_is_refused_by_its_option() {
    let bench = Bench::new();
    for (args, words) in [
        (&["check", "band.json", "--seq", "-5"][..], "invalid value '-5' for '--seq <N>'"),
        (&["run", "band.json", "--rounds", "-1"], "invalid value '-1' for '--rounds"),
        (&["sweep", "band.json", "--lengths", "-3"], "invalid value '-3' for '--lengths"),
        (&["parallel", "band.json", "--ranks", "-2"], "invalid value '-2' for '--ranks"),
        (&["check", "band.json", "--at", "-1,0,0,0"], "cell -1,0,0,0 is outside"),
    ] {
        let ran = bench.run(args).fails(2, &[words]);
        assert!(!ran.err.contains("-- -"), "{}", ran.err);
    }
    bench.run(&["check", "band.json", "--score-value", "-2.5"]).ok();
}

/// What is pasted may hold what steers a terminal: it is shown, not obeyed.
#[test]
fn signs_that_steer_a_terminal_are_shown() {
    let bench = Bench::new();
    bench.write("nul.py", "def m(b, h, q, k):\n    return q >= \0\u{1b}[2Jk\n");
    let ran = bench.run(&["check", "nul.py"]).fails(1, &["error[syntax]", "q >= ␀␛[2Jk"]);
    assert!(!ran.err.contains(['\0', '\u{1b}']));
    bench.write("named\u{1b}[2J.py", "def m(b, h, q, k):\n    return q >= k\n");
    let ran = bench.run(&["check", "named\u{1b}[2J.py"]).ok();
    assert!(ran.out.contains("m of named␛[2J.py") && !ran.out.contains('\u{1b}'), "{}", ran.out);
}

#[test]
fn broken_documents_are_told_with_their_place() {
    let bench = Bench::new();
    for (from, to, words) in [
        ("\"maskloom\": 1", "\"maskloom\": 7", &["error[document-version]", "version 7"][..]),
        ("\"heads\": 4", "\"heads\": \"many\"", &["settings.heads"]),
        ("\"head_dim\": 32", "\"head_dim\": -1", &["settings.head_dim"]),
        ("tokens 300", "tokens 1099511627776", &["axes.q", "2^30"]),
        ("tokens 300", "tokens 0", &["greater than 0"]),
        ("\"kv_heads\": 2", "\"kv_heads\": 3", &["error[gqa-heads]"]),
        ("\"batch\": 1", "\"batch\": 60000", &["error[inputs-too-large]"]),
        (
            "\"kind\": \"band\", \"lo\": 0, \"hi\": 63",
            "\"kind\": \"text\", \"source\": \"def f(b, h, q, k:\\n\"",
            &["error["],
        ),
    ] {
        let text = BAND.replace(from, to);
        assert_ne!(text, BAND, "{from}");
        bench.write(
            "broken.json",
            &text.replace("tokens 300\"}", if from == "\"batch\": 1" { "tokens 200000\"}" } else { "tokens 300\"}" }),
        );
        bench.run(&["run", "broken.json", "--device", "cpu"]).fails(1, words);
    }
    bench.write("nothing.json", "not JSON");
    bench.run(&["run", "nothing.json"]).fails(1, &["error[document-json]", "nothing.json"]);
    std::fs::write(bench.path("bytes.json"), [0xff, 0xfe, 0x00]).expect("written");
    bench.run(&["run", "bytes.json"]).fails(1, &["error[not-text]"]);
    bench.run(&["run", "./"]).fails(1, &["error["]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_and_a_reader_that_goes_are_no_panics() {
    let bench = Bench::new();
    let args = ["run", "band.json", "--device", "cpu", "--rounds", "0", "--backend", "flex"];
    bench.run(&[&args[..], &["--save-run", "/dev/full"]].concat()).fails(1, &["error[disk-full]", "/dev/full"]);
    bench.run(&[&args[..], &["--out", "/dev/full"]].concat()).fails(1, &["error[disk-full]"]);
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("/dev/full");
    let output = bench.command(&["schema"]).stdout(full).output().expect("runs");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("error[cannot-write]"));
    let mut child = bench.command(&["schema"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
    drop(child.stdout.take());
    let mut reported = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut reported).expect("text");
    assert!(child.wait().expect("ends").success() && reported.is_empty(), "{reported}");
}

/// A device has no end, and a named pipe may have no writer: neither is read, by any command that takes a file.
#[cfg(target_os = "linux")]
#[test]
fn a_device_or_a_pipe_is_no_file_to_any_command() {
    let bench = Bench::new();
    let (zero, pipe) = (bench.path("zero.json"), bench.path("pipe.json"));
    std::os::unix::fs::symlink("/dev/zero", &zero).expect("made");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("runs").success());
    std::os::unix::fs::symlink("/dev/zero", bench.path("zero.jsonl")).expect("made");
    for file in [&zero, &pipe] {
        let file = file.to_str().expect("UTF-8");
        for args in [
            &["bench", "recorded", "--from", file][..],
            &["conform", "--grad", file],
            &["conform", file],
            &["check", file],
            &["parallel", "--request", file],
            &["advise", file],
            &["report", file],
        ] {
            let ran = bench.run(args);
            assert!(ran.err.contains("is no file, but a device, a socket or a named pipe"), "{args:?}: {}", ran.err);
        }
    }
    let args = ["sweep", "band.json", "--lengths", "64", "--device", "cpu", "--journal", "zero.jsonl"];
    bench.run(&args).fails(1, &["error[not-a-file]"]);
}

/// Each name of a text is looked up, not compared with every other one: a megabyte of names takes seconds. Where the names were compared,
/// it took minutes, and the system ends the program before.
#[cfg(unix)]
#[test]
fn a_megabyte_of_names_is_read_within_a_minute_of_the_processor() {
    let bench = Bench::new();
    let many = |line: &dyn Fn(usize) -> String| {
        let lines = (0..).map(line).scan(0, |bytes, line| {
            *bytes += line.len();
            Some((*bytes, line))
        });
        lines.take_while(|(bytes, _)| *bytes < 1_000_000).map(|(_, line)| line).collect::<String>()
    };
    let mask = "def mask_mod(b, h, q_idx, kv_idx):\n    return q_idx >= kv_idx\n";
    let functions = many(&|i| format!("def f{i}(b, h, q, k):\n    return q >= k + {i}\n"));
    let chain = many(&|i| format!("def g{i}(x):\n    return g{}(x)\n", i + 1));
    let names = many(&|i| format!("x{i} = {i}\n"));
    let body = many(&|i| format!("    a{i} = q_idx + {i}\n"));
    for (text, code) in [
        (format!("{functions}{mask}"), 0),
        (format!("{chain}{mask}"), 0),
        (format!("{names}{mask}"), 0),
        (format!("def mask_mod(b, h, q_idx, kv_idx):\n{body}    return q_idx >= kv_idx\n"), 1),
    ] {
        bench.write("many.py", &text);
        let command = bench.command(&[]);
        let mut limited = Command::new("sh");
        limited.arg("-c").arg("ulimit -t 60; exec \"$0\" check many.py").arg(command.get_program());
        limited.current_dir(bench.path("")).envs(command.get_envs().filter_map(|(k, v)| Some((k, v?))));
        let ran = Bench::ran(&mut limited);
        assert_eq!(ran.code, code, "{}: {}", &text[..60], ran.err);
    }
}

/// In an address space of ten times its size a document of half a million strokes is read to its end, and a list of six million numbers
/// is refused.
#[cfg(target_os = "linux")]
#[test]
fn a_document_takes_at_most_eight_times_its_size_in_memory() {
    let bench = Bench::new();
    let band = std::fs::read_to_string(bench.path("band.json")).expect("a document");
    let with = |content: &str| band.replace(r#"{"kind": "band", "lo": 0, "hi": 63}"#, content);
    let stroke = |n: usize| {
        format!(r#"{{"paint":true,"rects":[[{},{},{},{}]]}}"#, n % 4000, n % 4000 + 1, n % 3900, n % 3900 + 1)
    };
    let strokes = (0..500_000).map(stroke).collect::<Vec<_>>().join(",");
    let painted = r#"{"kind": "painted", "cell": {"q": 1, "kv": 1}, "lengths": [4096, 4096], "strokes": ["#;
    bench.write("strokes.json", &with(&format!("{painted}{strokes}]}}")));
    let numbers = vec!["1234"; 6_000_000].join(",");
    bench.write(
        "numbers.json",
        &with(&format!(r#"{{"kind": "pattern", "name": "causal", "args": {{"a": [{numbers}]}}}}"#)),
    );
    for (name, code) in [("strokes.json", None), ("numbers.json", Some("document-too-large"))] {
        let megabytes = std::fs::metadata(bench.path(name)).expect("written").len() >> 20;
        let limit = format!("ulimit -v {}; exec \"$0\" check {name}", 10 * 1024 * megabytes + 64 * 1024);
        let command = bench.command(&[]);
        let program = command.get_program();
        let mut limited = Command::new("sh");
        limited.arg("-c").arg(limit).arg(program).current_dir(command.get_current_dir().expect("a folder"));
        let ran = Bench::ran(&mut limited);
        match code {
            None => drop(ran.ok()),
            Some(code) => drop(ran.fails(1, &[code])),
        }
    }
}

#[test]
fn what_is_passed_over_is_told_and_the_rest_still_loads() {
    let bench = Bench::new();
    for folder in ["presets", "patterns", "lib"] {
        std::fs::create_dir(bench.path(folder)).expect("made");
    }
    bench.write("presets/good.json", BAND);
    bench.write("presets/broken.json", "not JSON");
    bench.write("patterns/mine.py", "def mine(n: int = 3):\n    \"\"\"Keys up to n back.\"\"\"\n    def mask_mod(b, h, q_idx, kv_idx):\n        return q_idx - kv_idx <= n\n    return mask_mod\n");
    bench.write("patterns/torn.py", "def torn(:\n");
    std::fs::write(bench.path("patterns/causal.py"), [0xff]).expect("written");
    std::fs::write(bench.path("lib/table.py"), [0xff]).expect("written");
    bench.write("m.py", "try:\n    import table\nexcept ImportError:\n    pass\ndef mask_mod(b, h, q_idx, kv_idx):\n    return q_idx >= kv_idx\n");
    bench.write(
        "causal.json",
        &BAND.replace("\"kind\": \"band\", \"lo\": 0, \"hi\": 63", "\"kind\": \"pattern\", \"name\": \"causal\""),
    );
    let run = |args: &[&str], presets: &str, patterns: &str| {
        let mut command = bench.command(args);
        Bench::ran(command.env("MASKLOOM_PRESETS", bench.path(presets)).env("MASKLOOM_PATTERNS", bench.path(patterns)))
            .ok()
    };
    let codes = |json: &serde_json::Value| -> Vec<String> {
        let all = json["passed_over"].as_array().into_iter().flatten();
        all.map(|one| one["code"].as_str().expect("a code").to_string()).collect()
    };
    let listed = run(&["presets"], "presets", "patterns");
    assert!(listed.out.contains("good") && listed.err.contains("warning[file-passed-over]"), "{}", listed.err);
    assert!(listed.err.contains("broken.json") && listed.err.contains("remove it"), "{}", listed.err);
    assert_eq!(codes(&run(&["presets", "--json"], "presets", "patterns").json()), ["file-passed-over"]);
    assert_eq!(codes(&run(&["presets", "--json"], "none", "patterns").json()), ["folder-variable"]);
    let patterns = run(&["presets", "--patterns", "--json"], "presets", "patterns").json();
    assert_eq!(codes(&patterns), ["file-passed-over"; 2]);
    let mine = patterns["patterns"].as_array().expect("a list").iter().find(|one| one["name"] == "mine").cloned();
    assert_eq!(mine.expect("listed")["summary"], "Keys up to n back.");
    // the built-in pattern of an unreadable file's name, a package that is not there, a module that is no text
    let checked = run(&["check", "causal.json", "--package", "gone", "--json"], "presets", "patterns");
    assert!(
        checked.err.contains("gone: there is no such folder") && checked.err.contains("causal.py"),
        "{}",
        checked.err
    );
    assert_eq!(codes(&checked.json()), ["package-folder", "file-passed-over"]);
    let checked = run(&["check", "m.py", "--package", "lib", "--json"], "presets", "patterns");
    assert_eq!(codes(&checked.json()), ["file-passed-over"], "{}", checked.err);
    assert!(checked.err.contains("table.py"), "{}", checked.err);
}
