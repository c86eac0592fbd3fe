//! Child processes that never outlive this process.
//!
//! However this process ends (a return, a panic, Ctrl-C, `kill -9`), its children end too and their
//! folder is removed. A watchdog sees to it, a shell that waits for the end of a pipe:
//!
//! ```text
//!   this process ----- pipe -----> watchdog      at the end of the pipe: kill every group that
//!        |               ^                       started and has not ended, remove the folder
//!        | spawn         | "started PID"
//!        +----------> child: writes its own process id, then becomes the program
//! ```
//!
//! Only the kernel closes the last end of the pipe, so no signal can get in the way. A child writes
//! its process id before it becomes the program, and holds the pipe open until then: there is no
//! moment in which a program runs that the watchdog does not know. Each child leads a process group
//! of its own, so Ctrl-C on the terminal does not reach it.
//!
//! Children are ended with SIGKILL, without a warning: all their data is in the folder.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{PipeWriter, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;
use tempfile::TempDir;

use super::{LocalError, Program};

/// The watchdog: reads "started PID", "ended PID" and "keep" until its input ends.
const WATCHDOG: &str = r#"
trap '' HUP INT QUIT TERM
folder=$1 groups= keep=
while read -r word pid; do
    case $word in
    started) groups="$groups $pid" ;;
    ended)
        others=
        for group in $groups; do
            [ "$group" = "$pid" ] || others="$others $group"
        done
        groups=$others
        ;;
    keep) keep=yes ;;
    esac
done
while [ -n "$keep" ] && [ -d "$folder" ] && [ ! -e "$folder/stop" ]; do
    sleep 1
done
for group in $groups; do
    kill -s KILL -- "-$group"
done
for try in 1 2 3 4 5 6 7 8 9 10; do
    rm -rf -- "$folder" && break
    sleep 0.2
done
"#;

/// A child: tells the watchdog its process id, then becomes the program in its arguments.
const CHILD: &str = r#"echo "started $$" >&0 && exec "$@" </dev/null"#;

/// How many of the last lines of a log are shown.
const LOG_LINES_SHOWN: usize = 20;

/// Programs that run, their folder, and the watchdog that ends the programs and removes the folder.
#[derive(Debug)]
pub(super) struct Processes {
    folder: PathBuf,
    processes: BTreeMap<Program, Process>,
    watchdog: Child,
    /// `None` once the watchdog has been told to keep everything.
    pipe: Option<PipeWriter>,
}

#[derive(Debug)]
struct Process {
    executable: PathBuf,
    arguments: Vec<String>,
    /// `None` after the program was killed.
    child: Option<Child>,
    paused: bool,
}

impl Processes {
    /// A new folder with a watchdog; nothing runs yet.
    pub(super) fn new() -> Result<Self, LocalError> {
        let folder = TempDir::with_prefix("gpu-batch-")
            .map_err(LocalError::io("make a folder in", std::env::temp_dir()))?;
        let (reader, writer) = std::io::pipe().map_err(LocalError::io("make", "a pipe"))?;
        let watchdog = Command::new("sh")
            .args(["-c", WATCHDOG, "gpu-batch-watchdog"])
            .arg(folder.path())
            .current_dir("/")
            .stdin(reader)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(LocalError::io("run", "sh"))?;
        Ok(Self {
            folder: folder.keep(),
            processes: BTreeMap::new(),
            watchdog,
            pipe: Some(writer),
        })
    }

    /// The folder of all files; it is removed when the processes end.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Starts `program`. Its output goes to the file `PROGRAM.log` in the folder.
    pub(super) fn start(
        &mut self,
        program: Program,
        executable: PathBuf,
        arguments: Vec<String>,
    ) -> Result<(), LocalError> {
        self.kill(program);
        let process = Process {
            executable,
            arguments,
            child: None,
            paused: false,
        };
        self.processes.insert(program, process);
        self.restart(program)
    }

    /// Starts `program` again with the same arguments, after killing it if it still runs. Does
    /// nothing if it was never started.
    pub(super) fn restart(&mut self, program: Program) -> Result<(), LocalError> {
        self.kill(program);
        let log = self.log_file(program);
        let Some(process) = self.processes.get_mut(&program) else {
            return Ok(());
        };
        let pipe = self.pipe.as_ref().map(PipeWriter::try_clone).transpose();
        let output = File::options().create(true).append(true).open(&log);
        let output = output.and_then(|output| Ok((output.try_clone()?, output)));
        let (stdout, stderr) = output.map_err(LocalError::io("write", &log))?;
        let child = Command::new("sh")
            .args(["-c", CHILD, "sh"])
            .arg(&process.executable)
            .args(&process.arguments)
            .current_dir(&self.folder)
            .stdin(
                pipe.map_err(LocalError::io("copy", "a pipe"))?
                    .map_or(Stdio::null(), Into::into),
            )
            .stdout(stdout)
            .stderr(stderr)
            .process_group(0)
            .spawn()
            .map_err(LocalError::io("run", "sh"))?;
        process.child = Some(child);
        process.paused = false;
        Ok(())
    }

    /// Stops `program` with SIGSTOP and returns when the last of its threads has stopped; does
    /// nothing if it does not run.
    pub(super) fn pause(&mut self, program: Program) {
        let Some(process) = self.processes.get_mut(&program) else {
            return;
        };
        // A second SIGSTOP is never reported, so waiting for it would not end.
        let running = process.child.as_mut().filter(|_| !process.paused);
        let Some(child) = running else {
            return;
        };
        // The child's status is asked first, so that the wait below cannot take it away from
        // `ended`.
        if let (Ok(None), Some(group)) = (child.try_wait(), group_of(child)) {
            let _ = killpg(group, Signal::SIGSTOP);
            let _ = waitpid(group, Some(WaitPidFlag::WUNTRACED));
            process.paused = true;
        }
    }

    /// Lets a paused `program` go on.
    pub(super) fn resume(&mut self, program: Program) {
        if let Some(process) = self.processes.get_mut(&program) {
            process.paused = false;
            if let Some(group) = process.child.as_ref().and_then(group_of) {
                let _ = killpg(group, Signal::SIGCONT);
            }
        }
    }

    /// Ends `program` at once and waits until it is gone; does nothing if it does not run.
    pub(super) fn kill(&mut self, program: Program) {
        let Some(process) = self.processes.get_mut(&program) else {
            return;
        };
        if let Some(mut child) = process.child.take() {
            // An error of either call means that the child is gone already.
            let _ = group_of(&child).map(|group| killpg(group, Signal::SIGKILL));
            let _ = child.wait();
            self.tell(&format!("ended {}\n", child.id()));
        }
    }

    /// A program that ended by itself, if there is one.
    pub(super) fn ended(&mut self) -> Option<(Program, ExitStatus)> {
        let (program, status, id) = self.processes.iter_mut().find_map(|(program, process)| {
            let child = process.child.as_mut()?;
            let status = child.try_wait().ok().flatten()?;
            Some((*program, status, child.id()))
        })?;
        if let Some(process) = self.processes.get_mut(&program) {
            process.child = None;
        }
        self.tell(&format!("ended {id}\n"));
        Some((program, status))
    }

    /// The process id of `program`; `None` if it was killed or its end was noticed.
    pub(super) fn id(&self, program: Program) -> Option<u32> {
        self.processes.get(&program)?.child.as_ref().map(Child::id)
    }

    /// Everything that `program` wrote.
    pub(super) fn log(&self, program: Program) -> String {
        let log = fs::read(self.log_file(program)).unwrap_or_default();
        String::from_utf8_lossy(&log).into_owned()
    }

    /// The last lines of the log of `program`.
    pub(super) fn log_tail(&self, program: Program) -> String {
        let log = self.log(program);
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(LOG_LINES_SHOWN)..].join("\n")
    }

    /// Lets everything run on after this process, until the returned file exists or the folder is
    /// removed.
    pub(super) fn keep(mut self) -> PathBuf {
        self.tell("keep\n");
        self.pipe = None;
        for process in self.processes.values_mut() {
            process.child = None;
        }
        self.folder.join("stop")
    }

    fn log_file(&self, program: Program) -> PathBuf {
        self.folder.join(format!("{program}.log"))
    }

    /// Writes one line to the watchdog. If the watchdog is gone, the line is lost.
    fn tell(&self, line: &str) {
        if let Some(mut pipe) = self.pipe.as_ref() {
            let _ = pipe.write_all(line.as_bytes());
        }
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        if self.pipe.is_none() {
            return;
        }
        let programs: Vec<Program> = self.processes.keys().copied().collect();
        for program in programs {
            self.kill(program);
        }
        self.pipe = None;
        let _ = self.watchdog.wait();
    }
}

/// The process group that a child leads.
fn group_of(child: &Child) -> Option<Pid> {
    i32::try_from(child.id()).ok().map(Pid::from_raw)
}
