//! A real browser, where there is one.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const NAMES: [&str; 4] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
];

/// A browser that says nothing for so long will not: the machine is too slow to tell.
const PATIENCE: Duration = Duration::from_secs(60);

/// The document after the scripts of a page have run; `None` where no browser can be started.
///
/// The page is left beside the results of other tests, for people to look at.
pub(super) fn open(name: &str, page: &str) -> Option<String> {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("report");
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join(name).with_extension("html");
    std::fs::write(&path, page).unwrap();
    let drawn = NAMES.iter().find_map(|browser| run(browser, &path));
    if drawn.is_none() {
        println!("no browser has opened {}", path.display());
    }
    drawn
}

fn run(browser: &str, path: &Path) -> Option<String> {
    let output = path.with_extension("drawn.html");
    let profile = path.with_extension("profile");
    let mut child = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("file://{}", path.display()))
        .stdin(Stdio::null())
        .stdout(std::fs::File::create(&output).unwrap())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let has_ended = wait(&mut child);
    std::fs::remove_dir_all(profile).ok();
    let drawn = std::fs::read_to_string(output).unwrap();
    (has_ended && drawn.contains("</html>")).then_some(drawn)
}

fn wait(child: &mut Child) -> bool {
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        match child.try_wait().unwrap() {
            Some(status) => return status.success(),
            None => std::thread::sleep(Duration::from_millis(50)),
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    false
}
