//! What a kernel becomes for one launch: a tape of steps over scalar registers, a per-thread arena for blocks,
//! and fused groups of elementwise work.

use super::group::FusedGroup;
use super::registers::SReg;
use super::simd::{DotKernel, Kernel, ReduceKernel, ScanKernel};
use super::views::Dims;
use crate::ir::{AtomicOp, Loc};
use crate::lane::Lane;
use crate::types::{Elem, Type};

/// A strided view of arena lanes: byte offset and strides in lanes.
#[derive(Debug, Clone)]
pub(crate) struct ArenaView {
    pub(crate) offset: usize,
    pub(crate) dims: Dims,
}

#[derive(Debug, Clone)]
pub(crate) struct AxisSizes {
    pub(crate) outer: usize,
    pub(crate) size: usize,
    pub(crate) inner: usize,
}

/// Which of two lanes is the smaller one: a lane of 64 bits may be unsigned.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LaneOrder {
    pub(crate) lane: Lane,
    pub(crate) unsigned: bool,
}

impl LaneOrder {
    pub(crate) fn of(ty: &Type) -> LaneOrder {
        LaneOrder { lane: Lane::of(ty), unsigned: ty.num() == Some(Elem::U64) }
    }
}

#[derive(Debug, Clone)]
pub(crate) enum Step {
    Scalar {
        f: Kernel,
        dst: SReg,
        a: SReg,
        b: SReg,
        c: SReg,
    },
    /// Wrapping arithmetic on integer registers.
    Int {
        op: IntOp,
        dst: SReg,
        a: SReg,
        b: SReg,
    },
    /// Clamped bound of a comparison `base + stride * index <op> 0`.
    Bound {
        dst: SReg,
        base: SReg,
        stride: i64,
        kind: BoundKind,
        size: i64,
    },
    /// Stops when an affine block leaves its integer type.
    Guard {
        base: SReg,
        low: i64,
        high: i64,
        elem: Elem,
        loc: Loc,
    },
    LoadScalar {
        dst: SReg,
        ptr: SReg,
        mask: Option<SReg>,
        other: Option<SReg>,
        elem: Elem,
        buffer: Option<usize>,
        loc: Loc,
    },
    StoreScalar {
        ptr: SReg,
        value: SReg,
        mask: Option<SReg>,
        elem: Elem,
        buffer: Option<usize>,
        loc: Loc,
    },
    Group(Box<FusedGroup>),
    /// A scalar from the arena.
    Extract {
        dst: SReg,
        from: usize,
        lane: Lane,
    },
    Fill {
        to: usize,
        from: SReg,
        lane: Lane,
        lanes: usize,
    },
    CopyFull {
        to: usize,
        from: usize,
        bytes: usize,
    },
    CopyView {
        to: ArenaView,
        from: ArenaView,
        size: usize,
    },
    Reduce {
        f: ReduceKernel,
        to: usize,
        from: usize,
        axis: AxisSizes,
    },
    Scan {
        f: ScanKernel,
        to: usize,
        from: usize,
        axis: AxisSizes,
        reverse: bool,
    },
    /// Applies a one-operand kernel to a whole block, in place by way of a copy.
    MapFull {
        f: Kernel,
        to: usize,
        from: usize,
        lanes: usize,
    },
    ArgReduce {
        value: usize,
        index: usize,
        from: usize,
        order: LaneOrder,
        axis: AxisSizes,
        max: bool,
        tie_left: bool,
    },
    Dot {
        f: DotKernel,
        c: usize,
        a: usize,
        b: usize,
        batch: usize,
        m: usize,
        n: usize,
        k: usize,
        lane: Lane,
    },
    Sort {
        block: usize,
        order: LaneOrder,
        rows: usize,
        size: usize,
        descending: bool,
    },
    Histogram {
        to: usize,
        bins: usize,
        from: usize,
        lane: Lane,
        lanes: usize,
        mask: Option<usize>,
    },
    Gather {
        to: usize,
        from: usize,
        index: usize,
        index_lane: Lane,
        size: usize,
        axis: AxisSizes,
        source: usize,
        loc: Loc,
    },
    Combine(Box<Combine>),
    Atomic(Box<Atomic>),
    Assert {
        from: usize,
        lanes: usize,
        message: String,
        loc: Loc,
    },
    If {
        condition: SReg,
        then: Vec<Step>,
        otherwise: Vec<Step>,
    },
    For {
        low: SReg,
        high: SReg,
        step: SReg,
        index: SReg,
        body: Vec<Step>,
        loc: Loc,
    },
    While {
        condition_steps: Vec<Step>,
        condition: SReg,
        body: Vec<Step>,
        loc: Loc,
    },
    Move {
        dst: SReg,
        src: SReg,
    },
}

/// Index arithmetic common enough to need no kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IntOp {
    Add,
    Sub,
    Mul,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BoundKind {
    /// First index where the form is at least zero.
    FirstNonNegative,
    /// First index where the form is greater than zero.
    FirstPositive,
    /// The index where the form is zero, or the size if there is none.
    Zero,
    /// The index after the zero, or zero if there is none.
    AfterZero,
}

/// A reduction or scan whose combine function is a region of scalar steps.
#[derive(Debug, Clone)]
pub(crate) struct Combine {
    pub(crate) inputs: Vec<(usize, Lane)>,
    pub(crate) outputs: Vec<(usize, Lane)>,
    pub(crate) accumulators: Vec<SReg>,
    pub(crate) elements: Vec<SReg>,
    pub(crate) results: Vec<SReg>,
    pub(crate) body: Vec<Step>,
    pub(crate) axis: AxisSizes,
    pub(crate) scan: bool,
    pub(crate) reverse: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Atomic {
    pub(crate) op: Option<AtomicOp>,
    pub(crate) elem: Elem,
    pub(crate) lane: Lane,
    pub(crate) lanes: usize,
    /// `i64` addresses.
    pub(crate) ptr: usize,
    pub(crate) value: usize,
    /// The value to compare with, for compare-and-swap.
    pub(crate) compare: Option<usize>,
    pub(crate) mask: Option<usize>,
    pub(crate) old: usize,
    pub(crate) buffer: Option<usize>,
    pub(crate) loc: Loc,
}

/// A kernel ready to run for one launch.
#[derive(Debug)]
pub(crate) struct Tape {
    pub(crate) steps: Vec<Step>,
    /// Initial register contents; the first three registers are the program id.
    pub(crate) image: Vec<u64>,
    pub(crate) arena_bytes: usize,
    pub(crate) slots: usize,
    /// Loads and stores of all groups.
    pub(crate) accesses: usize,
    /// The buffers of the parameters: all that a pointer of this launch may reach.
    pub(crate) buffers: Vec<usize>,
    pub(crate) has_atomics: bool,
}
