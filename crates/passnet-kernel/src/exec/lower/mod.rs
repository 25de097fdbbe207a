//! From tile IR to a tape, for one launch.
//!
//! Scalar arguments and the grid are known, so most index arithmetic folds away. A block is held in the cheapest
//! form that can express it ([`Rep`]): one scalar, an affine function of the lane index, a box of set mask lanes,
//! a register of the open group, or a materialised block. Elementwise work is collected into groups.

mod arena;
mod blocks;
mod control;
mod elementwise;
mod fuse;
mod group;
mod memory_ops;
mod order;
mod row_pointers;
mod scalar;
mod shapes;

use super::registers::{Bounds, SReg, VReg};
use super::simd::Kernel;
use super::tape::{Step, Tape};
use super::views::Strides;
use crate::ir::{Block, Function, Inst, Loc, Op, ValueId};
use crate::types::{Shape, Type};
use arena::Arena;
use group::GroupBuilder;
use passnet_cpu::Isa;
use rustc_hash::FxHashMap;

/// What a kernel parameter is bound to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Bound {
    /// Address of the first element, and the buffer it lies in.
    Pointer {
        address: i64,
        buffer: usize,
    },
    Int(i64),
    Float(f64),
}

/// How a value is held.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Rep {
    /// The same in all lanes.
    Uniform(SReg),
    /// `base + sum(stride * index)`: integers, and pointers with byte strides.
    Affine { base: SReg, strides: Strides },
    /// A mask that is on inside a box.
    Box(Bounds),
    /// In the open group.
    Chunk(VReg),
    /// In the arena: byte offset and strides in lanes.
    Dense { buffer: usize, offset: usize, strides: Strides },
    /// Addresses: one for each row in the arena, `lanes` apart, to which the base and so many bytes a column are added.
    Rows { buffer: usize, offset: usize, lanes: i64, base: SReg, step: i64 },
}

/// Why a kernel cannot become a tape.
#[derive(Debug, Clone)]
pub(crate) struct LowerError {
    pub(crate) message: String,
    pub(crate) loc: Loc,
}

type Result<T> = std::result::Result<T, LowerError>;

/// Memory one thread may use for blocks.
const MAX_ARENA_BYTES: usize = 256 << 20;

#[derive(Clone)]
pub(super) struct Lower<'f> {
    f: &'f Function,
    isa: Isa,
    grid: [u32; 3],
    reps: Vec<Option<Rep>>,
    /// Uses of each value not yet lowered.
    uses: Vec<u32>,
    /// Loop depth at which a value was defined.
    depths: Vec<u16>,
    /// The parameter each pointer derives from, if there is exactly one.
    roots: Vec<Option<u32>>,
    /// Buffer of each parameter, for aliasing; forgotten where pointers of several parameters may mix.
    buffers: Vec<Option<usize>>,
    /// Buffer of each parameter.
    owners: Vec<Option<usize>>,
    /// The shape to which a value is broadcast, if that is all that is done with it.
    stretched: Vec<Stretch>,
    steps: Vec<Step>,
    group: Option<GroupBuilder>,
    image: Vec<u64>,
    constant: Vec<bool>,
    /// Smallest and largest value of each integer register.
    ranges: Vec<(i64, i64)>,
    /// A number that divides each integer register.
    multiples: Vec<i64>,
    /// Scalar steps already emitted in this scope.
    known: FxHashMap<(usize, [SReg; 3]), SReg>,
    arena: Arena,
    depth: u16,
    slots: usize,
    accesses: usize,
    has_atomics: bool,
    loc: Loc,
}

/// What becomes of a value that may be broadcast.
#[derive(Debug, Clone, PartialEq)]
enum Stretch {
    Unused,
    To(Shape),
    Otherwise,
    /// It was loaded in the stretched shape: broadcasting it changes nothing.
    Done,
}

/// Bytes of the blocks that live at a time: a GPU holds some hundred kilobytes of them.
const MAX_ARENA: usize = 1 << 30;

/// Lowers a kernel for one launch.
pub(crate) fn lower(f: &Function, bounds: &[Bound], grid: [u32; 3]) -> Result<Tape> {
    let count = f.types.len();
    let mut lower = Lower {
        f,
        isa: Isa::detect(),
        grid,
        reps: vec![None; count],
        uses: vec![0; count],
        depths: vec![0; count],
        roots: vec![None; count],
        buffers: Vec::new(),
        owners: Vec::new(),
        stretched: vec![Stretch::Unused; count],
        steps: Vec::new(),
        group: None,
        image: vec![0; 3],
        constant: vec![false; 3],
        ranges: (0..3).map(|axis| (0, i64::from(grid[axis]) - 1)).collect(),
        multiples: vec![1; 3],
        known: FxHashMap::default(),
        arena: Arena::default(),
        depth: 0,
        slots: 0,
        accesses: 0,
        has_atomics: false,
        loc: Loc::default(),
    };
    lower.count_uses(&f.body);
    for (index, (param, bound)) in f.params.iter().zip(bounds).enumerate() {
        let ty = f.ty(param.value);
        let (bits, buffer) = match bound {
            Bound::Pointer { address, buffer } => (*address as u64, Some(*buffer)),
            Bound::Int(i) => (*i as u64, None),
            Bound::Float(v) if ty.elem() == crate::types::Elem::F64 => (v.to_bits(), None),
            Bound::Float(v) => (u64::from((*v as f32).to_bits()), None),
        };
        lower.buffers.push(buffer);
        lower.owners.push(buffer);
        lower.roots[param.value.index()] = buffer.map(|_| index as u32);
        let reg = lower.constant_reg(bits);
        lower.reps[param.value.index()] = Some(Rep::Uniform(reg));
    }
    lower.block(&f.body)?;
    lower.close_group()?;
    let arena_bytes = lower.arena.high_water();
    if arena_bytes > MAX_ARENA {
        return Err(lower.error(format!("its blocks need {arena_bytes} bytes at a time")));
    }
    Ok(Tape {
        steps: lower.steps,
        image: lower.image,
        arena_bytes,
        slots: lower.slots,
        accesses: lower.accesses,
        buffers: lower.owners.into_iter().flatten().collect(),
        has_atomics: lower.has_atomics,
    })
}

impl Lower<'_> {
    fn error(&self, message: impl Into<String>) -> LowerError {
        LowerError { message: message.into(), loc: self.loc }
    }

    fn ty(&self, v: ValueId) -> &Type {
        self.f.ty(v)
    }

    fn rep(&self, v: ValueId) -> Result<Rep> {
        self.reps[v.index()]
            .clone()
            .ok_or_else(|| self.error(format!("internal error: {v} has no value yet")))
    }

    fn set(&mut self, v: ValueId, rep: Rep) {
        if let Rep::Dense { buffer, .. } | Rep::Rows { buffer, .. } = &rep {
            self.arena.retain(*buffer);
        }
        self.depths[v.index()] = self.depth;
        self.reps[v.index()] = Some(rep);
    }

    fn count_uses(&mut self, block: &Block) {
        for inst in &block.insts {
            for arg in &inst.args {
                self.uses[arg.index()] += 1;
                let to = match inst.op {
                    Op::Broadcast => Stretch::To(self.ty(inst.results[0]).shape.clone()),
                    _ => Stretch::Otherwise,
                };
                let slot = &mut self.stretched[arg.index()];
                *slot =
                    if *slot == Stretch::Unused || *slot == to { to } else { Stretch::Otherwise };
            }
            for region in &inst.regions {
                self.count_uses(region);
            }
        }
        for v in &block.yields {
            self.stretched[v.index()] = Stretch::Otherwise;
            self.uses[v.index()] += 1;
        }
    }

    /// One use of a value is done; its block may be freed when it was the last.
    fn used(&mut self, v: ValueId) {
        let left = &mut self.uses[v.index()];
        *left = left.saturating_sub(1);
        if *left > 0 {
            return;
        }
        if let Some(Rep::Dense { buffer, .. } | Rep::Rows { buffer, .. }) = &self.reps[v.index()] {
            // A value of an outer loop level is needed again in the next iteration.
            let busy = self.group.is_some();
            self.arena.release(*buffer, self.depths[v.index()], self.depth, busy);
        }
    }

    fn inst(&mut self, inst: &Inst) -> Result<()> {
        let root = self.root_of(inst);
        for r in &inst.results {
            self.roots[r.index()] = root;
        }
        match &inst.op {
            Op::Const(literal) => {
                let reg = self.literal(*literal, inst.results[0]);
                self.set(inst.results[0], Rep::Uniform(reg));
                Ok(())
            }
            Op::ProgramId(axis) => {
                self.set(inst.results[0], Rep::Uniform(SReg(u32::from(*axis))));
                Ok(())
            }
            Op::NumPrograms(axis) => {
                let reg = self.int_reg(i64::from(self.grid[usize::from(*axis)]));
                self.set(inst.results[0], Rep::Uniform(reg));
                Ok(())
            }
            Op::Arange(start) => {
                let base = self.int_reg(*start);
                self.set(inst.results[0], Rep::Affine { base, strides: Strides::from_slice(&[1]) });
                Ok(())
            }
            Op::Splat => {
                let rep = self.rep(inst.args[0])?;
                self.set(inst.results[0], rep);
                Ok(())
            }
            Op::Broadcast | Op::Reshape | Op::Permute(_) | Op::Join | Op::Split | Op::Cat => {
                self.shape_op(inst)
            }
            op if op.is_elementwise() => self.elementwise(inst),
            Op::Load { mask, other } => self.load(inst, *mask, *other),
            Op::Store { mask } => self.store(inst, *mask),
            Op::Atomic { .. } | Op::AtomicCas => self.atomic(inst),
            Op::If => self.lower_if(inst),
            Op::For => self.lower_for(inst),
            Op::While => self.lower_while(inst),
            _ => self.block_op(inst),
        }
    }

    /// The parameter a pointer result derives from.
    fn root_of(&self, inst: &Inst) -> Option<u32> {
        match &inst.op {
            Op::AddPtr | Op::Splat | Op::Broadcast | Op::Reshape | Op::Permute(_) | Op::Bitcast => {
                self.roots[inst.args.first()?.index()]
            }
            Op::Select => {
                let (a, b) = (self.roots[inst.args[1].index()], self.roots[inst.args[2].index()]);
                if a == b { a } else { None }
            }
            _ => None,
        }
    }

    /// Whether two pointers may meet in memory.
    fn may_alias(&self, a: Option<u32>, b: Option<u32>) -> bool {
        let buffer =
            |r: Option<u32>| r.and_then(|i| self.buffers.get(i as usize).copied().flatten());
        match (buffer(a), buffer(b)) {
            (Some(x), Some(y)) => x == y,
            _ => true,
        }
    }

    fn kernel(&self, found: Option<Kernel>, what: &str) -> Result<Kernel> {
        found.ok_or_else(|| self.error(format!("{what} is not supported for this type")))
    }
}
