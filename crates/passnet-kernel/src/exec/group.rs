//! A fused group: elementwise work on blocks of one shape, done chunk by chunk in the first-level cache.

use super::registers::{Bounds, SReg, Src, VReg};
use super::simd::{Kernel, LoadRow, ReduceKernel, StoreRow};
use super::views::Dims;
use crate::ir::{BinaryOp, CmpOp, Loc, ReduceOp, UnaryOp};
use crate::lane::Lane;
use crate::types::Elem;
use smallvec::SmallVec;

/// Lanes a group processes at most before it moves on.
pub(crate) const CHUNK: usize = 1024;

#[derive(Debug, Clone)]
pub(crate) enum PtrForm {
    /// Address of lane 0 and byte strides.
    Affine {
        base: SReg,
        dims: Dims,
    },
    Lanes(VReg),
}

#[derive(Debug, Clone)]
pub(crate) enum MaskForm {
    All,
    Uniform(SReg),
    Box(Bounds),
    Lanes(VReg),
}

/// One load or store of a group.
#[derive(Debug, Clone)]
pub(crate) struct Access {
    pub(crate) ptr: PtrForm,
    pub(crate) mask: MaskForm,
    /// What a masked-off lane reads: a scalar, lanes, or zero.
    pub(crate) other: Src,
    pub(crate) elem: Elem,
    pub(crate) lane: Lane,
    pub(crate) load: LoadRow,
    pub(crate) store: StoreRow,
    pub(crate) is_store: bool,
    /// First byte and byte after the last from lane 0, all lanes on; only for affine pointers.
    pub(crate) span: (i64, i64),
    /// Whether the lanes lie one behind the other.
    pub(crate) contiguous: bool,
    /// The only buffer the pointer may reach, where its parameter is known.
    pub(crate) buffer: Option<usize>,
    /// What is known of pointers that are taken lane by lane.
    pub(crate) rows: Option<Box<RowForm>>,
    pub(crate) loc: Loc,
}

/// Addresses that lie in the arena, one for each row, to which all lanes of the row have the same distances.
#[derive(Debug, Clone)]
pub(crate) struct RowForm {
    pub(crate) at: usize,
    /// Bytes from one address to the next.
    pub(crate) step: usize,
    /// What is added to all of them.
    pub(crate) base: SReg,
    /// The distances.
    pub(crate) dims: Dims,
    pub(crate) mask: MaskForm,
}

/// How long a kernel takes, roughly: what memory can deliver meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cost {
    /// A few instructions for sixteen lanes.
    Light,
    /// A division or square root.
    Middle,
    /// An elementary function.
    Heavy,
}

impl Cost {
    /// Lanes between two requests to memory.
    pub(crate) fn piece(self) -> usize {
        match self {
            Cost::Light => CHUNK,
            Cost::Middle => 256,
            Cost::Heavy => 128,
        }
    }
}

/// What a kernel does to `f32` lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LaneOp {
    Unary(UnaryOp),
    Binary(BinaryOp),
    Compare(CmpOp),
    Select,
    Fma,
    Sigmoid,
    RoundF16,
    RoundBF16,
}

#[derive(Debug, Clone)]
pub(crate) enum Micro {
    Map {
        f: Kernel,
        /// What the kernel does, where it works on `f32` lanes.
        op: Option<LaneOp>,
        dst: VReg,
        a: Src,
        b: Src,
        c: Src,
        cost: Cost,
    },
    /// An affine block as lanes.
    Iota {
        dst: VReg,
        base: SReg,
        dims: Dims,
    },
    /// Quotient or remainder of an affine block by one number.
    Divided {
        dst: VReg,
        base: SReg,
        dims: Dims,
        divisor: SReg,
        quotient: bool,
    },
    /// Lanes of `a` inside a box, of `b` outside.
    SelectBox {
        dst: VReg,
        bounds: Bounds,
        shape: SmallVec<[usize; 4]>,
        a: Src,
        b: Src,
    },
    BoxMask {
        dst: VReg,
        bounds: Bounds,
        shape: SmallVec<[usize; 4]>,
    },
    /// A strided view of a materialised block; strides count lanes.
    Strided {
        dst: VReg,
        from: usize,
        dims: Dims,
    },
    Splat {
        dst: VReg,
        from: SReg,
    },
    Load {
        dst: VReg,
        access: usize,
    },
    Store {
        src: Src,
        access: usize,
        /// The value has no other use: it can be computed where it is stored.
        only_use: bool,
    },
}

/// Registers that a micro reads.
pub(crate) fn reads(micro: &Micro, accesses: &[Access]) -> SmallVec<[VReg; 4]> {
    let mut used = SmallVec::new();
    let mut src = |s: &Src| {
        if let Src::V(r) = s {
            used.push(*r);
        }
    };
    match micro {
        Micro::Map { a, b, c, .. } => [a, b, c].into_iter().for_each(&mut src),
        Micro::SelectBox { a, b, .. } => [a, b].into_iter().for_each(&mut src),
        Micro::Store { src: s, .. } => src(s),
        _ => {}
    }
    if let Micro::Load { access, .. } | Micro::Store { access, .. } = micro {
        let a = &accesses[*access];
        src(&a.other);
        if let PtrForm::Lanes(r) = a.ptr {
            used.push(r);
        }
        if let MaskForm::Lanes(r) = a.mask {
            used.push(r);
        }
    }
    used
}

/// Drops work whose result nobody reads. Loads stay, for they may fault; and so do registers that are `read` later.
pub(crate) fn drop_unread(micros: &mut Vec<Micro>, accesses: &[Access], mut read: Vec<bool>) {
    let mut kept = Vec::with_capacity(micros.len());
    for micro in std::mem::take(micros).into_iter().rev() {
        let needed = match written(&micro) {
            Some(dst) => read[usize::from(dst.0)] || matches!(micro, Micro::Load { .. }),
            None => true,
        };
        if needed {
            reads(&micro, accesses).iter().for_each(|r| read[usize::from(r.0)] = true);
            kept.push(micro);
        }
    }
    kept.reverse();
    *micros = kept;
}

/// The register a micro writes.
pub(crate) fn written(micro: &Micro) -> Option<VReg> {
    match micro {
        Micro::Map { dst, .. }
        | Micro::Iota { dst, .. }
        | Micro::Divided { dst, .. }
        | Micro::SelectBox { dst, .. }
        | Micro::BoxMask { dst, .. }
        | Micro::Strided { dst, .. }
        | Micro::Splat { dst, .. }
        | Micro::Load { dst, .. } => Some(*dst),
        Micro::Store { .. } => None,
    }
}

/// A reduction of all lanes of one of a group's blocks.
#[derive(Debug, Clone)]
pub(crate) struct Reduction {
    pub(crate) f: ReduceKernel,
    pub(crate) op: ReduceOp,
    pub(crate) from: VReg,
    /// Where the results go in the arena, one for each row.
    pub(crate) to: usize,
    /// Lanes of a row.
    pub(crate) row: usize,
    /// Whether nothing else reads what is reduced.
    pub(crate) is_last: bool,
}

/// Where a group's register lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Home {
    /// A chunk-sized slot.
    Slot(u16),
    /// A whole block in the arena, at this byte offset.
    Full(usize),
}

#[derive(Debug, Clone)]
pub(crate) struct FusedGroup {
    pub(crate) lanes: usize,
    /// Lanes processed at a time: what they need and what comes next fit into the first-level cache.
    pub(crate) chunk: usize,
    /// Requests to memory that a chunk has room for.
    pub(crate) steps: usize,
    pub(crate) micros: Vec<Micro>,
    pub(crate) accesses: Vec<Access>,
    pub(crate) homes: Vec<(Home, Lane)>,
    /// Registers whose only use is a store, and that access.
    pub(crate) stored: Vec<(VReg, usize)>,
    /// Number of this group's first access among those of the tape.
    pub(crate) first_access: usize,
    /// Done when all lanes are.
    pub(crate) reductions: Vec<Reduction>,
    /// Number of its machine code among that of the tape.
    #[cfg(all(target_arch = "x86_64", unix, feature = "machine-code"))]
    pub(crate) code: Option<usize>,
}
