//! Takes changes of the configuration file over while the scheduler runs.
//!
//! The file is read every second: a ConfigMap in a pod is replaced by links, of which no event of
//! the file system tells reliably. A text is judged once two reads in a row have found it, so that
//! no half-written file is judged. A file that is wrong is refused whole, and the old configuration
//! goes on; where only a port is taken, or a file that it names is not there yet, it is tried again
//! until that is different. A file that changes what the scheduler was built around ends the
//! following: the caller then stops the scheduler and starts another one.

use super::changes::{begins_anew, changed_keys};
use super::read::unreadable;
use super::{Configuration, ConfigurationFile, InvalidConfiguration};
use crate::handles::Handles;
use crate::live::log;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;
use tracing::{info, warn};

const INTERVAL: Duration = Duration::from_secs(1);

/// The text of the file, or why it cannot be read.
type Read = Result<String, String>;

/// Why a file is not taken over.
enum Refusal {
    /// The file is wrong until it changes.
    Wrong(InvalidConfiguration),
    /// The scheduler cannot listen at an address of the file, or cannot use a file that it names,
    /// for now.
    NotYet(InvalidConfiguration),
}

/// The configuration in force, and why the file is refused, if it is.
#[derive(Debug)]
pub(crate) struct InForce(Mutex<State>);

#[derive(Debug, Clone)]
struct State {
    file: ConfigurationFile,
    refused: Option<String>,
}

impl InForce {
    pub(crate) fn new(file: ConfigurationFile) -> Self {
        Self(Mutex::new(State {
            file,
            refused: None,
        }))
    }

    /// The file in force, and what is wrong with a newer one that is refused.
    pub(crate) fn get(&self) -> (ConfigurationFile, Option<String>) {
        let state = self.lock().clone();
        (state.file, state.refused)
    }

    fn accept(&self, file: ConfigurationFile) {
        *self.lock() = State {
            file,
            refused: None,
        };
    }

    fn refuse(&self, message: String) {
        self.lock().refused = Some(message);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Follows one configuration file.
pub(crate) struct Follower {
    path: PathBuf,
    in_force: Arc<InForce>,
    handles: Handles,
    /// Whether the session is recorded: a journal is of one scheduler, which cannot begin anew.
    recorded: bool,
    last: Option<Read>,
    judged: Option<Read>,
}

impl Follower {
    pub(crate) fn new(
        path: PathBuf,
        in_force: Arc<InForce>,
        handles: Handles,
        recorded: bool,
    ) -> Self {
        Self {
            path,
            in_force,
            handles,
            recorded,
            last: None,
            judged: None,
        }
    }

    /// Follows the file until the task is cancelled, or until the scheduler must begin anew: then
    /// it sends the configuration for that.
    pub(crate) async fn run(mut self, anew: oneshot::Sender<Configuration>) {
        loop {
            let text = tokio::fs::read_to_string(&self.path).await;
            if let Some(configuration) = self.look(text.map_err(|error| unreadable(&error))) {
                // The receiver is gone where the scheduler is being stopped in any case.
                drop(anew.send(configuration));
                return;
            }
            tokio::time::sleep(INTERVAL).await;
        }
    }

    /// Looks at what was read: the configuration with which the scheduler must begin anew, if it
    /// must.
    fn look(&mut self, read: Read) -> Option<Configuration> {
        let settled = self.last.as_ref() == Some(&read);
        let mut anew = None;
        if settled && self.judged.as_ref() != Some(&read) {
            anew = self.take_over(&read);
        }
        self.last = Some(read);
        anew
    }

    fn take_over(&mut self, read: &Read) -> Option<Configuration> {
        let judgement = self.judge(read);
        // What is not there yet may come without a change of the file.
        let is_final = !matches!(&judgement, Err(Refusal::NotYet(_)));
        self.judged = is_final.then(|| read.clone());
        match judgement {
            Ok((_, changed)) if changed.is_empty() => {
                self.handles.metrics.configuration_refused.set(0);
                self.in_force.accept(self.in_force.get().0);
            }
            Ok((configuration, changed)) => {
                info!("the configuration has changed: {}", changed.join(", "));
                log::change(configuration.log_format, &configuration.log_level);
                if changed.iter().any(|key| begins_anew(key)) {
                    return Some(configuration);
                }
                self.handles.inbox.configured(configuration.settings);
                self.in_force.accept(configuration.file);
                self.handles.metrics.configuration_changed("applied");
                self.handles.metrics.configuration_refused.set(0);
            }
            Err(Refusal::Wrong(error) | Refusal::NotYet(error)) => {
                let message = error.to_string();
                if self.in_force.get().1.as_ref() != Some(&message) {
                    warn!("the configuration is not changed, the old one goes on: {message}");
                    self.in_force.refuse(message);
                    self.handles.metrics.configuration_changed("refused");
                    self.handles.metrics.configuration_refused.set(1);
                }
            }
        }
        None
    }

    /// The new configuration with the keys that have changed, or everything that is wrong with it.
    fn judge(&self, read: &Read) -> Result<(Configuration, Vec<String>), Refusal> {
        let name = self.path.display().to_string();
        let invalid = |problems| InvalidConfiguration {
            file: name.clone(),
            problems,
        };
        let text = read.as_ref();
        let text = text.map_err(|error| Refusal::Wrong(invalid(vec![error.clone()])))?;
        let configuration = Configuration::parse(text, &name).map_err(Refusal::Wrong)?;
        let (before, _) = self.in_force.get();
        let changed = changed_keys(&before, &configuration.file);
        let mut problems = Vec::new();
        if self.recorded {
            let anew = changed.iter().filter(|key| begins_anew(key));
            problems.extend(
                anew.map(|key| format!("{key}: cannot change while a session is recorded")),
            );
        }
        if !problems.is_empty() {
            return Err(Refusal::Wrong(invalid(problems)));
        }
        reachable(&before, &configuration)
            .map_err(|problem| Refusal::NotYet(invalid(vec![problem])))?;
        Ok((configuration, changed))
    }
}

/// Whether a scheduler of this configuration could begin now, in the place of the one before.
fn reachable(before: &ConfigurationFile, now: &Configuration) -> Result<(), String> {
    if before.serve_address != now.file.serve_address {
        usable(now.serve_address, &before.serve_address)
            .map_err(|problem| format!("serveAddress: {problem}"))?;
    }
    let Some(extender) = now
        .extender
        .as_ref()
        .filter(|_| before.extender != now.file.extender)
    else {
        return Ok(());
    };
    let address = before.extender.serve_address.as_deref();
    if address != now.file.extender.serve_address.as_deref() {
        usable(extender.serve_address, address.unwrap_or_default())
            .map_err(|problem| format!("extender.serveAddress: {problem}"))?;
    }
    let files = extender.files.check();
    files.map_err(|problem| format!("extender: {problem}"))
}

/// Whether the scheduler can listen at an address. Where it listens on that port already, only the
/// IP address is tried.
fn usable(address: SocketAddr, before: &str) -> Result<(), String> {
    let same_port = before.rsplit(':').next() == Some(address.port().to_string().as_str());
    let port = if same_port { 0 } else { address.port() };
    TcpListener::bind((address.ip(), port))
        .map(drop)
        .map_err(|error| format!("cannot listen on {address}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::config::tests::{HEAD, parse};
    use gpu_batch_policies::event::Event;
    use gpu_batch_policies::facts::Placement;

    fn follower() -> Follower {
        let file = parse("").unwrap().file;
        let in_force = Arc::new(InForce::new(file));
        let path = PathBuf::from("scheduler.yaml");
        Follower::new(path, in_force, Handles::new(String::new()), false)
    }

    /// What the engine is told after the file has been seen so.
    fn told(follower: &mut Follower, read: &Read) -> Vec<Event> {
        assert_eq!(follower.look(read.clone()), None);
        follower.handles.inbox.take(Duration::ZERO, true).events
    }

    #[test]
    fn a_change_is_taken_over_once_it_has_been_read_twice() {
        let mut follower = follower();
        let text = Ok(format!("{HEAD}placement: spread\n"));
        assert_eq!(told(&mut follower, &text), []);
        let events = told(&mut follower, &text);
        let [Event::Configured(settings)] = events.as_slice() else {
            panic!("{events:?}");
        };
        assert_eq!(settings.gpu_placement, Placement::Spread);
        assert_eq!(told(&mut follower, &text), [], "once");
        let half = Ok(HEAD.to_owned());
        assert_eq!(told(&mut follower, &half), [], "half written");
        assert_eq!(told(&mut follower, &text), []);
        assert_eq!(told(&mut follower, &text), [], "as before");
    }

    #[test]
    fn a_wrong_file_is_refused_whole_until_it_is_right_again() {
        let mut follower = follower();
        let good = Ok(HEAD.to_owned());
        let cases: [(Read, &str); 4] = [
            (
                Ok(format!("{HEAD}placement: spread\nretryAfter: 0s\n")),
                "scheduler.yaml cannot be used:\nretryAfter: must be longer than 0s",
            ),
            (
                Ok(format!(
                    "{HEAD}placement: spread\nserveAddress: 192.0.2.1:8080\n"
                )),
                "serveAddress: cannot listen on 192.0.2.1:8080: ",
            ),
            (Ok("{".to_owned()), "scheduler.yaml cannot be used:\n"),
            (Err("No such file".to_owned()), "No such file"),
        ];
        for (read, says) in cases {
            for _ in 0..3 {
                assert_eq!(told(&mut follower, &read), []);
            }
            let (file, refused) = follower.in_force.get();
            assert_eq!(file, parse("").unwrap().file, "nothing of it is in force");
            let refused = refused.unwrap();
            assert!(refused.contains(says), "{refused}");
            assert_eq!(follower.handles.metrics.configuration_refused.get(), 1);
            for _ in 0..2 {
                assert_eq!(told(&mut follower, &good), []);
            }
            assert_eq!(follower.in_force.get().1, None);
            assert_eq!(follower.handles.metrics.configuration_refused.get(), 0);
        }
    }

    #[test]
    fn a_port_that_is_taken_is_tried_again_until_it_is_free() {
        let mut follower = follower();
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap();
        let text = Ok(format!("{HEAD}serveAddress: {address}\n"));
        for _ in 0..3 {
            assert_eq!(told(&mut follower, &text), []);
        }
        let refused = follower.in_force.get().1.unwrap();
        assert!(
            refused.contains("serveAddress: cannot listen on"),
            "{refused}"
        );
        drop(taken);
        let anew = follower.look(text).unwrap();
        assert_eq!(anew.serve_address, address);
    }

    #[test]
    fn a_changed_extender_is_taken_over_once_its_port_is_free_and_its_files_are_there() {
        let mut follower = follower();
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let token = folder.path().join("token");
        let text = Ok(format!(
            "{HEAD}extender: {{serveAddress: {address}, tokenFile: {}}}\n",
            token.display()
        ));
        let refused = |follower: &mut Follower| {
            assert_eq!(told(follower, &text), []);
            assert_eq!(told(follower, &text), []);
            follower.in_force.get().1.unwrap()
        };
        let said = refused(&mut follower);
        assert!(
            said.contains("extender.serveAddress: cannot listen on"),
            "{said}"
        );
        drop(taken);
        let said = refused(&mut follower);
        assert!(said.contains("extender: cannot use"), "{said}");
        std::fs::write(&token, "a-token-that-nobody-guesses").unwrap();
        let anew = follower.look(text.clone()).unwrap();
        assert_eq!(anew.extender.unwrap().serve_address, address);
    }

    #[test]
    fn what_the_scheduler_is_built_around_makes_it_begin_anew_unless_it_is_recorded() {
        let text = format!("{HEAD}placement: spread\nschedulerName: other\n");
        let mut follower = follower();
        assert_eq!(told(&mut follower, &Ok(text.clone())), []);
        let anew = follower.look(Ok(text.clone())).unwrap();
        assert_eq!(anew.scheduler_name, "other");
        let mut recorded = self::follower();
        recorded.recorded = true;
        for _ in 0..3 {
            assert_eq!(told(&mut recorded, &Ok(text.clone())), []);
        }
        let refused = recorded.in_force.get().1.unwrap();
        let says = "schedulerName: cannot change while a session is recorded";
        assert!(refused.contains(says), "{refused}");
    }
}
