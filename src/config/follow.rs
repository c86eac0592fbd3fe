//! Takes changes of the configuration file over while the scheduler runs.
//!
//! The file is read every second: a ConfigMap in a pod is replaced by links, of which no event of
//! the file system tells reliably. What was read twice alike is judged, so that nobody's half
//! written file is. A file that is wrong, or that changes what takes a restart, is refused whole,
//! and the old configuration goes on.

use super::changes::{changed_keys, is_fixed};
use super::read::unreadable;
use super::{Configuration, InForce, InvalidConfiguration};
use crate::driver::Inbox;
use crate::serve::Metrics;
use crate::telemetry;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tracing::{info, warn};

const INTERVAL: Duration = Duration::from_secs(1);

/// The text of the file, or why it cannot be read.
type Read = Result<String, String>;

/// Follows one file.
pub(crate) struct Follower {
    path: PathBuf,
    in_force: Arc<InForce>,
    inbox: Arc<Inbox>,
    metrics: Arc<Metrics>,
    last: Option<Read>,
    judged: Option<Read>,
}

impl Follower {
    pub(crate) fn new(
        path: PathBuf,
        in_force: Arc<InForce>,
        inbox: Arc<Inbox>,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self {
            path,
            in_force,
            inbox,
            metrics,
            last: None,
            judged: None,
        }
    }

    /// Follows until the task is cancelled.
    pub(crate) async fn run(mut self) {
        loop {
            let text = tokio::fs::read_to_string(&self.path).await;
            self.look(text.map_err(|error| unreadable(&error)));
            tokio::time::sleep(INTERVAL).await;
        }
    }

    fn look(&mut self, read: Read) {
        let settled = self.last.as_ref() == Some(&read);
        if settled && self.judged.as_ref() != Some(&read) {
            self.take_over(&read);
            self.judged = Some(read.clone());
        }
        self.last = Some(read);
    }

    fn take_over(&self, read: &Read) {
        match self.judge(read) {
            Ok((_, changed)) if changed.is_empty() => {
                self.metrics.configuration_refused.set(0);
                self.in_force.accept(self.in_force.get().0);
            }
            Ok((configuration, changed)) => {
                info!("the configuration has changed: {}", changed.join(", "));
                telemetry::set_level(&configuration.log_level);
                self.inbox.configured(configuration.settings);
                self.in_force.accept(configuration.file);
                self.metrics.configuration_changed("applied");
                self.metrics.configuration_refused.set(0);
            }
            Err(error) => {
                warn!("the configuration is not changed, the old one goes on: {error}");
                self.in_force.refuse(error.to_string());
                self.metrics.configuration_changed("refused");
                self.metrics.configuration_refused.set(1);
            }
        }
    }

    /// The new configuration with the keys that are otherwise, or everything that is wrong with it.
    fn judge(&self, read: &Read) -> Result<(Configuration, Vec<String>), InvalidConfiguration> {
        let name = self.path.display().to_string();
        let invalid = |problems| InvalidConfiguration {
            file: name.clone(),
            problems,
        };
        let text = read.as_ref();
        let text = text.map_err(|error| invalid(vec![error.clone()]))?;
        let configuration = Configuration::parse(text, &name)?;
        let (before, _) = self.in_force.get();
        let changed = changed_keys(&before, &configuration.file);
        let fixed: Vec<String> = changed
            .iter()
            .filter(|key| is_fixed(key))
            .map(|key| format!("{key}: cannot change while the scheduler runs; restart it"))
            .collect();
        if fixed.is_empty() {
            Ok((configuration, changed))
        } else {
            Err(invalid(fixed))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::{HEAD, parse};
    use gpu_batch_policies::event::Event;
    use gpu_batch_policies::facts::Placement;

    fn follower() -> Follower {
        let file = parse("").unwrap().file;
        let in_force = Arc::new(InForce::new(file));
        let inbox = Arc::new(Inbox::default());
        let path = PathBuf::from("scheduler.yaml");
        Follower::new(path, in_force, inbox, Arc::new(Metrics::new()))
    }

    /// What the engine is told after the file has been seen so.
    fn told(follower: &mut Follower, read: &Read) -> Vec<Event> {
        follower.look(read.clone());
        follower.inbox.take(Duration::ZERO, true).events
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
                    "{HEAD}placement: spread\nleaderElection: {{name: other}}\n"
                )),
                "leaderElection.name: cannot change while the scheduler runs; restart it",
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
            assert_eq!(follower.metrics.configuration_refused.get(), 1);
            for _ in 0..2 {
                assert_eq!(told(&mut follower, &good), []);
            }
            assert_eq!(follower.in_force.get().1, None);
            assert_eq!(follower.metrics.configuration_refused.get(), 0);
        }
    }
}
