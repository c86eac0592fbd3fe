//! One command, one request, one outcome.
