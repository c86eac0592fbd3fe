//! The scheduler's lease: one object of `coordination.k8s.io`, whose version is what elections see.

use super::{Answer, ApiServer, Conflict, Version};
use gpu_batch_policies::facts::UnixMs;
use gpu_batch_policies::lease::{LeaseCall, LeaseSeen};

/// The lease as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lease {
    version: Version,
    holder: Box<str>,
    transitions: u32,
    /// How long the lease is valid, in whole seconds, at least one.
    duration_s: u64,
    renewed_ms: UnixMs,
}

impl Lease {
    fn seen(&self) -> LeaseSeen {
        LeaseSeen {
            resource_version: Some(self.version.to_string().into()),
            holder: self.holder.clone(),
            transitions: self.transitions,
            duration_ms: self.duration_s * 1_000,
        }
    }
}

impl ApiServer {
    /// Reads, creates (POST) or replaces (PUT) the lease. If there is no lease, a PUT creates it,
    /// whatever version the PUT expects: Kubernetes allows that for leases.
    pub(super) fn handle_lease(&mut self, request: &LeaseCall, now_ms: UnixMs) -> Answer {
        let LeaseCall::Write {
            resource_version,
            holder,
            transitions,
            acquire: _,
            duration_ms,
        } = request
        else {
            let lease = self.lease.as_ref();
            return lease.map_or(Answer::NotFound, |lease| Answer::Lease(lease.seen()));
        };
        if let Some(lease) = &self.lease {
            let Some(expected) = resource_version else {
                return Answer::AlreadyExists;
            };
            let Ok(expected) = expected.parse::<Version>() else {
                return Answer::Invalid("metadata.resourceVersion is not a version");
            };
            if expected != lease.version {
                return Answer::Conflict(Conflict::Version);
            }
        }
        let mut new = Lease {
            version: 0,
            holder: holder.clone(),
            transitions: *transitions,
            duration_s: duration_ms.div_ceil(1_000).max(1),
            renewed_ms: now_ms,
        };
        let version = match &self.lease {
            Some(old)
                if (Lease {
                    version: 0,
                    ..old.clone()
                }) == new =>
            {
                old.version
            }
            _ => {
                self.revision += 1;
                self.revision
            }
        };
        new.version = version;
        let seen = new.seen();
        self.lease = Some(new);
        Answer::Lease(seen)
    }

    /// Deletes the lease, as an administrator might.
    pub fn delete_lease(&mut self) {
        if self.lease.take().is_some() {
            self.revision += 1;
        }
    }
}
