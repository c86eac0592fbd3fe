//! Kubernetes objects, decoded only as far as they are used.
