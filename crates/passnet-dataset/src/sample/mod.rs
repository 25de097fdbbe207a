//! From pieces to tasks: alike pieces share a bucket, buckets give groups, a group is one task (a sample).
//!
//! Everything here is a function of the members' content: two builds of one corpus agree on every identifier.

pub mod buckets;
pub(crate) mod groups;
pub mod identity;
pub mod least;
pub mod sides;
pub(crate) mod split;
pub mod tasks;
pub mod withhold;
