//! Which tensor function an operation of the table is. One file per family; an operation that no file knows is unsupported.

mod args;
mod contraction;
mod creation;
mod effect;
mod fusible;
mod indexing;
mod linalg;
mod loss;
mod movement;
mod normalisation;
mod pointwise;
mod python;
mod recurrent;
mod reduction;
mod sampling;
mod scalar;
mod subscript;
mod transform;
mod view;
pub(crate) mod vmap;

pub(crate) use args::{Args, Context};
pub(crate) use effect::ASSERTION;
pub(crate) use fusible::{Fusible, classify};

use crate::engine::Value;
use crate::native::error::Result;
use passnet_graph::ops::Op;

/// Computes a call's result from its arguments.
pub(crate) type OpFunction = fn(&Args<'_>) -> Result<Value>;

/// The function that runs an operation, if there is one.
pub(crate) fn function_of(op: Op) -> Option<OpFunction> {
    pointwise::function_of(op)
        .or_else(|| reduction::function_of(op))
        .or_else(|| view::function_of(op))
        .or_else(|| movement::function_of(op))
        .or_else(|| contraction::function_of(op))
        .or_else(|| linalg::function_of(op))
        .or_else(|| recurrent::function_of(op))
        .or_else(|| normalisation::function_of(op))
        .or_else(|| sampling::function_of(op))
        .or_else(|| loss::function_of(op))
        .or_else(|| transform::function_of(op))
        .or_else(|| indexing::function_of(op))
        .or_else(|| creation::function_of(op))
        .or_else(|| scalar::function_of(op))
        .or_else(|| effect::function_of(op))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Operations that graphs may hold and that this engine refuses. Whoever adds one to the table decides which it is.
    const UNSUPPORTED: &[&str] = &[];

    #[test]
    fn every_other_operation_has_a_function() {
        let without = Op::all().filter(|op| function_of(*op).is_none());
        assert_eq!(without.map(Op::name).collect::<Vec<_>>(), UNSUPPORTED);
    }
}
