//! Measures every figure that the documentation claims.
