//! Whether there is a place for a gang: everything that proposes changes.

pub(crate) mod attempt;
pub(crate) mod bounds;
pub(crate) mod order;
pub(crate) mod refusal;
pub(crate) mod selection;
pub(crate) mod sub_groups;
pub(crate) mod waiting;
