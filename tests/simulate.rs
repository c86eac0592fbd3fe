//! The program's simulations from the command line: a generated trace runs, and bad input ends with
//! exit code 2 and a message that names the file, the line and the column.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder of this test that is gone at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("gpu-batch-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("the folder can be made");
        Self(path)
    }

    fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.0.join(file)).expect("the file was written")
    }

    fn write(&self, file: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.0.join(file), bytes).expect("the file can be written");
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn simulate(folder: &Path, arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gpu-batch"))
        .current_dir(folder)
        .arg("simulate")
        .args(arguments.split_whitespace())
        .output()
        .expect("the binary was built for this test")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

const JOBS: &str = "jobs --trace trace.csv --queues queues.csv --policy fifo,drf";

#[test]
fn a_generated_trace_runs_at_once() {
    let folder = Folder::new("first-simulation");
    let generate = "generate --like helios --seed 1 --jobs 300 --gpus 256 --out . -o json";
    let made = simulate(&folder.0, generate);
    assert!(made.status.success(), "{}", text(&made.stderr));
    assert!(made.stderr.is_empty(), "no progress bar in a pipe");
    let statistics: serde_json::Value = serde_json::from_slice(&made.stdout).unwrap();
    assert_eq!(statistics["jobs"], 300);
    assert_eq!(statistics["gpus"], 256);
    let run = simulate(&folder.0, &format!("{JOBS} --out results"));
    assert!(run.status.success(), "{}", text(&run.stderr));
    assert!(run.stderr.is_empty(), "no progress bar in a pipe");
    let started = folder.read("results/jobs.csv").lines().count() - 1;
    assert_eq!(started, 600, "every job starts under both policies");
    let again = Folder::new("first-simulation-again");
    simulate(&again.0, generate);
    for file in ["trace.csv", "queues.csv"] {
        assert_eq!(folder.read(file), again.read(file));
    }
}

#[test]
fn bad_traces_end_with_exit_code_2_and_the_place() {
    let header = "row,submit_s,duration_s,num_gpus,vc\n1,5,60,8,a\n";
    let trace = |row: &str| format!("{header}{row}\n").into_bytes();
    let cases = [
        (Vec::new(), "trace.csv: is empty; a header is expected"),
        (
            b"row,vc\n".to_vec(),
            "trace.csv:1: submit_s: the header lacks",
        ),
        (
            trace("2,-6,60,8,a"),
            "trace.csv:3: submit_s: \"-6\" is negative",
        ),
        (trace("2,4,60,8,a"), "trace.csv:3: submit_s: 4 is before 5"),
        (trace("1,6,60,8,a"), "trace.csv:3: row: 1 is also the row"),
        (trace("2,6,60"), "trace.csv:3: the line has 3 values"),
        (trace("2,6,60,0,a"), "trace.csv:3: num_gpus: is 0"),
        (
            b"\x1F\x8B\x08\0\0".to_vec(),
            "trace.csv:1: the compressed data is cut off",
        ),
        (b"PK\x03\x04".to_vec(), "trace.csv: is compressed with zip"),
        (
            [header.as_bytes(), b"2,6,60,8,\xFF\n"].concat(),
            "trace.csv:3: vc: is not UTF-8",
        ),
    ];
    let folder = Folder::new("bad-traces");
    folder.write("queues.csv", "vc,node num\na,1\n");
    for (trace, expected) in cases {
        folder.write("trace.csv", trace);
        let run = simulate(&folder.0, JOBS);
        let message = text(&run.stderr);
        assert_eq!(run.status.code(), Some(2), "{message}");
        assert!(
            message.starts_with(&format!("error: {expected}")),
            "{message}"
        );
    }
    folder.write("trace.csv", header);
    folder.write("queues.csv", "vc,node num\na,1\na,2\n");
    let run = simulate(&folder.0, JOBS);
    assert_eq!(run.status.code(), Some(2));
    let message = text(&run.stderr);
    assert!(
        message.contains("queues.csv:3: vc: \"a\" occurs twice"),
        "{message}"
    );
}

#[test]
fn jobs_that_can_never_run_are_listed() {
    let folder = Folder::new("never");
    folder.write("queues.csv", "vc,node num\na,1\n");
    let jobs = "row,submit_s,duration_s,num_gpus,vc\n1,0,60,8,a\n22,0,60,64,a\n333,0,60,1,b\n";
    folder.write("trace.csv", jobs);
    let run = simulate(&folder.0, JOBS);
    assert!(run.status.success(), "{}", text(&run.stderr));
    let shown = text(&run.stdout);
    for never in [
        "(row 22): it asks for 64 GPUs",
        "(row 333): its queue is not",
    ] {
        assert_eq!(shown.matches(never).count(), 2, "{shown}");
    }
}

#[test]
fn evictions_are_told_where_they_are_asked_for() {
    let folder = Folder::new("evictions");
    folder.write("queues.csv", "vc,node num\na,1\nb,1\n");
    let jobs = "row,submit_s,duration_s,num_gpus,vc,checkpoint_s\n\
                1,0,100,8,a,2\n2,5,100,8,a,2\n3,10,50,8,b,\n";
    folder.write("trace.csv", jobs);
    let run = simulate(&folder.0, &format!("{JOBS},drf+evictions --out results"));
    assert!(run.status.success(), "{}", text(&run.stderr));
    let shown = text(&run.stdout);
    assert!(shown.contains("GPU HOURS LOST"), "{shown}");
    assert_eq!(
        folder.read("results/evictions.csv"),
        "policy,time_s,row,queue,cause,for_row,for_queue,gpu_seconds_lost\n\
         drf+evictions,10,2,a,Reclaim,3,b,8\n"
    );
    let page = folder.read("results/report.html");
    assert!(page.contains("Who gave and who got"));
    let run = simulate(&folder.0, &format!("{JOBS} --out without"));
    assert!(run.status.success(), "{}", text(&run.stderr));
    assert!(!folder.0.join("without/evictions.csv").exists());
    let header = folder.read("without/jobs.csv");
    assert!(header.starts_with("policy,row,queue,start_s,end_s\n"));
}

#[test]
fn runtimes_are_learned_where_the_trace_says_whose_jobs_these_are() {
    let folder = Folder::new("learned");
    folder.write("queues.csv", "vc,node num\na,2\n");
    // The third job is expected to run for as long as the first two; the fourth waits for its end.
    let jobs = "row,submit_s,duration_s,num_gpus,vc,owner\n1,0,100,8,a,nightly\n\
                2,0,90,8,a,nightly\n3,200,120,8,a,nightly\n4,210,10,16,a,\n";
    folder.write("trace.csv", jobs);
    let run = "jobs --trace trace.csv --queues queues.csv --policy drf,drf+reservations";
    let done = simulate(&folder.0, &format!("{run} --out results"));
    assert!(done.status.success(), "{}", text(&done.stderr));
    let promises = folder.read("results/promises.csv");
    let promised = "drf+reservations,4,a,16,210,300,320\n";
    assert!(promises.ends_with(promised), "{promises}");
    assert_eq!(
        folder.read("results/runtimes.csv"),
        "policy,source,jobs,ratio_median,ratio_p95,overruns\n\
         drf+reservations,said,0,,,0\ndrf+reservations,owner,1,1.200,1.200,1\n\
         drf+reservations,queue,0,,,0\ndrf+reservations,none,3,,,\n"
    );
    let report = folder.read("results/report.json");
    assert!(report.contains("Runtimes by where they came from"));

    // What an earlier run has written and this one would not is no result of this one.
    folder.write("trace.csv", jobs.replace(",owner", ",nobody"));
    let done = simulate(&folder.0, &format!("{run} --out results"));
    assert!(done.status.success(), "{}", text(&done.stderr));
    assert!(!folder.0.join("results/runtimes.csv").exists());
    assert!(folder.0.join("results/promises.csv").exists());
}

/// Twenty jobs that end in the second in which they start keep nobody waiting beyond it.
#[test]
fn jobs_of_no_time_break_no_promise() {
    let folder = Folder::new("no-time");
    folder.write("queues.csv", "vc,node num\na,1\n");
    let mut jobs = "row,submit_s,duration_s,num_gpus,vc,expected_s\n1,0,10,8,a,10\n".to_owned();
    for row in 2..22 {
        jobs.push_str(&format!("{row},1,0,8,a,0\n"));
    }
    jobs.push_str("22,2,10,8,a,10\n");
    folder.write("trace.csv", &jobs);
    let policies = ["easy", "conservative", "drf+reservations"];
    let run = format!(
        "jobs --trace trace.csv --queues queues.csv --policy {} --out results",
        policies.join(",")
    );
    let done = simulate(&folder.0, &run);
    assert!(done.status.success(), "{}", text(&done.stderr));
    let starts = folder.read("results/jobs.csv");
    let promises = folder.read("results/promises.csv");
    for policy in policies {
        let start = format!("{policy},22,a,10,20\n");
        assert!(starts.contains(&start), "{starts}");
    }
    let promise = "conservative,22,a,8,2,10,10\n";
    assert!(promises.contains(promise), "{promises}");
}

#[test]
fn reservations_stand_beside_the_policies_without_them() {
    let folder = Folder::new("reservations");
    folder.write("queues.csv", "vc,node num\na,2\n");
    // The job of 16 GPUs waits for the first one. The third one is done by then, the last is not.
    let jobs = "row,submit_s,duration_s,num_gpus,vc,expected_s\n1,0,100,8,a,100\n\
                2,1,10,16,a,20\n3,2,50,8,a,60\n4,3,200,8,a,150\n";
    folder.write("trace.csv", jobs);
    let policies = "drf,drf+reservations,drf+evictions,drf+evictions+reservations";
    let jobs = format!("jobs --trace trace.csv --queues queues.csv --policy {policies}");
    let run = simulate(&folder.0, &format!("{jobs} --out results"));
    assert!(run.status.success(), "{}", text(&run.stderr));
    let shown = text(&run.stdout);
    assert!(shown.contains("KEPT, %") && shown.contains("MEDIAN WAIT, S"));
    let sizes = folder.read("results/sizes.csv");
    for row in [
        "drf,8-63,4,75.00,49,251",
        "drf+reservations,8-63,4,51.50,99,107",
    ] {
        assert!(sizes.contains(row), "{sizes}");
    }
    let promises = folder.read("results/promises.csv");
    let first = "drf+reservations,2,a,16,1,100,100\ndrf+reservations,4,a,8,3,120,110\n\
                 drf+evictions+reservations,2,a,16,1,100,100\n";
    assert!(promises.contains(first), "{promises}");
    assert_eq!(
        folder.read("results/expectations.csv"),
        "gpus,jobs,expected,ratio_median,ratio_p95,overruns\n\
         8-63,4,4,1.000,1.333,1\nALL,4,4,1.000,1.333,1\n"
    );
    let report = folder.read("results/report.json");
    for part in [
        "Waits by size",
        "Promised starts",
        "Expectations",
        "used without",
    ] {
        assert!(report.contains(part), "{part}");
    }
    assert!(report.contains("[\"reservations\",\"8\"]"), "{report}");

    let run = simulate(&folder.0, &format!("{jobs} --reservations 1 --out one"));
    assert!(run.status.success(), "{}", text(&run.stderr));
    let promises = folder.read("one/promises.csv");
    // The last job is promised nothing before the second one has started.
    assert!(
        promises.contains("drf+reservations,4,a,8,100,120,110\n"),
        "{promises}"
    );
    let run = simulate(&folder.0, &format!("{JOBS} --out without"));
    assert!(run.status.success(), "{}", text(&run.stderr));
    assert!(!folder.0.join("without/promises.csv").exists());
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    let folder = Folder::new("options");
    let both = "generate --like philly --seed 1 --out x --jobs 5 --gpus 8 --load 7";
    let none = "generate --like philly --seed 1 --out x --days 0";
    for (arguments, expected) in [(both, "give two"), (none, "days: 0 is not from 1")] {
        let run = simulate(&folder.0, arguments);
        assert_eq!(run.status.code(), Some(2));
        let message = text(&run.stderr);
        assert!(message.contains(expected), "{message}");
        assert!(!folder.0.join("x").exists());
    }
}

/// Without the note, nothing would say why no job is promised a start.
#[test]
fn columns_that_mean_nothing_are_told_once() {
    let folder = Folder::new("columns");
    folder.write("queues.csv", "vc,node num\na,2\n");
    let note = |optional: &str| {
        let columns = format!("row,submit_s,duration_s,num_gpus,vc,{optional}\n");
        folder.write(
            "trace.csv",
            columns + "1,0,100,8,a,100,1\n2,1,10,16,a,20,1\n",
        );
        let run = simulate(&folder.0, JOBS);
        assert!(run.status.success(), "{}", text(&run.stderr));
        text(&run.stderr)
    };
    assert_eq!(
        note("expected_sec,user"),
        "note: trace.csv: these columns mean nothing: \"expected_sec\" (did you mean \
         expected_s?), \"user\"\n"
    );
    assert_eq!(
        note("expected_s,expected_sec"),
        "note: trace.csv: these columns mean nothing: \"expected_sec\"\n",
        "what is there is not meant"
    );
    assert_eq!(note("expected_s,checkpoint_s"), "");
}

#[test]
fn as_many_reservations_as_in_a_configuration_may_be_asked_for() {
    let folder = Folder::new("many-reservations");
    for number in ["=-1", " -1", " abc", "=100001"] {
        let run = simulate(&folder.0, &format!("{JOBS} --reservations{number}"));
        assert_eq!(run.status.code(), Some(2), "{number}");
        let told = text(&run.stderr);
        let range = "must be a whole number from 0 to 100000; 0 turns reservations off";
        assert!(told.contains(range), "{number}: {told}");
    }
}

#[test]
fn a_number_of_reservations_that_no_policy_heeds_is_refused() {
    let folder = Folder::new("unheeded-reservations");
    for policies in ["easy,conservative", "fifo", "drf,drf+evictions"] {
        let run = simulate(
            &folder.0,
            &format!("{JOBS} --policy {policies} --reservations 3"),
        );
        assert_eq!(run.status.code(), Some(2), "{policies}");
        let told = text(&run.stderr);
        let which = "--reservations is for drf+reservations and drf+evictions+reservations";
        assert!(told.contains(which), "{policies}: {told}");
    }
}
