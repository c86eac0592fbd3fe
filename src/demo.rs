//! A local cluster with fake GPU nodes and a stream of gangs.
