//! How an access of a group runs in one program.

/// What is known about an access before its group runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Prepared {
    /// Lane 0, for affine pointers.
    pub(super) base: *mut u8,
    pub(super) address: i64,
    pub(super) buffer: usize,
    pub(super) mode: AccessMode,
    /// No lane is masked off.
    pub(super) whole: bool,
    /// Bytes from lane 0 on when the lanes lie one behind the other, else 0.
    pub(super) contiguous: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AccessMode {
    /// No lane is on.
    Empty,
    /// Affine, in bounds for all lanes that are on.
    Affine,
    /// Affine, contiguous, all lanes on, aligned, stored as lanes are: no copy is needed.
    Direct,
    /// Each lane is checked on its own.
    PerLane,
}
