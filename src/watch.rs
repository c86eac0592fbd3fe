//! Lists and watches.
