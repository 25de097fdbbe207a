//! Names of what a tape computes with.

use smallvec::SmallVec;

/// A scalar register.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SReg(pub(crate) u32);

/// A block inside a group: one chunk of it exists at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct VReg(pub(crate) u16);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Src {
    V(VReg),
    S(SReg),
    None,
}

/// Bounds of a box mask per dimension: lanes in `[low, high)` are on.
pub(crate) type Bounds = SmallVec<[(Option<SReg>, Option<SReg>); 4]>;
