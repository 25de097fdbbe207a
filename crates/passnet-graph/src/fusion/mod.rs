//! Which operations TorchInductor would compute in one kernel, predicted without a GPU.
//!
//! [`kernel_counts`] gives the kernels launched for every prefix of a graph: where the count does not rise, an
//! operation was fused into what stands before it. [`groups`] says which operations share a kernel.
//!
//! The rules, in the order in which they act (default settings, inference, one GPU):
//!
//! - Views, sizes, tuple elements, dropout outside training and casts to the same type cost nothing. A view
//!   call whose strides do not allow a view is a loop that copies.
//! - Pointwise operations, gathers, concatenations, padding, creation and pooling are loops over their result.
//!   A reduction, softmax or norm is a fold of `inner` elements for each of `outer` results.
//! - A loop joins the kernels of what it reads at the same place, if the iteration spaces fit (equal, or a loop
//!   over what a fold reads or yields) and nothing in between has to run first. It also joins loops of the same
//!   space that read the same buffer.
//! - A cheap producer in another space (a broadcast mask, a slice) is computed inside its reader; its own kernel
//!   is launched only while somebody else needs the value. Folds, pooled values and long expressions are stored.
//! - Matrix products, convolutions, attention, sorting and Fourier transforms are library calls: one kernel each
//!   and no fusion. A product copies operands whose batch dimensions do not merge; a bias added to a product
//!   costs nothing as long as nothing else is computed there; the bias of a convolution is a loop.
//! - A prefix returns what the rest of the graph reads, so values that are still to be read are stored. That
//!   costs a kernel only if no launched kernel computes them anyway.
//! - Convolutions run with channels last when that is estimated to be faster: then inputs that nobody computed
//!   here and weights are copied (one kernel each), and a convolution's result that is returned is copied back.
//!   The next pointwise operation takes that copy's place, which is why a fusible range of published data
//!   begins with the convolution: `conv` 4 kernels, `conv, batch_norm` 4, `conv, batch_norm, relu` 4.
//! - [`Settings::reorder_loops`] (on since PyTorch 2.7): a kernel may store a value in a second layout.
//!   Without it a value that a convolution reads and the prefix returns is copied by a kernel of its own, and
//!   so is an operation after a long expression. The published ranges of resnet18 were recorded without.
//! - Folds with few results and many elements are done in two kernels; random numbers need one for the seeds.
//!
//! Not modelled: kernels that libraries launch beyond the first, benchmarks that change a choice at compile
//! time, layouts other than channels last, memory limits.

mod kernels;
mod lifetimes;
mod walk;
mod work;

#[cfg(test)]
mod tests;

use crate::graph::Graph;
use crate::infer::Inference;
use walk::Walk;

/// Choices of the compiler that the counts depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Whether a kernel may change the order of its loops to take in a neighbour.
    pub reorder_loops: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { reorder_loops: true }
    }
}

/// What runs a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupKind {
    /// Loops over elements without a sum.
    Pointwise,
    /// Loops with a sum or another reduction.
    Reduction,
    /// A call of a library that nothing joins, such as a matrix product.
    Library,
}

/// Operations that run as one kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelGroup {
    /// What kind of kernel it becomes.
    pub kind: GroupKind,
    /// Op indices, ascending; a view belongs to no group.
    pub ops: Vec<usize>,
    pub(crate) bytes_read: i64,
    pub(crate) bytes_written: i64,
}

/// The kernels launched for each prefix: entry `k` belongs to the first `k + 1` operations.
pub fn kernel_counts(graph: &Graph, types: &Inference) -> Vec<u32> {
    kernel_counts_with(graph, types, Settings::default())
}

/// As [`kernel_counts`], by other settings than TorchInductor's defaults.
pub fn kernel_counts_with(graph: &Graph, types: &Inference, settings: Settings) -> Vec<u32> {
    let plan = lifetimes::plan(graph, types);
    let mut walk = Walk::new(graph, types, &plan, settings);
    (0..plan.steps.len()).map(|op| walk.step(op)).collect()
}

/// The kernels of the whole graph, by their first operation. Copies between layouts are not among them.
pub fn groups(graph: &Graph, types: &Inference) -> Vec<KernelGroup> {
    let plan = lifetimes::plan(graph, types);
    let mut walk = Walk::new(graph, types, &plan, Settings::default());
    for op in 0..plan.steps.len() {
        walk.step(op);
    }
    walk.into_groups()
}
