//! Tells the log when this process begins and ceases to lead and to schedule, and why.

use crate::handles::health::Health;
use gpu_batch_policies::event::{Event, Outcome};
use gpu_batch_policies::lease::LeaseSeen;
use gpu_batch_policies::settings::{Leadership, Settings};
use tracing::{info, warn};

/// What the log was last told about this process, and the lease as it was then.
#[derive(Debug)]
pub(super) struct Standing {
    /// How this process signs the lease; `None` without election.
    identity: Option<Box<str>>,
    /// The address of the API server.
    server: String,
    /// The lease as it was seen last.
    lease: Option<LeaseSeen>,
    /// The lease before its present holder took it; `None`: no other holder was seen.
    before: Option<LeaseSeen>,
    leads: bool,
    schedules: bool,
    /// Whether this process has led before, and did not cease because another one took the lease.
    lapsed: bool,
    /// The leader that the log last named when this process stood by.
    behind: Option<Box<str>>,
}

impl Standing {
    pub(super) fn new(settings: &Settings, server: String) -> Self {
        let identity = match &settings.leadership {
            Leadership::Elected(lease) => Some(lease.identity.clone()),
            Leadership::Assumed => None,
        };
        Self {
            identity,
            server,
            lease: None,
            before: None,
            leads: false,
            schedules: false,
            lapsed: false,
            behind: None,
        }
    }

    /// Notes that a new engine begins, which does not lead yet.
    pub(super) fn begin_anew(&mut self) {
        (self.leads, self.schedules) = (false, false);
    }

    /// Whether the lease was ours when it was seen last.
    pub(super) fn holds_lease(&self) -> bool {
        let holder = self.lease.as_ref().map(|lease| &lease.holder);
        holder.is_some() && holder == self.identity.as_ref()
    }

    /// Notes what the events, which the engine is about to get, say of the lease.
    pub(super) fn observe(&mut self, events: &[Event]) {
        for event in events {
            let Event::Outcome(_, Outcome::Lease(seen)) = event else {
                continue;
            };
            let last = self.lease.replace(seen.clone());
            if let Some(last) = last.filter(|last| last.holder != seen.holder) {
                self.before = Some(last);
            }
        }
    }

    /// Logs what has changed with the last step.
    pub(super) fn tell(&mut self, leads: bool, synced: bool, stopping: bool, health: &Health) {
        if leads && !self.leads {
            info!("leading: {}", self.why_leading());
            self.behind = None;
        }
        if self.leads && !leads {
            let why = self.why_not_leading(stopping, health);
            if stopping {
                info!("not leading any more: {why}");
            } else {
                warn!("not leading any more: {why}");
            }
            self.lapsed = self.holds_lease();
        }
        if leads && synced && !self.schedules {
            info!("scheduling for {}", self.server);
        }
        self.leads = leads;
        self.schedules = leads && synced;
        if !leads && !stopping {
            self.tell_behind();
        }
    }

    /// Logs which process leads instead of this one.
    fn tell_behind(&mut self) {
        let Some(lease) = &self.lease else { return };
        let others = !lease.holder.is_empty() && !self.holds_lease();
        if others && self.behind.as_ref() != Some(&lease.holder) {
            info!("standing by: {} leads", lease.holder);
            self.behind = Some(lease.holder.clone());
        }
    }

    fn why_leading(&self) -> String {
        let Some(identity) = &self.identity else {
            return "leaderElection.enabled is false".to_owned();
        };
        let why = match &self.before {
            _ if self.lapsed => "the Lease could be renewed again".to_owned(),
            None => "the Lease was ours before this start".to_owned(),
            Some(before) if before.resource_version.is_none() => "there was no Lease".to_owned(),
            Some(before) if before.holder.is_empty() => "no process held the Lease".to_owned(),
            Some(before) => format!(
                "{} has not renewed the Lease for {} s",
                before.holder,
                before.duration_ms / 1_000
            ),
        };
        format!("{why}; it is signed {identity} now")
    }

    fn why_not_leading(&self, stopping: bool, health: &Health) -> String {
        if stopping {
            return "stopping".to_owned();
        }
        match &self.lease {
            Some(lease) if lease.holder.is_empty() => {
                "the holder of the Lease was removed from it".to_owned()
            }
            Some(lease) if !self.holds_lease() => format!("{} holds the Lease", lease.holder),
            _ => match health.lease_trouble() {
                Some(trouble) => format!("the Lease could not be renewed: {trouble}"),
                None => "the Lease was not renewed in time".to_owned(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Standing;
    use crate::handles::health::{Health, Outage};
    use gpu_batch_policies::command::CommandId;
    use gpu_batch_policies::event::{Event, Outcome};
    use gpu_batch_policies::lease::{LeaseSeen, LeaseSettings};
    use gpu_batch_policies::settings::{Leadership, Settings};

    fn standing() -> Standing {
        let lease = LeaseSettings {
            identity: "me".into(),
            duration_ms: 15_000,
            renew_deadline_ms: 10_000,
            retry_ms: 2_000,
        };
        let settings = Settings {
            leadership: Leadership::Elected(lease),
            ..Settings::default()
        };
        Standing::new(&settings, "https://10.0.0.1".to_owned())
    }

    fn seen(holder: &str, version: Option<&str>) -> Event {
        let seen = LeaseSeen {
            resource_version: version.map(Into::into),
            holder: holder.into(),
            transitions: 0,
            duration_ms: 15_000,
        };
        Event::Outcome(CommandId(1), Outcome::Lease(seen))
    }

    #[test]
    fn why_it_leads_follows_from_whose_the_lease_was() {
        for (before, why) in [
            (None, "the Lease was ours before this start"),
            (Some(seen("", None)), "there was no Lease"),
            (Some(seen("", Some("1"))), "no process held the Lease"),
            (
                Some(seen("other", Some("1"))),
                "other has not renewed the Lease for 15 s",
            ),
        ] {
            let mut standing = standing();
            standing.observe(&Vec::from_iter(before));
            standing.observe(&[seen("me", Some("2"))]);
            assert!(standing.holds_lease());
            let told = standing.why_leading();
            assert_eq!(told, format!("{why}; it is signed me now"));
        }
    }

    #[test]
    fn why_it_does_not_lead_any_more_names_the_holder_or_the_trouble() {
        let health = Health::new(0).with_server("https://10.0.0.1".to_owned());
        let mut standing = standing();
        standing.observe(&[seen("me", Some("1"))]);
        standing.tell(true, true, false, &health);
        let why = standing.why_not_leading(false, &health);
        assert_eq!(why, "the Lease was not renewed in time");
        health.failed(Outage::Unreachable("nothing listens there".to_owned()));
        let why = standing.why_not_leading(false, &health);
        assert!(
            why.contains("could not be renewed: the API server"),
            "{why}"
        );
        standing.tell(false, true, false, &health);
        assert!(standing.why_leading().contains("could be renewed again"));
        standing.observe(&[seen("other", Some("2"))]);
        assert_eq!(
            standing.why_not_leading(false, &health),
            "other holds the Lease"
        );
        assert_eq!(standing.why_not_leading(true, &health), "stopping");
    }
}
