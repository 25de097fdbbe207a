//! Variants of a graph: the same ops with other sizes.
//!
//! [`roles`] guesses what each symbolic dimension means, [`reify`] gives it nine values.

pub mod reify;
pub mod roles;
