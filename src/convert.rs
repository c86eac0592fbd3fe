//! From Kubernetes objects to facts: total functions.
