//! Variants of a graph: the same ops with other sizes and dtypes.
//!
//! [`symbols`] finds the dimensions that can change, [`roles`] guesses what each means, [`reify`] gives them nine
//! values, [`generalise`] makes the code follow. [`dtypes`] changes element types. [`run`] does it to a store.

pub mod dtypes;
pub mod generalise;
mod literals;
pub mod reify;
pub mod roles;
pub mod run;
pub mod symbols;
