//! The entries, filed by family.

mod contraction;
mod creation;
mod effect;
mod indexing;
mod linalg;
mod loss;
mod movement;
mod normalisation;
mod pointwise;
mod recurrent;
mod reduction;
mod sampling;
mod scalar;
mod transform;
mod view;

use super::{Alias, Class, Op, OpSpec};

pub(super) static FAMILIES: &[&[OpSpec]] = &[
    pointwise::ARITHMETIC,
    pointwise::UNARY,
    pointwise::ACTIVATIONS,
    pointwise::COMPARISONS,
    reduction::SPECS,
    loss::SPECS,
    transform::SPECS,
    view::SPECS,
    movement::SPECS,
    contraction::SPECS,
    linalg::SPECS,
    recurrent::SPECS,
    normalisation::SPECS,
    sampling::SPECS,
    indexing::SPECS,
    creation::SPECS,
    scalar::SPECS,
    effect::SPECS,
];

/// Keeps an entry to two or three lines.
const fn entry(
    op: Op,
    class: Class,
    alias: Alias,
    signatures: &'static [&'static str],
    spellings: &'static [&'static str],
) -> OpSpec {
    OpSpec { op, class, alias, signatures, spellings }
}
