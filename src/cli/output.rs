//! What commands print, and the folder that `--out` names.

use super::Failure;
use anyhow::Context;
use gpu_batch_simulator::report::Report;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Output {
    /// For people
    Table,
    /// For programs
    Json,
}

/// Prints a result. It is no error if the reader closes the pipe, as `head` does.
pub(super) fn print(text: &str) -> Result<(), Failure> {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => Ok(result.context("failed to print")?),
    }
}

/// A folder for the files of one result.
#[derive(Debug)]
pub(super) struct Results {
    folder: PathBuf,
}

impl Results {
    /// Makes the folder if it does not exist. Called before the work, so that a wrong name is told
    /// at once and not after a long wait.
    ///
    /// # Errors
    /// [`Failure::BadInput`] if the folder cannot be made.
    pub(super) fn make(folder: &Path) -> Result<Self, Failure> {
        let made = std::fs::create_dir_all(folder);
        made.with_context(|| failed(folder))
            .map_err(Failure::BadInput)?;
        let folder = folder.to_owned();
        Ok(Self { folder })
    }

    /// Writes one file.
    ///
    /// # Errors
    /// [`Failure::BadInput`] if the file cannot be created, [`Failure::Failed`] if writing fails
    /// later.
    pub(super) fn write(
        &self,
        name: &str,
        content: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
    ) -> Result<(), Failure> {
        let path = self.folder.join(name);
        let file = File::create(&path).with_context(|| failed(&path));
        let mut file = BufWriter::new(file.map_err(Failure::BadInput)?);
        let written = content(&mut file).and_then(|()| file.flush());
        Ok(written.with_context(|| failed(&path))?)
    }

    /// Writes one file, or removes what an earlier run has left of this name, if the file would say
    /// nothing about this one.
    ///
    /// # Errors
    /// As [`Results::write`], or [`Failure::BadInput`] if an old file cannot be removed.
    pub(super) fn write_if(
        &self,
        says_something: bool,
        name: &str,
        content: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
    ) -> Result<(), Failure> {
        if says_something {
            return self.write(name, content);
        }
        let path = self.folder.join(name);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                let error = anyhow::Error::new(error).context(failed(&path));
                Err(Failure::BadInput(error))
            }
            _ => Ok(()),
        }
    }

    /// Writes `report.html` and `report.json`.
    ///
    /// # Errors
    /// As [`Results::write`].
    pub(super) fn write_report(&self, report: &Report) -> Result<(), Failure> {
        self.write("report.html", |file| {
            file.write_all(report.to_html().as_bytes())
        })?;
        self.write("report.json", |file| {
            file.write_all(report.to_json().as_bytes())
        })
    }
}

fn failed(path: &Path) -> String {
    format!("failed to write {}", path.display())
}
