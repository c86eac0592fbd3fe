//! What a gang is and how far it has come.
//!
//! Everything here follows from the cluster as it is known: what a gang asks for (`spec`), which of
//! its members have a place (`counts`, `places`), how far it has come and what follows for one that
//! is below its minimum (`progress`, `lifecycle`), which members it wants next (`wanted`,
//! `demand`), and what it waits for as long as no node has to be looked at (`judge`). Nothing is
//! planned here, and nothing is told.

pub(crate) mod accounts;
pub(crate) mod counts;
pub(crate) mod demand;
pub(crate) mod failed_cards;
pub(crate) mod first_look;
pub(crate) mod judge;
pub(crate) mod lifecycle;
pub(crate) mod near;
pub(crate) mod needed;
pub(crate) mod places;
pub(crate) mod progress;
pub(crate) mod protected;
pub(crate) mod request;
pub(crate) mod spec;
pub(crate) mod sub_groups;
pub(crate) mod wait;
pub(crate) mod wanted;
