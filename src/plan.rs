//! What the scheduler would do with objects from files.
