//! What has become of a buffer.

use crate::fusion::kernels::KernelId;
use crate::fusion::lifetimes::BufferId;
use smallvec::SmallVec;

/// What has become of a buffer.
#[derive(Debug, Clone, Default)]
pub(super) struct Buffer {
    pub(super) kernel: Option<KernelId>,
    /// Stored for good: someone other than the prefix's return needs it.
    pub(super) stored: bool,
    pub(super) live: bool,
    /// Must not be computed twice: folds and pooled values.
    pub(super) opaque: bool,
    pub(super) reads: u32,
    pub(super) weight: u32,
    /// What a reader reads in its place if it computes it itself, and whether at the same place.
    pub(super) sources: SmallVec<[(BufferId, bool); 4]>,
    /// Kernels that such a reader has to wait for, beyond those of its sources.
    pub(super) after: SmallVec<[KernelId; 1]>,
    /// Kernels that read it, newest last.
    pub(super) readers: SmallVec<[KernelId; 2]>,
    pub(super) channels_last: bool,
    /// A convolution's result that nothing has computed on yet.
    pub(super) raw: bool,
    pub(super) read_by_convolution: bool,
    /// Comes after an expression that was too long to be inlined.
    pub(super) after_long: bool,
    /// The product of two matrices.
    pub(super) product: bool,
    pub(super) copied_to_channels_last: bool,
    /// Kernels that a fold over it takes more, with channels last, unless the prefix returns it.
    pub(super) cost_when_dead: u32,
}
