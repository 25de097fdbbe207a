//! Collecting elementwise work into groups.

use super::{Lower, Rep, Result};
use crate::exec::group::{
    Access, CHUNK, Cost, FusedGroup, Home, LaneOp, Micro, drop_unread, reads, written,
};
use crate::exec::registers::{Bounds, SReg, Src, VReg};
use crate::exec::simd::Kernel;
use crate::exec::tape::Step;
use crate::exec::views::{Dims, Strides, collapse, is_row_major, row_major};
use crate::ir::ValueId;
use crate::lane::Lane;
use crate::types::Shape;
use rustc_hash::FxHashMap;

/// Work per group is bounded so that its registers stay in the first-level cache.
const MAX_MICROS: usize = 512;

#[derive(Debug, Clone)]
pub(super) struct GroupBuilder {
    pub(super) shape: Shape,
    micros: Vec<Micro>,
    pub(super) accesses: Vec<Access>,
    /// Pointer value, its root and the kind of each access, for aliasing.
    pub(super) pointers: Vec<(ValueId, Option<u32>, bool)>,
    registers: Vec<(Lane, Option<usize>)>,
    /// Registers that hold an SSA value computed in this group.
    defined: Vec<(ValueId, VReg)>,
    /// Registers that hold an SSA value from outside.
    fetched: FxHashMap<ValueId, VReg>,
    /// Those among them that are a block as it lies in the arena, and which: nothing in the group writes them.
    borrowed: FxHashMap<VReg, (usize, usize)>,
    splats: FxHashMap<(SReg, Lane), VReg>,
}

impl GroupBuilder {
    fn register(&mut self, lane: Lane, full: Option<usize>) -> VReg {
        self.registers.push((lane, full));
        VReg(self.registers.len() as u16 - 1)
    }

    /// Marks the stores of values that a kernel computes for them alone.
    fn mark_only_uses(&mut self) {
        let mut uses = vec![0u32; self.registers.len()];
        let mut computed = vec![false; self.registers.len()];
        for micro in &self.micros {
            reads(micro, &self.accesses).iter().for_each(|r| uses[usize::from(r.0)] += 1);
            if let Micro::Map { dst, .. } = micro {
                computed[usize::from(dst.0)] = true;
            }
        }
        for micro in &mut self.micros {
            if let Micro::Store { src: Src::V(r), only_use, .. } = micro {
                let r = usize::from(r.0);
                *only_use = computed[r] && uses[r] == 1 && self.registers[r].1.is_none();
            }
        }
    }
}

/// What a group may keep in the first-level cache, in bytes.
const CACHE: usize = 40 << 10;

/// Lanes to process at a time: slots, and each stream of memory twice, for its next lot is fetched meanwhile.
fn chunk_lanes(g: &GroupBuilder, slots: usize) -> usize {
    let full = g.registers.iter().filter(|(_, full)| full.is_some()).count();
    let bytes = 4 * (slots + full + 2 * g.accesses.len());
    let lanes = (CACHE / bytes.max(1)).clamp(128, CHUNK);
    1 << lanes.ilog2()
}

impl Lower<'_> {
    /// The group for blocks of this shape; another open group is finished first.
    pub(super) fn group_for(&mut self, shape: &Shape) -> Result<&mut GroupBuilder> {
        let fits =
            self.group.as_ref().is_some_and(|g| g.shape == *shape && g.micros.len() < MAX_MICROS);
        if !fits {
            self.close_group()?;
        }
        Ok(self.group.get_or_insert_with(|| GroupBuilder {
            shape: shape.clone(),
            micros: Vec::new(),
            accesses: Vec::new(),
            pointers: Vec::new(),
            registers: Vec::new(),
            defined: Vec::new(),
            fetched: FxHashMap::default(),
            borrowed: FxHashMap::default(),
            splats: FxHashMap::default(),
        }))
    }

    fn open(&mut self) -> Result<&mut GroupBuilder> {
        match &mut self.group {
            Some(g) => Ok(g),
            None => Err(super::LowerError {
                message: "internal error: no open group".into(),
                loc: self.loc,
            }),
        }
    }

    /// An operand of the open group.
    pub(super) fn operand(&mut self, v: ValueId) -> Result<Src> {
        match self.rep(v)? {
            Rep::Uniform(r) => Ok(Src::S(r)),
            _ => Ok(Src::V(self.fetch(v)?)),
        }
    }

    /// An operand as lanes, even when it is uniform.
    pub(super) fn lanes(&mut self, v: ValueId) -> Result<VReg> {
        let lane = Lane::of(self.ty(v));
        match self.rep(v)? {
            Rep::Uniform(r) => self.splat_reg(r, lane),
            _ => self.fetch(v),
        }
    }

    pub(super) fn splat_reg(&mut self, r: SReg, lane: Lane) -> Result<VReg> {
        let g = self.open()?;
        if let Some(found) = g.splats.get(&(r, lane)) {
            return Ok(*found);
        }
        let dst = g.register(lane, None);
        g.micros.push(Micro::Splat { dst, from: r });
        g.splats.insert((r, lane), dst);
        Ok(dst)
    }

    fn fetch(&mut self, v: ValueId) -> Result<VReg> {
        let rep = self.rep(v)?;
        if let Rep::Chunk(reg) = rep {
            return Ok(reg);
        }
        let lane = Lane::of(self.ty(v));
        let shape = self.ty(v).shape.clone();
        let g = self.open()?;
        if let Some(found) = g.fetched.get(&v) {
            return Ok(*found);
        }
        let reg = match rep {
            Rep::Dense { buffer, offset, strides } if is_row_major(&shape, &strides) => {
                let reg = g.register(lane, Some(offset));
                g.borrowed.insert(reg, (buffer, offset));
                reg
            }
            Rep::Dense { offset, strides, .. } => {
                let dst = g.register(lane, None);
                g.micros.push(Micro::Strided {
                    dst,
                    from: offset,
                    dims: collapse(&shape, &strides),
                });
                dst
            }
            Rep::Affine { base, strides } => {
                let dst = g.register(lane, None);
                g.micros.push(Micro::Iota { dst, base, dims: collapse(&shape, &strides) });
                dst
            }
            Rep::Box(bounds) => {
                let dst = g.register(lane, None);
                let shape = shape.iter().map(|&d| d as usize).collect();
                g.micros.push(Micro::BoxMask { dst, bounds, shape });
                dst
            }
            Rep::Rows { .. } => self.fetch_rows(&rep, &shape)?,
            Rep::Uniform(_) | Rep::Chunk(_) => {
                return Err(self.error("internal error: nothing to fetch"));
            }
        };
        if let Some(g) = &mut self.group {
            g.fetched.insert(v, reg);
        }
        Ok(reg)
    }

    /// Appends a micro that writes a register of its own.
    pub(super) fn push(&mut self, lane: Lane, micro: impl FnOnce(VReg) -> Micro) -> Result<VReg> {
        let g = self.open()?;
        let dst = g.register(lane, None);
        g.micros.push(micro(dst));
        Ok(dst)
    }

    /// Appends a kernel whose result is not an SSA value of its own.
    pub(super) fn map(&mut self, f: Kernel, lane: Lane, args: [Src; 3]) -> Result<VReg> {
        self.map_of(f, None, lane, args, Cost::Light)
    }

    pub(super) fn map_of(
        &mut self,
        f: Kernel,
        op: Option<LaneOp>,
        lane: Lane,
        args: [Src; 3],
        cost: Cost,
    ) -> Result<VReg> {
        let g = self.open()?;
        let dst = g.register(lane, None);
        let [a, b, c] = args;
        g.micros.push(Micro::Map { f, op, dst, a, b, c, cost });
        Ok(dst)
    }

    pub(super) fn push_divided(
        &mut self,
        lane: Lane,
        (base, dims): (SReg, Dims),
        divisor: SReg,
        quotient: bool,
    ) -> Result<VReg> {
        let g = self.open()?;
        let dst = g.register(lane, None);
        g.micros.push(Micro::Divided { dst, base, dims, divisor, quotient });
        Ok(dst)
    }

    pub(super) fn push_select(
        &mut self,
        lane: Lane,
        bounds: Bounds,
        a: Src,
        b: Src,
    ) -> Result<VReg> {
        let g = self.open()?;
        let dst = g.register(lane, None);
        let shape = g.shape.iter().map(|&d| d as usize).collect();
        g.micros.push(Micro::SelectBox { dst, bounds, shape, a, b });
        Ok(dst)
    }

    /// Names a register of the open group.
    ///
    /// An operation that changes nothing gives its operand's register back. If that is a block from outside, the value is a
    /// view of this block: the group computes nothing that it could keep in a block of the value's own.
    pub(super) fn define_chunk(&mut self, v: ValueId, reg: VReg) -> Result<()> {
        let g = self.open()?;
        if let Some(&(buffer, offset)) = g.borrowed.get(&reg) {
            g.fetched.insert(v, reg);
            let strides = row_major(&g.shape);
            self.set(v, Rep::Dense { buffer, offset, strides });
            return Ok(());
        }
        g.defined.push((v, reg));
        self.set(v, Rep::Chunk(reg));
        Ok(())
    }

    pub(super) fn push_load(
        &mut self,
        access: Access,
        pointer: (ValueId, Option<u32>),
        v: ValueId,
    ) -> Result<()> {
        let lane = access.lane;
        let g = self.open()?;
        let dst = g.register(lane, None);
        g.micros.push(Micro::Load { dst, access: g.accesses.len() });
        g.accesses.push(access);
        g.pointers.push((pointer.0, pointer.1, false));
        self.define_chunk(v, dst)
    }

    pub(super) fn push_store(
        &mut self,
        access: Access,
        pointer: (ValueId, Option<u32>),
        src: Src,
    ) -> Result<()> {
        let g = self.open()?;
        g.micros.push(Micro::Store { src, access: g.accesses.len(), only_use: false });
        g.accesses.push(access);
        g.pointers.push((pointer.0, pointer.1, true));
        Ok(())
    }

    /// Finishes the open group: values still needed get a block of their own, the rest chunk-sized slots.
    pub(super) fn close_group(&mut self) -> Result<()> {
        let Some(mut g) = self.group.take() else { return Ok(()) };
        let lanes: usize = g.shape.iter().map(|&d| d as usize).product();
        // Several values may share a register: a cast that changes nothing, a broadcast that was loaded so.
        let mut homes: FxHashMap<VReg, (usize, usize)> = FxHashMap::default();
        for &(v, reg) in &g.defined {
            if self.uses[v.index()] == 0 {
                continue;
            }
            let lane = g.registers[usize::from(reg.0)].0;
            let (buffer, offset) = match homes.get(&reg) {
                Some(home) => *home,
                None => self.arena.allocate(lanes * lane.size()),
            };
            homes.insert(reg, (buffer, offset));
            g.registers[usize::from(reg.0)].1 = Some(offset);
            let depth = self.depths[v.index()];
            self.arena.retain(buffer);
            self.depths[v.index()] = depth;
            let strides: Strides = row_major(&g.shape);
            self.reps[v.index()] = Some(Rep::Dense { buffer, offset, strides });
        }
        self.fuse(&mut g.micros);
        let kept = g.registers.iter().map(|(_, full)| full.is_some()).collect();
        drop_unread(&mut g.micros, &g.accesses, kept);
        g.mark_only_uses();
        let (homes, slots) = assign_slots(&g);
        self.slots = self.slots.max(slots);
        let chunk = chunk_lanes(&g, slots);
        let steps = g
            .micros
            .iter()
            .map(|micro| match micro {
                Micro::Map { cost, .. } if *cost != Cost::Light => 1 + chunk.div_ceil(cost.piece()),
                _ => 1,
            })
            .sum();
        let stored = g
            .micros
            .iter()
            .filter_map(|micro| match micro {
                Micro::Store { src: Src::V(r), access, only_use: true } => Some((*r, *access)),
                _ => None,
            })
            .collect();
        let first_access = self.accesses;
        self.accesses += g.accesses.len();
        let group = FusedGroup {
            lanes,
            chunk,
            steps,
            micros: g.micros,
            accesses: g.accesses,
            homes,
            stored,
            first_access,
            reductions: Vec::new(),
            #[cfg(all(target_arch = "x86_64", unix, feature = "machine-code"))]
            code: None,
        };
        if !group.micros.is_empty() {
            self.steps.push(Step::Group(Box::new(group)));
        }
        self.arena.group_closed();
        Ok(())
    }

    /// The value as a row-major block in the arena.
    pub(super) fn materialize(&mut self, v: ValueId) -> Result<usize> {
        if matches!(self.rep(v)?, Rep::Chunk(_)) {
            self.close_group()?;
        }
        let ty = self.ty(v).clone();
        let lane = Lane::of(&ty);
        match self.rep(v)? {
            Rep::Dense { offset, strides, .. } if is_row_major(&ty.shape, &strides) => Ok(offset),
            Rep::Uniform(from) => {
                self.close_group()?;
                let (buffer, to) = self.arena.allocate(ty.numel() * lane.size());
                self.steps.push(Step::Fill { to, from, lane, lanes: ty.numel() });
                if !ty.is_scalar() {
                    self.settle(v, buffer, to);
                }
                Ok(to)
            }
            _ => {
                self.close_group()?;
                self.group_for(&ty.shape)?;
                let reg = self.fetch(v)?;
                let (buffer, to) = self.arena.allocate(ty.numel() * lane.size());
                if let Some(g) = &mut self.group {
                    g.registers[usize::from(reg.0)].1 = Some(to);
                }
                self.close_group()?;
                self.settle(v, buffer, to);
                Ok(to)
            }
        }
    }

    /// From here on the value is this block; its old one, if any, may be freed with it later.
    fn settle(&mut self, v: ValueId, buffer: usize, offset: usize) {
        self.arena.retain(buffer);
        let strides = row_major(&self.ty(v).shape);
        self.reps[v.index()] = Some(Rep::Dense { buffer, offset, strides });
    }

    /// A fresh row-major block for a result.
    pub(super) fn result_block(&mut self, v: ValueId) -> usize {
        let ty = self.ty(v);
        let block = self.arena.allocate(ty.numel() * Lane::of(ty).size());
        self.placed(v, block)
    }

    /// The value is this row-major block.
    pub(super) fn placed(&mut self, v: ValueId, (buffer, offset): (usize, usize)) -> usize {
        let strides = row_major(&self.ty(v).shape);
        self.set(v, Rep::Dense { buffer, offset, strides });
        offset
    }
}

/// Linear scan: a slot is free again after the last micro that reads it; a result never shares a slot with
/// an operand of the same micro.
fn assign_slots(g: &GroupBuilder) -> (Vec<(Home, Lane)>, usize) {
    let count = g.registers.len();
    let mut last = vec![0usize; count];
    let mut was_read = vec![false; count];
    for (i, micro) in g.micros.iter().enumerate() {
        for r in reads(micro, &g.accesses) {
            last[usize::from(r.0)] = i;
            was_read[usize::from(r.0)] = true;
        }
    }
    // A choice may turn out to be one of its operands, which then must live as long as the result.
    for (i, micro) in g.micros.iter().enumerate().rev() {
        if let Micro::SelectBox { dst, a, b, .. } = micro {
            let until = last[usize::from(dst.0)].max(i);
            for src in [a, b] {
                if let Src::V(r) = src {
                    let end = &mut last[usize::from(r.0)];
                    *end = until.max(*end);
                }
            }
        }
    }
    let mut ending: Vec<Vec<usize>> = vec![Vec::new(); g.micros.len()];
    for (register, &end) in last.iter().enumerate() {
        if let Some(list) = ending.get_mut(end) {
            list.push(register);
        }
    }
    let mut homes: Vec<Option<Home>> =
        g.registers.iter().map(|(_, full)| full.map(Home::Full)).collect();
    let mut free: Vec<u16> = Vec::new();
    let mut slots = 0u16;
    for (i, micro) in g.micros.iter().enumerate() {
        if let Some(dst) = written(micro)
            && homes[usize::from(dst.0)].is_none()
        {
            let slot = free.pop().unwrap_or_else(|| {
                slots += 1;
                slots - 1
            });
            homes[usize::from(dst.0)] = Some(Home::Slot(slot));
            // Never read: free at once, after this micro.
            if last[usize::from(dst.0)] < i {
                free.push(slot);
            }
        }
        for &register in &ending[i] {
            if let Some(Home::Slot(slot)) = homes[register]
                && was_read[register]
            {
                free.push(slot);
            }
        }
    }
    let homes = homes
        .into_iter()
        .zip(&g.registers)
        .map(|(p, (lane, _))| (p.unwrap_or(Home::Slot(0)), *lane))
        .collect();
    (homes, usize::from(slots.max(1)))
}
