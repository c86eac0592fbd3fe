//! A local control plane.
