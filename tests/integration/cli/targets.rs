//! Other machines by name: put a worker there, run, detach, come back, go. The lines to them are stand-ins that pass words on as ssh
//! and docker do, with a home folder of their own; one test takes a real sshd.

#![cfg(target_os = "linux")]

use super::{Bench, Ran};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Joins its words for a shell there, as ssh does.
pub(super) const SSH: &str = "shift; exec sh -c \"$*\"";
/// Passes its words on as they are, as docker does.
const DOCKER: &str = "shift 3; exec \"$@\"";

/// A bench with lines to a machine.
pub(super) struct Far {
    pub(super) bench: Bench,
}

impl Far {
    pub(super) fn new() -> Far {
        let far = Far { bench: Bench::new() };
        // what travels is a script: the program itself is tens of megabytes
        far.program("worker", &format!("exec '{}' \"$@\"", env!("CARGO_BIN_EXE_maskloom")));
        far.line("ssh", "", SSH);
        far.line("docker", "", DOCKER);
        far
    }

    pub(super) fn program(&self, name: &str, text: &str) -> PathBuf {
        self.bench.write(name, &format!("#!/bin/sh\n{text}\n"));
        let path = self.bench.path(name);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("set");
        path
    }

    /// A line of this name: `first` runs there before what was asked for.
    pub(super) fn line(&self, name: &str, first: &str, how: &str) {
        let home = quoted(&self.home().display().to_string());
        let text =
            format!("unset XDG_CACHE_HOME MASKLOOM_CACHE MASKLOOM_TARGETS; HOME={home}; export HOME\n{first}\n{how}");
        self.program(name, &text);
    }

    /// A program there that answers instead of the system's.
    fn stub(&self, name: &str, text: &str) -> String {
        std::fs::create_dir_all(self.bench.path("stubs")).expect("made");
        self.program(&format!("stubs/{name}"), text);
        format!("PATH={}:$PATH; export PATH", quoted(&self.bench.path("stubs").display().to_string()))
    }

    pub(super) fn home(&self) -> PathBuf {
        self.bench.path("it's a \"home\" $HOME; `x`")
    }

    fn folder(&self) -> PathBuf {
        self.home().join(".cache/maskloom/remote")
    }

    pub(super) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.bench.command(args);
        command.env("MASKLOOM_TARGETS", self.bench.path("config/targets.json"));
        command.env("MASKLOOM_REMOTE_WORKER", self.bench.path("worker"));
        command
    }

    pub(super) fn run(&self, args: &[&str]) -> Ran {
        Bench::ran(&mut self.command(args))
    }

    pub(super) fn add(&self, name: &str, line: &str) -> Ran {
        let words = match line {
            "docker" => format!("{} exec -i box", quoted(&self.bench.path("docker").display().to_string())),
            line => format!("{} gpu1", quoted(&self.bench.path(line).display().to_string())),
        };
        self.run(&["target", "add", name, &words])
    }

    /// Starts a sweep of so many points there.
    pub(super) fn detach(&self, points: &str, rounds: &str) -> String {
        let sweep =
            ["sweep", "band.json", "--lengths", points, "--rounds", rounds, "--backend", "flex", "--device", "cpu"];
        let json = self.run(&[&sweep[..], &["--target", "a", "--detach", "--json"]].concat()).ok().json();
        json["job"].as_str().expect("a number").to_string()
    }

    /// A job in the list of the target, once `there` is true of it.
    #[track_caller]
    pub(super) fn job(&self, id: &str, there: impl Fn(&serde_json::Value) -> bool) -> serde_json::Value {
        let patience = Instant::now() + Duration::from_secs(60);
        loop {
            let json = self.run(&["jobs", "--target", "a", "--json"]).ok().json();
            let job =
                json["jobs"].as_array().expect("a list").iter().find(|job| job["id"] == id).expect("listed").clone();
            if there(&job) {
                return job;
            }
            assert!(Instant::now() < patience, "{job}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

pub(super) fn quoted(word: &str) -> String {
    maskloom::worker::far::script::quoted(word)
}

#[test]
fn a_worker_is_put_there_used_and_taken_away_through_any_line() {
    let far = Far::new();
    far.line("ssh", "echo 'Welcome'; echo '{\"id\":1}'; printf 'last login: today {\"id\":2} '", SSH);
    let reported = far.add("a", "ssh").ok();
    assert!(
        reported.out.contains("copied the worker") && reported.out.contains("the worker 0.1.0"),
        "{}",
        reported.out
    );
    let reported = far.add("b", "docker").ok().out;
    assert!(reported.contains("is there already"), "{reported}");
    let listed = far.run(&["target", "list", "--json"]).ok().json();
    let folder = listed["targets"][1]["found"]["folder"].as_str().expect("a folder");
    assert_eq!(PathBuf::from(folder), far.folder());
    for name in ["a", "b"] {
        let run = ["run", "band.json", "--device", "cpu", "--rounds", "1", "--json", "--target", name];
        let json = far.run(&run).ok().json();
        assert!(json["backends"].as_array().is_some_and(|all| all.len() == 4), "{json}");
    }
    assert!(far.run(&["doctor", "--target", "a"]).ok().out.contains(folder), "its cache is in our folder");
    assert!(far.run(&["target", "update", "a"]).ok().out.contains("is there already"));
    // another folder for the same target: nothing of it stays in the first one
    let other = far.bench.path("other folder").display().to_string();
    far.run(&["target", "update", "a", "--folder", &other]).ok();
    let marks = |at: PathBuf| std::fs::read_dir(at.join("clients")).map_or(0, Iterator::count);
    assert_eq!((marks(far.folder()), marks(PathBuf::from(&other))), (1, 1));
    far.run(&["target", "update", "a", "--folder", folder]).ok();
    assert!(!PathBuf::from(&other).exists());
    // both names are of one folder: it goes with the last of them
    assert!(far.run(&["target", "remove", "a"]).ok().out.contains("another client uses it"));
    assert!(far.run(&["target", "test", "b"]).ok().out.contains("answered in"));
    far.run(&["target", "remove", "b"]).ok();
    assert!(!far.folder().exists() && std::fs::read_dir(far.home().join(".cache")).expect("a folder").next().is_none());
    far.run(&["target", "test", "b"]).fails(1, &["error[target-unknown]"]);
    far.run(&["run", "band.json", "--target", "b"]).fails(1, &["error[target-launch]", "target add b"]);
}

#[test]
fn what_cannot_be_a_target_is_told_at_once_and_leaves_nothing() {
    let far = Far::new();
    for bad in ["a b", "a'b", "$(touch x)", "../x", ""] {
        far.run(&["target", "add", bad, "ssh gpu1"]).fails(2, &["error[target-name]"]);
    }
    far.run(&["target", "add", "a", "ssh 'gpu1"]).fails(2, &["error[target-command]", "open quote"]);
    far.run(&["target", "add", "a", "ssh gpu1 maskloom worker"]).fails(2, &["maskloom target add a \"ssh gpu1\""]);
    far.run(&["target", "add", "a", "no-such-program-of-ours"]).fails(1, &["error[target-launch]"]);
    // a line that gives no shell, and one that asks
    far.line("line", "echo 'Host key verification failed.' >&2; exit 255", "");
    far.add("a", "line").fails(1, &["error[target-unreachable]", "exit status 255", "answer its question"]);
    far.line("line", "echo 'me@gpu1: Permission denied (publickey,password).' >&2; exit 255", "");
    far.add("a", "line").fails(1, &["ssh-copy-id"]);
    far.line("line", "exec sleep 60", "");
    let words = [&quoted(&far.bench.path("line").display().to_string()), " gpu1"].concat();
    let silent = &mut far.command(&["target", "add", "a", &words]);
    Bench::ran(silent.env("MASKLOOM_PATIENCE", "1")).fails(1, &["error[target-silent]", "MASKLOOM_PATIENCE"]);
    // other systems
    let first = far.stub("uname", "case $1 in -s) echo Darwin ;; *) echo arm64 ;; esac");
    far.line("line", &first, SSH);
    far.add("a", "line").fails(1, &["error[target-system]", "Darwin, not Linux"]);
    let first = far.stub("uname", "case $1 in -s) echo Linux ;; -m) echo sparc64 ;; *) echo far ;; esac");
    far.line("line", &first, SSH);
    let elf =
        |far: &Far| Bench::ran(far.command(&["target", "add", "a", &words]).env("MASKLOOM_REMOTE_WORKER", "/bin/sh"));
    elf(&far).fails(1, &["error[target-worker]", "the target is sparc64", "--worker"]);
    std::fs::remove_file(far.bench.path("stubs/uname")).expect("there");
    let first = far.stub("getconf", "echo glibc 2.1");
    far.line("line", &first, SSH);
    elf(&far).fails(1, &["error[target-worker]", "needs glibc 2.", "the target has 2.1"]);
    // folders and disks
    far.line("line", "HOME=/proc; export HOME", SSH);
    far.add("a", "line").fails(1, &["error[target-folder]", "--folder"]);
    let first = far.stub("df", "printf 'x\\nfs 1 1 0 100%% /\\n'");
    far.line("line", &first, SSH);
    far.add("a", "line").fails(1, &["error[target-disk-full]", "are free"]);
    // what breaks in the middle is never run as commands
    std::fs::remove_file(far.bench.path("stubs/df")).expect("there");
    let first = far.stub("gzip", "exit 1");
    far.line("line", &first, SSH);
    far.add("a", "line").fails(1, &["error[target-copy]"]);
    let first = far.stub("gzip", "cat; echo more");
    far.line("line", &first, SSH);
    far.add("a", "line").fails(1, &["error[target-copy]", "SHA-256 differs"]);
    assert!(far.run(&["target", "list"]).ok().out.starts_with("no targets"));
    let mut left: Vec<_> = std::fs::read_dir(far.folder()).expect("our folder").flatten().collect();
    left.retain(|entry| entry.path().read_dir().is_ok_and(|mut inside| inside.next().is_some()));
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn another_version_and_a_missing_worker_say_how_they_are_mended() {
    let far = Far::new();
    let own = env!("CARGO_BIN_EXE_maskloom");
    far.program(
        "worker",
        &format!("[ \"$1\" != --version ] || {{ echo 'maskloom 0.0.9 (old)'; exit; }}; exec '{own}' \"$@\""),
    );
    far.add("a", "ssh").ok();
    let listed = far.run(&["target", "list", "--json"]).ok().json();
    assert_eq!(listed["targets"][0]["other_version"], true);
    far.program("worker", "echo 'maskloom 0.0.9 (old)'; exit 3");
    far.run(&["target", "update", "a"]).fails(1, &["error[target-worker]", "does not run there"]);
    far.program("worker", &format!("exec '{own}' \"$@\""));
    far.run(&["target", "update", "a"]).ok();
    let workers = || {
        std::fs::read_dir(far.folder())
            .expect("there")
            .flatten()
            .filter(|e| e.file_name().to_string_lossy().starts_with("worker-"))
            .count()
    };
    assert_eq!(workers(), 1, "older workers go");
    // one that speaks another protocol
    let other = r#""body":{"say":"failed","why":[{"severity":"error","code":"protocol-version","message":"protocol 3","labels":[],"hint":null}]}}"#;
    let path = listed_path(&far);
    std::fs::write(&path, format!("#!/bin/sh\nread line; echo \"${{line%%,*}},\"'{other}'; exec cat\n"))
        .expect("written");
    far.run(&["run", "band.json", "--target", "a"]).fails(1, &["error[protocol-version]", "maskloom target update a"]);
    std::fs::remove_file(path).expect("there");
    far.run(&["run", "band.json", "--target", "a"]).fails(1, &["error[worker-died]", "maskloom target update a"]);
    far.run(&["target", "update", "a"]).ok();
    far.run(&["check", "band.json"]).ok();
    far.line("ssh", "exit 255", "");
    far.run(&["target", "remove", "a"]).fails(1, &["--only-here"]);
    assert!(far.run(&["target", "remove", "a", "--only-here"]).ok().out.contains("stays there"));
}

fn listed_path(far: &Far) -> PathBuf {
    let listed = far.run(&["target", "list", "--json"]).ok().json();
    listed["targets"][0]["worker"]["path"].as_str().expect("a path").into()
}

#[test]
fn a_job_outlives_its_client_and_any_client_comes_back_to_it() {
    let far = Far::new();
    far.add("a", "ssh").ok();
    let id = far.detach("300,301,302", "200");
    far.run(&["target", "remove", "a"]).fails(1, &["error[target-busy]", &id]);
    let mut attached = far.command(&["attach", &id, "--target", "a"]).spawn().expect("starts");
    far.job(&id, |job| job["state"] == "running" && job["fraction"].as_f64() > Some(0.0));
    attached.kill().expect("killed");
    attached.wait().expect("reaped");
    // another client: another list of targets, the beginning of the number
    let other =
        |args: &[&str]| Bench::ran(far.command(args).env("MASKLOOM_TARGETS", far.bench.path("other/targets.json")));
    let words = format!("{} gpu1", quoted(&far.bench.path("ssh").display().to_string()));
    other(&["target", "add", "mine", &words]).ok();
    let json = other(&["attach", &id[..20], "--target", "mine", "--json"]).ok().json();
    let rows = json["rows"].as_array().expect("rows");
    let lengths: Vec<u64> = rows.iter().filter_map(|row| row["q_len"].as_u64()).collect();
    assert_eq!(lengths, [300, 301, 302]);
    assert_eq!((&rows[0]["target"], rows[0]["samples_ms"].as_array().map(Vec::len)), (&"mine".into(), Some(200)));
    let job = far.job(&id, |job| job["state"] == "ended");
    assert_eq!((&job["done"], &job["own"]), (&3.into(), &true.into()));
    assert!(far.run(&["target", "remove", "a"]).ok().out.contains("another client uses it"));
    assert_eq!(other(&["jobs", "--target", "mine", "--clear", "--json"]).ok().json()["removed"], 1);
    other(&["target", "remove", "mine"]).ok();
    assert!(!far.folder().exists());
}

#[test]
fn cancelled_lost_and_foreign_jobs_are_told_apart() {
    let far = Far::new();
    far.add("a", "docker").ok();
    let at = |id: &str| far.folder().join("jobs").join(id);
    let id = far.detach("300,2048", "100000");
    far.job(&id, |job| job["fraction"].as_f64() > Some(0.0));
    let reported = far.run(&["cancel", &id, "--target", "a"]).ok().out;
    assert!(reported.contains("cancelled; 0 of 2 results"), "{reported}");
    far.run(&["attach", &id, "--target", "a"]).fails(1, &["error[job-unfinished]", "cancelled"]);
    far.run(&["cancel", "20000101-no", "--target", "a"]).fails(1, &["error[job-unknown]"]);
    // the machine was started again: the number may be another process's by now
    let id = far.detach("300,301", "1");
    far.job(&id, |job| job["state"] == "ended");
    std::fs::remove_file(at(&id).join("end.json")).expect("there");
    let began = std::fs::read_to_string(at(&id).join("began.json")).expect("there");
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("there");
    let own = format!("\"pid\":{}", std::process::id());
    let other = began
        .replace(boot.trim(), "another")
        .replace(&began[began.find("\"pid\"").expect("it")..began.find(",\"start").expect("it")], &own);
    std::fs::write(at(&id).join("began.json"), other).expect("written");
    assert_eq!(far.job(&id, |_| true)["state"], "lost");
    let attached =
        far.run(&["attach", &id, "--target", "a"]).fails(1, &["ended without a word", "2 of 2 results are there"]);
    assert!(attached.out.contains("301"), "{}", attached.out);
    assert_eq!(
        far.run(&["cancel", &id, "--target", "a", "--json"]).ok().json()["state"],
        "lost",
        "no other process is ended"
    );
    // only root can make one of another user
    if std::os::unix::fs::chown(at(&id), Some(65_534), None).is_ok() {
        assert_eq!(far.job(&id, |_| true)["own"], false);
        far.run(&["cancel", &id, "--target", "a"]).fails(1, &["error[job-of-another]"]);
        assert_eq!(far.run(&["jobs", "--target", "a", "--clear", "--json"]).ok().json()["removed"], 1);
    }
    let detach = ["run", "band.json", "--detach", "--target", "srun -n1 maskloom worker"];
    far.run(&detach).fails(1, &["error["]);
}

#[test]
fn a_capture_stays_there_and_its_tables_and_pictures_come_back() {
    let far = Far::new();
    far.add("a", "ssh").ok();
    let capture = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/captures/lm.safetensors");
    let here = far.run(&["atlas", capture]).ok().out;
    let there = far.run(&["atlas", capture, "--target", "a", "--out", "heads.png"]).ok().out;
    assert_eq!(there, here);
    assert!(std::fs::read(far.bench.path("heads.png")).expect("a picture").starts_with(b"\x89PNG"));
    // a document of this machine travels with its command
    let quality = ["quality", "band.json", capture, "--seq", "512", "--heads", "4", "--head-dim", "16"];
    let here = far.run(&quality);
    let there = far.run(&[&quality[..], &["--target", "a"]].concat());
    assert_eq!((there.code, &there.out), (here.code, &here.out), "{}", there.err);
    // and a run of this machine detaches without a target
    let run = ["run", "band.json", "--device", "cpu", "--rounds", "1", "--backend", "flex", "--detach", "--json"];
    let id = far.run(&run).ok().json()["job"].as_str().expect("a number").to_string();
    assert!(far.run(&["attach", &id]).ok().out.contains("our CPU flex kernel"));
}

#[test]
fn a_sweep_over_three_targets_loses_one_and_is_taken_up_after_a_kill() {
    let far = Far::new();
    for name in ["a", "b"] {
        far.add(name, "ssh").ok();
    }
    // the third one is lost in the middle
    let own = env!("CARGO_BIN_EXE_maskloom");
    let dying = far.program("dying", &format!("[ ! -e pid ] || exit 9; echo $$ > pid; exec '{own}' worker"));
    let lengths: Vec<String> = (300..360).map(|n| n.to_string()).collect();
    let lengths = lengths.join(",");
    let dying = dying.display().to_string();
    let sweep = [
        "sweep",
        "band.json",
        "--lengths",
        &lengths,
        "--rounds",
        "1",
        "--backend",
        "flex",
        "--device",
        "cpu",
        "--journal",
        "s.jsonl",
        "--target",
        "a",
        "--target",
        "b",
        "--target",
        &dying,
        "--json",
    ];
    let count = || std::fs::read_to_string(far.bench.path("s.jsonl")).map_or(0, |text| text.lines().count());
    let mut first = far.command(&sweep).stdout(Stdio::null()).spawn().expect("starts");
    let patience = Instant::now() + Duration::from_secs(60);
    while count() < 9 {
        assert!(Instant::now() < patience, "no points");
        if count() > 3
            && let Ok(pid) = std::fs::read_to_string(far.bench.path("pid"))
        {
            let _ = Command::new("sh").args(["-c", "kill -9 $1", "kill", pid.trim()]).status();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    first.kill().expect("killed");
    first.wait().expect("reaped");
    let had = count();
    let ran = far.run(&sweep).ok();
    assert!(ran.err.contains(&format!("{had} of 60 points are in the journal")), "{}", ran.err);
    let json = ran.json();
    let mut seen: Vec<u64> =
        json["rows"].as_array().expect("rows").iter().filter_map(|row| row["q_len"].as_u64()).collect();
    seen.sort_unstable();
    assert_eq!(seen, (300..360).collect::<Vec<_>>());
    assert!(
        json["rows"].as_array().expect("rows").iter().all(|row| row["target"].is_string() && row["device"].is_string())
    );
    let again = far.run(&sweep).ok();
    assert!(again.err.contains("60 of 60 points"), "{}", again.err);
}

/// A server of ssh for this user on this machine; it ends with this.
struct Server(std::process::Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts one, and writes `ssh.conf` with the host `gpu1`, which is known, and `new`, which is not.
fn server(far: &Far, sshd: &std::path::Path) -> Server {
    let at = |name: &str| far.bench.path(name).display().to_string();
    for key in ["host", "own", "other"] {
        let made = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f", &at(key)]).status();
        assert!(made.expect("ssh-keygen").success());
    }
    // as root it wants its own empty folder
    let _ = std::fs::create_dir_all("/run/sshd");
    let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").port();
    far.bench.write(
        "sshd.conf",
        &format!(
            "ListenAddress 127.0.0.1:{port}\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\nPidFile none\n\
             PermitRootLogin yes\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nSetEnv XDG_CACHE_HOME={}\n",
            at("host"), at("own.pub"), at("cache-there")
        ),
    );
    let public = std::fs::read_to_string(far.bench.path("host.pub")).expect("a key");
    far.bench.write("known", &format!("[127.0.0.1]:{port} {public}"));
    let host = |name: &str, known: &str, key: &str| {
        format!(
            "Host {name}\n HostName 127.0.0.1\n Port {port}\n IdentityFile {}\n UserKnownHostsFile {}\n \
             IdentitiesOnly yes\n GlobalKnownHostsFile /dev/null\n",
            at(key),
            at(known)
        )
    };
    let all = [host("gpu1", "known", "own"), host("new", "unknown", "own"), host("locked", "known", "other")];
    far.bench.write("ssh.conf", &all.concat());
    let started = Command::new(sshd).args(["-D", "-e", "-f", &at("sshd.conf")]).stderr(Stdio::null()).spawn();
    let server = Server(started.expect("sshd starts"));
    let patience = Instant::now() + Duration::from_secs(20);
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(Instant::now() < patience, "sshd does not listen");
        std::thread::sleep(Duration::from_millis(20));
    }
    server
}

#[test]
fn a_real_line_of_ssh_is_added_cut_and_taken_up() {
    let found = [maskloom::worker::user_python::on_path("sshd"), Some("/usr/sbin/sshd".into())];
    let Some(sshd) = found.into_iter().flatten().find(|path| path.is_file()) else {
        return maskloom_testing::needs::missing("sshd", "no sshd on this machine");
    };
    let far = Far::new();
    let server = server(&far, &sshd);
    let line = |host: &str| format!("ssh -F {} {host}", quoted(&far.bench.path("ssh.conf").display().to_string()));
    far.run(&["target", "add", "n", &line("new")]).fails(1, &["error[target-unreachable]", "answer its question"]);
    far.run(&["target", "add", "n", &line("locked")]).fails(1, &["error[target-unreachable]", "ssh-copy-id"]);
    far.run(&["target", "add", "a", &line("gpu1")]).ok();
    let run = ["run", "band.json", "--device", "cpu", "--rounds", "1", "--backend", "flex", "--target", "a"];
    assert!(far.run(&run).ok().out.contains("our CPU flex kernel"));
    let id = far.detach("300,301,302,303", "400");
    // the line is cut while a client waits: it comes back by itself
    let mut attach = far.command(&["attach", &id, "--target", "a", "--json"]);
    let mut attached = attach.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
    let mut said = BufReader::new(attached.stderr.take().expect("piped"));
    let mut first = String::new();
    said.read_line(&mut first).expect("it says how far the job is");
    assert!(first.starts_with(&format!("job {id}: ")), "{first}");
    let cut = format!("kill -9 $(cat /proc/{}/task/*/children)", attached.id());
    assert!(Command::new("sh").args(["-c", &cut]).status().expect("sh").success(), "there is a line, and it is cut");
    let mut err = String::new();
    said.read_to_string(&mut err).expect("to its end");
    let ended = attached.wait_with_output().expect("it ends");
    let out = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success(), "{out}\n{err}");
    let json: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(json["rows"].as_array().map(Vec::len), Some(4));
    far.run(&["target", "remove", "a"]).ok();
    assert!(!far.bench.path("cache-there/maskloom").exists());
    drop(server);
}

/// Submits as Slurm does, and runs every task at once; task 1 fails the first time.
const SBATCH: &str = r#"echo "$*" >> sbatch.words
for word; do case $word in --array=*) tasks=${word#--array=} ;; --refuse) echo 'sbatch: error: Invalid partition' >&2; exit 1 ;; esac; script=$word; done
for task in $(echo "$tasks" | tr , ' '); do
  if [ "$task" = 1 ] && [ ! -e failed ]; then touch failed; echo 'node lost' > "${script%/*}/logs/1"; continue; fi
  SLURM_ARRAY_TASK_ID=$task sh "$script"
done
echo '4711;cluster'"#;

/// Ray's functions that the script calls, in one process.
const RAY: &str = r#"
import sys
def init(address=None, **options):
    if address == "nowhere": raise ConnectionError("no cluster at nowhere")
    print("Ray prints on stdout, too")
def cluster_resources(): return {"CPU": 2.0}
def put(value): return value
def get(ready): return ready[0]()
def wait(waiting, num_returns=1): return waiting[:1], waiting[1:]
class Task:
    def __init__(self, function): self.function = function
    def remote(self, *given): return (lambda: self.function(*given), len(given), id(given))
def remote(**options): return Task
"#;

#[test]
fn a_sweep_is_one_array_job_of_slurm_and_its_lost_tasks_are_submitted_again() {
    let far = Far::new();
    let path = format!("{}:{}", far.bench.path("").display(), std::env::var("PATH").expect("a path"));
    let sweep =
        ["sweep", "band.json", "--lengths", "300,301,302", "--rounds", "1", "--backend", "flex", "--device", "cpu"];
    let run = |more: &[&str]| Bench::ran(far.command(&[&sweep[..], more].concat()).env("PATH", &path));
    // nothing of the system is found here
    let none = |more: &[&str]| Bench::ran(far.command(&[&sweep[..], more].concat()).env("PATH", far.bench.path("")));
    none(&["--slurm", "array 1"]).fails(1, &["error[slurm-submit]", "cannot start sbatch"]);
    far.program("sbatch", SBATCH);
    run(&["--slurm", "array 1", "--sbatch=--refuse"]).fails(1, &["error[slurm-submit]", "Invalid partition"]);
    let reported = run(&["--slurm", "array 1", "--sbatch=--gres=gpu:1"]).ok();
    assert!(reported.err.contains("array job 4711: 3 points"), "{}", reported.err);
    let words = std::fs::read_to_string(far.bench.path("sbatch.words")).expect("called");
    assert!(words.contains("--array=0,1,2 --gres=gpu:1"), "{words}");
    // the same command shows what is there, and nothing is submitted twice
    let shown =
        run(&["--slurm", "array 1"]).fails(1, &["error[slurm-missing]", "seq 301", "node lost", "squeue -j 4711"]);
    assert!(shown.out.contains(" 302 ") && !shown.out.contains(" 301 "), "{}", shown.out);
    // one that waits or runs is not submitted again, and a refusal changes nothing
    far.program("squeue", "echo 1");
    let shown = run(&["--slurm", "array 1", "--again"]).fails(1, &["error[slurm-missing]", "1 wait or run"]);
    assert!(shown.out.contains(" 302 "), "{}", shown.out);
    far.program("squeue", "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1");
    run(&["--slurm", "array 1", "--again", "--sbatch=--refuse"]).fails(1, &["error[slurm-submit]"]);
    run(&["--slurm", "array 1", "--again"]).ok();
    let words = std::fs::read_to_string(far.bench.path("sbatch.words")).expect("called");
    assert!(
        words.lines().count() == 4 && words.lines().last().is_some_and(|last| last.contains("--array=1 ")),
        "{words}"
    );
    let rows = run(&["--slurm", "array 1", "--json"]).ok().json();
    assert_eq!(rows["rows"].as_array().map(Vec::len), Some(3));
    run(&["--slurm", "array 1", "--rounds", "2"]).fails(2, &["cannot be used multiple times"]);
    let other = ["sweep", "band.json", "--lengths", "300", "--slurm", "array 1"];
    Bench::ran(far.command(&other).env("PATH", &path)).fails(2, &["error[slurm-folder]"]);
}

#[test]
fn a_sweep_runs_through_ray_and_its_journal_counts() {
    let Some(python) = maskloom::worker::user_python::on_path("python3") else {
        return maskloom_testing::needs::missing("torch", "no Python on PATH");
    };
    let far = Far::new();
    std::fs::create_dir(far.bench.path("ray")).expect("made");
    far.bench.write("ray/__init__.py", RAY);
    let sweep = [
        "sweep",
        "band.json",
        "--rounds",
        "1",
        "--backend",
        "flex",
        "--device",
        "cpu",
        "--journal",
        "r.jsonl",
        "--json",
    ];
    let run = |more: &[&str]| {
        let mut command = far.command(&[&sweep[..], more].concat());
        command.env("MASKLOOM_PYTHON", &python).env("PYTHONPATH", far.bench.path("")).env("HOME", far.home());
        Bench::ran(command.env_remove("XDG_CACHE_HOME"))
    };
    run(&["--lengths", "300", "--ray", "nowhere"]).fails(1, &["error[ray-failed]", "no cluster at nowhere"]);
    run(&["--lengths", "300", "--ray", "127.0.0.1:1"])
        .fails(1, &["error[ray-failed]", "nothing answers at 127.0.0.1:1"]);
    let json = run(&["--lengths", "300,301", "--ray", "local"]).ok().json();
    let rows = json["rows"].as_array().expect("rows");
    assert!(
        rows.len() == 2 && rows.iter().all(|row| row["target"].as_str().is_some_and(|at| at.starts_with("ray: "))),
        "{json}"
    );
    let again = run(&["--lengths", "300,301,302", "--ray", "local"]).ok();
    assert!(again.err.contains("2 of 3 points are in the journal"), "{}", again.err);
}
