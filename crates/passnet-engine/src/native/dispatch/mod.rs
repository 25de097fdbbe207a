//! Which tensor function an operation of the table is. One file per family; an operation that no file knows is unsupported.

mod args;
mod contraction;
mod creation;
mod effect;
mod fusible;
mod indexing;
mod movement;
mod normalisation;
mod pointwise;
mod python;
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
pub(crate) type Kernel = fn(&Args<'_>) -> Result<Value>;

/// The function that runs an operation, if there is one.
pub(crate) fn kernel(op: Op) -> Option<Kernel> {
    pointwise::kernel(op)
        .or_else(|| reduction::kernel(op))
        .or_else(|| view::kernel(op))
        .or_else(|| movement::kernel(op))
        .or_else(|| contraction::kernel(op))
        .or_else(|| normalisation::kernel(op))
        .or_else(|| sampling::kernel(op))
        .or_else(|| transform::kernel(op))
        .or_else(|| indexing::kernel(op))
        .or_else(|| creation::kernel(op))
        .or_else(|| scalar::kernel(op))
        .or_else(|| effect::kernel(op))
}
