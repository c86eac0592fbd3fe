//! What people see of gangs, queues, plans and replays: tables, and the same content as JSON.
//!
//! All of it is made of copies that the engine has given away, so that the pages of the scheduler
//! and the commands of the program agree.

pub mod explain;
pub(crate) mod gangs;
pub(crate) mod plan;
pub(crate) mod queues;
pub(crate) mod replay;
pub(crate) mod table;
