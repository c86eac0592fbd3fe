//! The configuration that is in force, for whoever asks.

use super::ConfigurationFile;
use std::sync::{Mutex, PoisonError};

/// The configuration in force, and why the file is not, if it is not.
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

    /// The file in force, and what is wrong with the newer one that is not.
    pub(crate) fn get(&self) -> (ConfigurationFile, Option<String>) {
        let state = self.lock().clone();
        (state.file, state.refused)
    }

    pub(super) fn accept(&self, file: ConfigurationFile) {
        *self.lock() = State {
            file,
            refused: None,
        };
    }

    pub(super) fn refuse(&self, message: String) {
        self.lock().refused = Some(message);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
