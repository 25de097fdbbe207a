//! Variants of a graph: the same ops with other sizes and dtypes.
//!
//! `roles` guesses what the dimensions that can change mean, `reify` gives them nine values,
//! `passnet_graph::resize` makes the code follow. `dtypes` changes element types. [`run`] does it to a store.

mod dtypes;
mod reify;
mod roles;
pub mod run;
