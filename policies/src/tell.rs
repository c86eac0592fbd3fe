//! What people see of gangs. Nothing here decides anything.

pub(crate) mod gang;
pub(crate) mod told;
pub(crate) mod why;
