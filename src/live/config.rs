//! The configuration file: what an administrator may set, in one typed value.
//!
//! The file's fields, their documentation and their defaults stand in [`file`]; [`check`] turns
//! them into a [`Configuration`] or lists everything that is wrong with them. [`follow`] takes over
//! changes of the file while the scheduler runs.

mod changes;
mod check;
mod file;
mod follow;
mod process;
mod read;

pub(crate) use check::numbers;
pub(crate) use file::print_defaults;
pub use file::{
    ConfigurationFile, ConsolidationFile, EvictionsFile, ExtenderFile, HealthFile, HealthRuleFile,
    InFlightFile, LeaderElectionFile, LogFile, PreferencesFile, TimeSlicingFile,
};
pub(crate) use follow::{Follower, InForce};
pub(crate) use process::is_of_this_machine;

use super::log::LogFormat;
use crate::extender::ExtenderSettings;
use crate::kube::convert::ClusterPreferences;
use crate::kube::execute::LeaseName;
use gpu_batch_policies::settings::Settings;
use std::fmt;
use std::net::SocketAddr;
use std::path::Path;

/// Everything that can be configured, read and checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Configuration {
    /// The file as it is written, with defaults for the keys that it leaves out.
    pub file: ConfigurationFile,
    /// What the engine decides by.
    pub settings: Settings,
    /// Pods whose `spec.schedulerName` is this are ours.
    pub scheduler_name: String,
    /// Where health, readiness and metrics are served.
    pub serve_address: SocketAddr,
    /// What the cluster adds to the preferences that pods state.
    pub preferences: ClusterPreferences,
    /// How kube-scheduler reaches its extender; `None`: it has none.
    pub extender: Option<ExtenderSettings>,
    /// The lease that leaders hold; not used where leadership is assumed.
    pub lease: LeaseName,
    /// How log lines are written.
    pub log_format: LogFormat,
    /// Which log lines are written, as directives of `tracing-subscriber`'s `EnvFilter`.
    pub log_level: String,
}

/// A configuration that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidConfiguration {
    /// The name of the file, for messages.
    pub file: String,
    /// The mistakes: each with its key and what is allowed, or with the place in the text.
    pub problems: Vec<String>,
}

impl fmt::Display for InvalidConfiguration {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} cannot be used:", self.file)?;
        for problem in &self.problems {
            write!(formatter, "\n{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for InvalidConfiguration {}

impl Configuration {
    /// Reads a file; without a file, everything has its default.
    ///
    /// # Errors
    /// Everything that is wrong with the file, with the keys and what is allowed.
    pub fn load(path: Option<&Path>) -> Result<Self, InvalidConfiguration> {
        let Some(path) = path else {
            return Self::of(&ConfigurationFile::default(), "the default configuration");
        };
        let name = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(text) => Self::parse(&text, &name),
            Err(error) => Err(InvalidConfiguration {
                file: name,
                problems: vec![read::unreadable(&error)],
            }),
        }
    }

    /// Reads the text of a file; `name` is what messages call the file.
    ///
    /// # Errors
    /// Everything that is wrong with the text, with the keys and what is allowed.
    pub fn parse(text: &str, name: &str) -> Result<Self, InvalidConfiguration> {
        let invalid = |problems| InvalidConfiguration {
            file: name.to_owned(),
            problems,
        };
        let (file, mut problems) = read::read(text).map_err(invalid)?;
        match Self::of(&file, name) {
            checked if problems.is_empty() => checked,
            Ok(_) => Err(invalid(problems)),
            Err(more) => {
                problems.extend(more.problems);
                Err(invalid(problems))
            }
        }
    }

    /// Checks a file that has been read; `name` is what messages call the file.
    ///
    /// # Errors
    /// Everything that is wrong with the file, with the keys and what is allowed.
    pub fn of(file: &ConfigurationFile, name: &str) -> Result<Self, InvalidConfiguration> {
        check::check(file).map_err(|problems| InvalidConfiguration {
            file: name.to_owned(),
            problems,
        })
    }
}

#[cfg(test)]
mod tests;
