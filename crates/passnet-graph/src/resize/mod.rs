//! The same graph at other sizes.
//!
//! [`find_symbols`] says which dimensions of the inputs can change, [`Generalised`] makes the sizes written in the code
//! follow them, [`with_sizes`] gives the graph for chosen values, checked by inference; [`inherited_symbols`] says which
//! dimensions of a piece change with its model.

mod generalise;
mod literals;
mod symbols;

pub use generalise::Generalised;
pub use symbols::{NoVariant, find_symbols, inherited_symbols, records_symbols, with_sizes};

/// A value for each symbol, in the order of the symbols.
pub type Assignment = Vec<(String, i64)>;
