//! How operations are classed.

use serde::Serialize;

/// What kind of work an operation does; fusion and reports group by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// One result element from the elements at the same (broadcast) place.
    Pointwise,
    /// Folds one or more dimensions.
    Reduction,
    /// Running fold along a dimension.
    Scan,
    /// New metadata over the same memory.
    View,
    /// Copies elements to other places (cat, pad, roll, repeat).
    Movement,
    /// Sums of products: matrix multiplication, convolution.
    Contraction,
    /// Batch, layer, group and instance normalisation.
    Normalisation,
    /// Maximum and average over windows.
    Pooling,
    /// Whole attention in one call.
    Attention,
    /// Reads or writes by computed index.
    Indexing,
    /// Interpolation and sampling grids.
    Resampling,
    /// Fourier transforms, sorting and decompositions: not expressible as a loop over elements.
    Transform,
    /// New tensors that no input flows into.
    Creation,
    /// Draws from the random generator.
    Random,
    /// Works on Python numbers and sizes, not on tensors.
    Scalar,
    /// Called for what it does, not for what it returns.
    Effect,
}

/// What a result shares with the first argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Alias {
    /// Nothing: the result is new memory.
    Fresh,
    /// The result (or each element of it) is a view of the first argument.
    View,
    /// A view or the argument itself where that is possible, a copy otherwise.
    MayView,
}

impl Class {
    /// As listings of graphs write it.
    pub const fn name(self) -> &'static str {
        match self {
            Class::Pointwise => "pointwise",
            Class::Reduction => "reduction",
            Class::Scan => "scan",
            Class::View => "view",
            Class::Movement => "movement",
            Class::Contraction => "contraction",
            Class::Normalisation => "normalisation",
            Class::Pooling => "pooling",
            Class::Attention => "attention",
            Class::Indexing => "indexing",
            Class::Resampling => "resampling",
            Class::Transform => "transform",
            Class::Creation => "creation",
            Class::Random => "random",
            Class::Scalar => "scalar",
            Class::Effect => "effect",
        }
    }
}
