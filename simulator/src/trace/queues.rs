//! The queues of a trace: `vc,node num`, the nodes that each virtual cluster owns.

use crate::input::{InputError, Table};
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;

#[cfg(test)]
mod tests;

/// The columns of the file, in the order in which [`crate::generate`] writes them.
pub const COLUMNS: [&str; 2] = ["vc", "node num"];

const NAME: usize = 0;
const NODES: usize = 1;

/// The most nodes of one queue, and of all queues together.
pub const NODES_MAX: u32 = 1_000_000;

/// A queue, which the source calls a virtual cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceQueue {
    /// The name of the queue, unique in its file.
    pub name: String,
    /// The nodes that the queue owns; 0 if it only borrows.
    pub nodes: u32,
}

/// The nodes of all queues together.
#[must_use]
pub fn nodes(queues: &[TraceQueue]) -> u64 {
    queues.iter().map(|queue| u64::from(queue.nodes)).sum()
}

/// Reads a file, gzip or not. The queues are in the order of the file.
///
/// # Errors
/// If the file is broken, has no queues or no nodes, names a queue twice, or has more than
/// [`NODES_MAX`] nodes.
pub fn read(path: &Path) -> Result<Vec<TraceQueue>, InputError> {
    of_table(Table::open(path, &COLUMNS, &[])?)
}

/// Writes queues in the layout that [`read`] reads.
///
/// # Errors
/// If the file cannot be written.
pub fn write(queues: &[TraceQueue], file: impl Write) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(file);
    writer.write_record(COLUMNS)?;
    for queue in queues {
        writer.write_record([&queue.name, &queue.nodes.to_string()])?;
    }
    writer.flush()
}

fn of_table(mut table: Table) -> Result<Vec<TraceQueue>, InputError> {
    let mut queues = Vec::new();
    let mut names = BTreeSet::new();
    let mut left = NODES_MAX;
    while let Some(row) = table.next_row()? {
        let name = row.name(NAME)?.to_owned();
        if !names.insert(name.clone()) {
            return Err(row.error(NAME, format!("{name:?} occurs twice")));
        }
        let nodes = row.whole(NODES, NODES_MAX)?;
        let Some(rest) = left.checked_sub(nodes) else {
            let message = format!("all queues together have over {NODES_MAX} nodes");
            return Err(row.error(NODES, message));
        };
        left = rest;
        queues.push(TraceQueue { name, nodes });
    }
    if queues.is_empty() {
        return Err(InputError::of_file(table.file(), "has no queues"));
    }
    if left == NODES_MAX {
        return Err(InputError::of_file(table.file(), "no queue has a node"));
    }
    Ok(queues)
}
