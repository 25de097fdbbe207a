//! Checks that a function obeys the rules the rest of the crate relies on.
//!
//! Values
//! - every value is defined once, before its uses, in the same block or an enclosing one;
//! - block dimensions are powers of two, at most [`MAX_RANK`] of them; a value has at most [`MAX_LANES`] lanes.
//!
//! Types
//! - elementwise operations have arguments of one shape; binary ones of one element type;
//! - comparisons and the `is*` tests give `i1`; select and masks take `i1`;
//! - pointers are made only by parameters, `addptr`, `select`, bitcasts and shape operations, and only compared,
//!   bitcast, moved and followed;
//! - loads and stores agree with the type pointed at; masks and `other` have the pointer's shape;
//! - the operands of a dot product are held in lanes as wide as its result's.
//!
//! Shapes
//! - splat, broadcast, reshape, permute, join, split, cat, reduce, scan, dot, gather keep their shape rules.
//!
//! Control flow
//! - regions take and give what their instruction says; loop-carried types never change.
//!
//! Not checked: memory safety (the executor does that) and termination of `while`.

use super::arity::{arity, takes_numbers};
use super::{Block, Function, Inst, Op, UnaryOp, ValueId};
use crate::lane::Lane;
use crate::types::{Elem, Type};

/// Triton's own limit on the lanes of one block.
pub const MAX_LANES: usize = 1 << 20;
/// Dimensions of a block. Triton has no limit of its own; more than a few are written by nobody.
pub const MAX_RANK: usize = 32;

/// The first rule broken, in words, or nothing.
pub fn verify(function: &Function) -> Result<(), String> {
    let count = function.types.len();
    let mut verifier =
        Verifier { f: function, taken: vec![false; count], visible: vec![false; count] };
    for ty in &function.types {
        // A product that wraps around may come out small.
        let lanes =
            ty.shape.iter().try_fold(1usize, |lanes, &size| lanes.checked_mul(size as usize));
        if ty.shape.len() > MAX_RANK
            || ty.shape.iter().any(|d| !d.is_power_of_two())
            || lanes.is_none_or(|lanes| lanes > MAX_LANES)
        {
            return Err(format!("type {ty} is not a block of a legal size"));
        }
    }
    for param in &function.params {
        verifier.define(param.value)?;
    }
    if !function.body.params.is_empty() || !function.body.yields.is_empty() {
        return Err("the body of a kernel takes and gives nothing".into());
    }
    verifier.block(&function.body)
}

struct Verifier<'a> {
    f: &'a Function,
    /// Defined somewhere.
    taken: Vec<bool>,
    /// Defined and in scope.
    visible: Vec<bool>,
}

impl Verifier<'_> {
    fn define(&mut self, value: ValueId) -> Result<(), String> {
        match self.taken.get_mut(value.index()) {
            Some(taken) if !*taken => *taken = true,
            Some(_) => return Err(format!("{value} is defined twice")),
            None => return Err(format!("{value} has no type")),
        }
        self.visible[value.index()] = true;
        Ok(())
    }

    fn used(&self, value: ValueId) -> Result<(), String> {
        match self.visible.get(value.index()) {
            Some(true) => Ok(()),
            _ => Err(format!("{value} is used before it is defined")),
        }
    }

    fn block(&mut self, block: &Block) -> Result<(), String> {
        let mut own = Vec::new();
        for &param in &block.params {
            self.define(param)?;
            own.push(param);
        }
        for inst in &block.insts {
            for &arg in &inst.args {
                self.used(arg)?;
            }
            for region in &inst.regions {
                self.block(region)?;
            }
            self.inst(inst).map_err(|e| format!("`{}` on line {}: {e}", inst.op, inst.loc.line))?;
            for &result in &inst.results {
                self.define(result)?;
                own.push(result);
            }
        }
        for &value in &block.yields {
            self.used(value)?;
        }
        for value in own {
            self.visible[value.index()] = false;
        }
        Ok(())
    }

    fn ty(&self, v: ValueId) -> &Type {
        self.f.ty(v)
    }

    fn inst(&self, inst: &Inst) -> Result<(), String> {
        let arity = arity(inst)?;
        if inst.args.len() != arity.0 || inst.results.len() != arity.1 {
            return Err(format!("takes {} arguments and gives {} results", arity.0, arity.1));
        }
        let a: Vec<&Type> = inst.args.iter().map(|&v| self.ty(v)).collect();
        let r: Vec<&Type> = inst.results.iter().map(|&v| self.ty(v)).collect();
        if takes_numbers(&inst.op) && a.iter().chain(&r).any(|ty| ty.is_ptr()) {
            return Err("takes numbers, not pointers".into());
        }
        match &inst.op {
            Op::Const(_) | Op::ProgramId(_) | Op::NumPrograms(_) if !r[0].is_scalar() => {
                Err("gives a scalar".into())
            }
            Op::ProgramId(axis) | Op::NumPrograms(axis) if *axis > 2 => {
                Err("axes are 0, 1 and 2".into())
            }
            Op::Const(_) => Ok(()),
            Op::ProgramId(_) | Op::NumPrograms(_) => same(r[0], &Type::scalar(Elem::I32)),
            Op::Arange(start) => {
                let [size] = r[0].shape[..] else { return Err("gives one dimension".into()) };
                let last = start.checked_add(i64::from(size) - 1);
                if i32::try_from(*start).is_err() || last.is_none_or(|n| i32::try_from(n).is_err())
                {
                    return Err("does not fit i32".into());
                }
                same(r[0], &Type::block(Elem::I32, &r[0].shape))
            }
            Op::Unary(UnaryOp::IsNan | UnaryOp::IsInf | UnaryOp::IsFinite | UnaryOp::SignBit) => {
                same(r[0], &a[0].with_elem(Elem::I1))
            }
            Op::Unary(UnaryOp::Popc | UnaryOp::Clz) => same(&r[0].with_elem(a[0].elem()), a[0]),
            Op::Unary(_) => same(r[0], a[0]),
            Op::Binary(_) => same(a[0], a[1]).and_then(|()| same(r[0], a[0])),
            Op::Compare(_) => same(a[0], a[1]).and_then(|()| mask_for(r[0], a[0])),
            Op::Select => {
                mask_for(a[0], a[1])?;
                same(a[1], a[2]).and_then(|()| same(r[0], a[1]))
            }
            Op::Fma => {
                same(a[0], a[1]).and_then(|()| same(a[1], a[2])).and_then(|()| same(r[0], a[0]))
            }
            Op::Cast if a[0].shape == r[0].shape => Ok(()),
            Op::Cast => Err("the shape changes".into()),
            Op::Bitcast => {
                let width = |t: &Type| if t.is_ptr() { 64 } else { t.elem().bits() };
                if a[0].shape == r[0].shape && width(a[0]) == width(r[0]) {
                    Ok(())
                } else {
                    Err("widths differ".into())
                }
            }
            Op::AddPtr if !a[0].is_ptr() || a[1].num().is_none_or(Elem::is_float) => {
                Err("takes a pointer and an integer".into())
            }
            Op::AddPtr if a[0].shape != a[1].shape => Err("shapes differ".into()),
            Op::AddPtr => same(r[0], a[0]),
            Op::Assert(_) => mask_for(a[0], a[0]),
            Op::Splat
            | Op::Broadcast
            | Op::Reshape
            | Op::Permute(_)
            | Op::Join
            | Op::Split
            | Op::Cat => self.shape_op(inst, &a, &r),
            Op::Load { .. } | Op::Store { .. } | Op::Atomic { .. } | Op::AtomicCas => {
                self.memory_op(inst, &a, &r)
            }
            Op::If | Op::For | Op::While => self.control_op(inst, &a, &r),
            Op::Reduce { .. }
            | Op::ArgReduce { .. }
            | Op::Scan { .. }
            | Op::ReduceWith { .. }
            | Op::ScanWith { .. }
            | Op::Dot
            | Op::Gather { .. }
            | Op::Sort { .. }
            | Op::Histogram { .. } => self.block_op(inst, &a, &r),
        }
    }

    /// Operations that move lanes.
    fn shape_op(&self, inst: &Inst, a: &[&Type], r: &[&Type]) -> Result<(), String> {
        match &inst.op {
            Op::Splat if a[0].is_scalar() => same(r[0], &a[0].with_shape(&r[0].shape)),
            Op::Splat => Err("takes a scalar".into()),
            Op::Broadcast => {
                let fits = a[0].shape.len() == r[0].shape.len()
                    && a[0].shape.iter().zip(&r[0].shape).all(|(&x, &y)| x == y || x == 1);
                if fits {
                    same(&a[0].with_shape(&r[0].shape), r[0])
                } else {
                    Err("shapes do not fit".into())
                }
            }
            Op::Reshape if a[0].numel() == r[0].numel() => {
                same(&a[0].with_shape(&r[0].shape), r[0])
            }
            Op::Reshape => Err("the number of lanes changes".into()),
            Op::Permute(order) => self.permute(order, a[0], r[0]),
            Op::Join => {
                same(a[0], a[1])?;
                let mut shape = a[0].shape.clone();
                shape.push(2);
                same(r[0], &a[0].with_shape(&shape))
            }
            Op::Split => {
                same(r[0], r[1])?;
                let mut shape = r[0].shape.clone();
                shape.push(2);
                same(a[0], &r[0].with_shape(&shape))
            }
            Op::Cat => {
                same(a[0], a[1])?;
                let mut shape = a[0].shape.clone();
                *shape.first_mut().ok_or("takes blocks")? *= 2;
                same(r[0], &a[0].with_shape(&shape))
            }
            other => Err(format!("internal error: {other} is of another kind")),
        }
    }

    /// Operations on memory.
    fn memory_op(&self, inst: &Inst, a: &[&Type], r: &[&Type]) -> Result<(), String> {
        match &inst.op {
            Op::Load { mask, other } => {
                self.pointer(a[0])?;
                if *mask {
                    mask_for(a[1], a[0])?;
                }
                let loaded = a[0].with_elem(a[0].elem());
                if *other {
                    same(a[1 + usize::from(*mask)], &loaded)?;
                }
                same(r[0], &loaded)
            }
            Op::Store { mask } | Op::Atomic { mask, .. } => {
                self.pointer(a[0])?;
                let value = a[0].with_elem(a[0].elem());
                if *mask {
                    mask_for(a[2], a[0])?;
                }
                if let Some(old) = r.first() {
                    same(old, &value)?;
                }
                same(a[1], &value)
            }
            Op::AtomicCas => {
                self.pointer(a[0])?;
                let value = a[0].with_elem(a[0].elem());
                same(a[1], &value)?;
                same(a[2], &value)?;
                same(r[0], &value)
            }
            other => Err(format!("internal error: {other} is of another kind")),
        }
    }

    /// Operations on whole blocks.
    fn block_op(&self, inst: &Inst, a: &[&Type], r: &[&Type]) -> Result<(), String> {
        match &inst.op {
            Op::Reduce { axis, .. } => same(r[0], &without_axis(a[0], *axis)?),
            Op::ArgReduce { axis, .. } => {
                let value = without_axis(a[0], *axis)?;
                same(r[0], &value)?;
                same(r[1], &value.with_elem(Elem::I32))
            }
            Op::Scan { axis, .. } => without_axis(a[0], *axis).and_then(|_| same(r[0], a[0])),
            Op::ReduceWith { axis } | Op::ScanWith { axis, .. } => {
                let reduces = matches!(inst.op, Op::ReduceWith { .. });
                for (x, y) in a.iter().zip(r) {
                    if x.shape != a[0].shape {
                        return Err("shapes differ".into());
                    }
                    let reduced = without_axis(x, *axis)?;
                    same(y, if reduces { &reduced } else { x })?;
                }
                let scalars: Vec<Type> = a.iter().map(|t| t.with_shape(&[])).collect();
                let doubled: Vec<Type> = scalars.iter().chain(&scalars).cloned().collect();
                self.region(inst, 0, &doubled, &scalars)
            }
            Op::Dot => self.dot(a, r[0]),
            Op::Gather { axis } => {
                without_axis(a[0], *axis)?;
                let others = a[0].shape.len() == a[1].shape.len()
                    && (0..a[0].shape.len())
                        .all(|d| d == usize::from(*axis) || a[0].shape[d] == a[1].shape[d]);
                if !others || a[1].num().is_none_or(Elem::is_float) {
                    return Err("indices do not fit the source".into());
                }
                same(r[0], &a[0].with_shape(&a[1].shape))
            }
            Op::Sort { .. } => same(r[0], a[0]),
            Op::Histogram { mask } => {
                if *mask {
                    mask_for(a[1], a[0])?;
                }
                if a[0].shape.len() != 1 || r[0].shape.len() != 1 || a[0].elem().is_float() {
                    return Err("takes integers; takes and gives one dimension".into());
                }
                same(r[0], &r[0].with_elem(Elem::I32))
            }
            other => Err(format!("internal error: {other} is of another kind")),
        }
    }

    /// Branches and loops.
    fn control_op(&self, inst: &Inst, a: &[&Type], r: &[&Type]) -> Result<(), String> {
        match &inst.op {
            Op::If => {
                same(a[0], &Type::scalar(Elem::I1))?;
                let results: Vec<Type> = r.iter().map(|&ty| ty.clone()).collect();
                self.region(inst, 0, &[], &results)?;
                self.region(inst, 1, &[], &results)
            }
            Op::For => {
                let iv = a[0].clone();
                same(a[1], &iv)?;
                same(a[2], &iv)?;
                if !iv.is_scalar() || iv.num().is_none_or(Elem::is_float) {
                    return Err("bounds are integer scalars".into());
                }
                let carried: Vec<Type> = r.iter().map(|&ty| ty.clone()).collect();
                for (init, carried) in a[3..].iter().zip(&carried) {
                    same(init, carried)?;
                }
                let params: Vec<Type> =
                    std::iter::once(iv).chain(carried.iter().cloned()).collect();
                self.region(inst, 0, &params, &carried)
            }
            Op::While => {
                let carried: Vec<Type> = r.iter().map(|&ty| ty.clone()).collect();
                for (init, carried) in a.iter().zip(&carried) {
                    same(init, carried)?;
                }
                self.region(inst, 0, &carried, &[Type::scalar(Elem::I1)])?;
                self.region(inst, 1, &carried, &carried)
            }
            other => Err(format!("internal error: {other} is of another kind")),
        }
    }

    fn region(
        &self,
        inst: &Inst,
        index: usize,
        params: &[Type],
        yields: &[Type],
    ) -> Result<(), String> {
        let region = &inst.regions[index];
        let fits = |values: &[ValueId], types: &[Type]| {
            values.len() == types.len() && values.iter().zip(types).all(|(&v, t)| self.ty(v) == t)
        };
        if !fits(&region.params, params) {
            return Err(format!("region {index} takes other values"));
        }
        if !fits(&region.yields, yields) {
            return Err(format!("region {index} gives other values"));
        }
        Ok(())
    }

    fn pointer(&self, ty: &Type) -> Result<(), String> {
        if ty.is_ptr() { Ok(()) } else { Err(format!("type {ty} is no pointer")) }
    }

    fn permute(&self, order: &[u8], from: &Type, to: &Type) -> Result<(), String> {
        let mut seen = vec![false; from.shape.len()];
        for &axis in order {
            match seen.get_mut(usize::from(axis)) {
                Some(s) if !*s => *s = true,
                _ => return Err("is no permutation".into()),
            }
        }
        let shape: Vec<u32> = order.iter().map(|&a| from.shape[usize::from(a)]).collect();
        if order.len() == from.shape.len() && *to == from.with_shape(&shape) {
            Ok(())
        } else {
            Err("the result has another shape".into())
        }
    }

    fn dot(&self, a: &[&Type], r: &Type) -> Result<(), String> {
        let rank = a[0].shape.len();
        if !(2..=3).contains(&rank)
            || a[1].shape.len() != rank
            || a[2] != r
            || r.shape.len() != rank
        {
            return Err("takes matrices".into());
        }
        let lane = Lane::of(r);
        if a[0].elem() != a[1].elem() || Lane::of(a[0]) != lane {
            return Err(format!("types {} and {} do not make {r}", a[0], a[1]));
        }
        let (x, y) = (&a[0].shape, &a[1].shape);
        let batch = rank == 2 || (x[0] == y[0] && r.shape[0] == x[0]);
        if batch
            && x[rank - 1] == y[rank - 2]
            && r.shape[rank - 2] == x[rank - 2]
            && r.shape[rank - 1] == y[rank - 1]
        {
            Ok(())
        } else {
            Err("shapes do not fit".into())
        }
    }
}

fn without_axis(ty: &Type, axis: u8) -> Result<Type, String> {
    let axis = usize::from(axis);
    if axis >= ty.shape.len() {
        return Err("axis out of range".into());
    }
    let mut shape = ty.shape.clone();
    shape.remove(axis);
    Ok(ty.with_shape(&shape))
}

fn same(x: &Type, y: &Type) -> Result<(), String> {
    if x == y { Ok(()) } else { Err(format!("type {x} where {y} belongs")) }
}

fn mask_for(mask: &Type, of: &Type) -> Result<(), String> {
    same(mask, &of.with_elem(Elem::I1))
}
