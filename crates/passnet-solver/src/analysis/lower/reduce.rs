//! Folds over dimensions.

use super::super::body::{Code, Fold, GREATEST_INTEGER, Kind, Moments, VarId};
use super::super::index::{Atom, AxisId, Index};
use super::super::{Refusal, Size, refuse};
use super::{Lower, Wanted};
use crate::expression::{A, B, Binary, C, Expr, Formula, Type};
use passnet_graph::ops::{Bound, Op};
use passnet_graph::{Arg, NodeId};
use std::collections::BTreeSet;

impl Lower<'_> {
    pub(super) fn reduction(&mut self, wanted: Wanted<'_, '_>) -> Result<VarId, Refusal> {
        let Wanted { node, bound, index } = wanted;
        let source = self.input_node(node, bound, "input")?;
        let from = self.piece.shape(source)?;
        let dims = self.dims(bound, from.len())?;
        let keep = bound.flag("keepdim");
        let is_single = dims.iter().all(|dim| from[*dim].is(1));
        let gives_it_back =
            matches!(bound.op, Op::Sum | Op::Mean | Op::Amax | Op::Amin | Op::Max | Op::Min);
        if is_single && gives_it_back {
            let mut place = index.to_vec();
            if !keep {
                dims.iter().for_each(|dim| place.insert(*dim, self.zero()));
            }
            let only = self.pull(source, &place)?;
            return Ok(self.cast(only, self.piece.kind(node)?));
        }
        if bound.op == Op::Prod {
            return self.few_folded(wanted, source, &dims);
        }
        if self.is_short_sum(wanted, &from, &dims) {
            let total = self.few_folded(wanted, source, &dims)?;
            return self.mean_of(bound, total, &from, &dims);
        }
        let place = self.place_in_source(index, &from, &dims, keep)?;
        match bound.op {
            Op::Sum | Op::Mean => {
                let x = self.pull(source, &place)?;
                let x = match self.piece.kind(node)? {
                    Kind::Int => self.cast(x, Kind::Int),
                    _ => self.cast(x, Kind::Float),
                };
                let total = self.fold(Fold::Sum, x)?;
                self.mean_of(bound, total, &from, &dims)
            }
            Op::Amax | Op::Amin | Op::Max | Op::Min => {
                let x = self.pull(source, &place)?;
                self.extreme(x, matches!(bound.op, Op::Amax | Op::Max))
            }
            Op::Argmax | Op::Argmin => {
                let x = self.pull(source, &place)?;
                let along: Vec<Index> = dims.iter().map(|dim| place[*dim].clone()).collect();
                let sizes: Vec<Size> = dims.iter().map(|dim| from[*dim].clone()).collect();
                let along = self.linear(&along, &sizes)?;
                self.place_of_extreme(x, &along, bound.op == Op::Argmax)
            }
            Op::Any | Op::All => {
                let x = self.pull(source, &place)?;
                let x = self.cast(x, Kind::Bool);
                let x = self.cast(x, Kind::Float);
                let fold = if bound.op == Op::Any { Fold::Max } else { Fold::Min };
                let found = self.fold(fold, x)?;
                Ok(self.cast(found, Kind::Bool))
            }
            Op::Logsumexp => self.logsumexp(source, &place),
            Op::Var | Op::Std => self.variance(source, bound, &from, &dims, &place),
            Op::Norm | Op::LinalgNorm | Op::VectorNorm => self.euclidean(source, bound, &place),
            _ => Err(self.unsupported(bound)),
        }
    }

    /// A sum, or the mean that was asked for.
    fn mean_of(
        &mut self,
        bound: &Bound<'_>,
        total: VarId,
        from: &[Size],
        dims: &[usize],
    ) -> Result<VarId, Refusal> {
        if bound.op == Op::Sum {
            return Ok(total);
        }
        let count = self.count(from, dims)?;
        Ok(self.compute(Kind::Float, A / B, &[total, count]))
    }

    fn logsumexp(&mut self, source: NodeId, place: &[Index]) -> Result<VarId, Refusal> {
        let x = self.pull(source, place)?;
        let x = self.cast(x, Kind::Float);
        let largest = self.fold(Fold::Max, x)?;
        // The largest of infinities would be taken from itself.
        let is_infinite = Expr::call("tl.abs", [A]).equals(Expr::float(f64::INFINITY));
        let shift = Expr::select(is_infinite, Expr::float(0.0), A);
        let shift = self.compute(Kind::Float, shift, &[largest]);
        let power = Expr::call("tl.exp", [A - B]);
        let power = self.compute(Kind::Float, power, &[x, shift]);
        let total = self.fold(Fold::Sum, power)?;
        let formula = Expr::call("tl.log", [A]) + B;
        Ok(self.compute(Kind::Float, formula, &[total, shift]))
    }

    fn euclidean(
        &mut self,
        source: NodeId,
        bound: &Bound<'_>,
        place: &[Index],
    ) -> Result<VarId, Refusal> {
        let order = match bound.op {
            Op::Norm => bound.arg("p"),
            _ => bound.arg("ord"),
        };
        let is_euclidean =
            order.is_none() || order.as_float() == Some(2.0) || order.as_str() == Some("fro");
        if !is_euclidean {
            return Err(self.unsupported(bound));
        }
        let x = self.pull(source, place)?;
        let x = self.cast(x, Kind::Float);
        let squares = self.compute(Kind::Float, A * A, &[x]);
        let total = self.fold(Fold::Sum, squares)?;
        Ok(self.compute(Kind::Float, Expr::call("tl.sqrt", [A]), &[total]))
    }

    /// The largest or smallest value of a row.
    fn extreme(&mut self, x: VarId, largest: bool) -> Result<VarId, Refusal> {
        let found = self.fold(if largest { Fold::Max } else { Fold::Min }, x)?;
        if self.kind(x) != Kind::Float {
            return Ok(found);
        }
        // A fold of a GPU leaves NaN out, which torch gives back.
        let is_nan = self.compute(Kind::Float, A.differs(A).to(Type::Float32), &[x]);
        let has_nan = self.fold(Fold::Max, is_nan)?;
        let formula = Expr::select(A.differs(Expr::int(0)), Expr::float(f64::NAN), B);
        Ok(self.compute(Kind::Float, formula, &[has_nan, found]))
    }

    /// What `max` and `min` give along a dimension: the values, or their places.
    pub(super) fn extreme_along(
        &mut self,
        list: NodeId,
        bound: &Bound<'_>,
        which: usize,
        index: &[Index],
    ) -> Result<VarId, Refusal> {
        let source = self.input_node(list, bound, "input")?;
        let from = self.piece.shape(source)?;
        if from.is_empty() {
            return Err(self.unsupported(bound));
        }
        let dim = self.dim(bound.arg("dim"), from.len())?;
        let place = self.place_in_source(index, &from, &[dim], bound.flag("keepdim"))?;
        let x = self.pull(source, &place)?;
        let largest = bound.op == Op::Max;
        match which {
            0 => self.extreme(x, largest),
            _ => self.place_of_extreme(x, &place[dim], largest),
        }
    }

    /// The first place of the largest or smallest value, or of the first value that is no number.
    fn place_of_extreme(
        &mut self,
        x: VarId,
        along: &Index,
        largest: bool,
    ) -> Result<VarId, Refusal> {
        if !self.is_exact(x) {
            refuse!("the place of an extreme of what is computed before it hangs on the last bit");
        }
        let x = if self.kind(x) == Kind::Bool { self.cast(x, Kind::Int) } else { x };
        let found = self.fold(if largest { Fold::Max } else { Fold::Min }, x)?;
        let place = self.place(along);
        let place = self.wide(place);
        let nowhere = || Expr::int(GREATEST_INTEGER);
        let first = |lower: &mut Self, condition: Formula, operands: &[VarId]| {
            let formula = Expr::select(condition, A, nowhere());
            let candidate = lower.compute(Kind::Int, formula, operands);
            lower.fold(Fold::Min, candidate)
        };
        let extreme = first(self, B.equals(C), &[place, x, found])?;
        if self.kind(x) != Kind::Float {
            return Ok(extreme);
        }
        let missing = first(self, B.differs(B), &[place, x])?;
        let formula = Expr::select(A.below(nowhere()), A, B);
        Ok(self.compute(Kind::Int, formula, &[missing, extreme]))
    }

    /// Whether a value has the same bits in a kernel as in eager: read, chosen or converted, and rounded by one sum or product at
    /// the most. Functions, quotients and longer sums do not promise that.
    pub(super) fn is_exact(&self, var: VarId) -> bool {
        let mut roundings: Vec<Option<usize>> = Vec::new();
        for id in self.body.var_ids().take(var.index() + 1) {
            let known = &self.body.vars[id];
            let own = match &known.code {
                Code::Compute { formula, .. } => roundings_of(formula, known.kind),
                Code::Reduce { fold: Fold::Sum, .. } | Code::Scan { .. } | Code::Window { .. } => {
                    None
                }
                _ => Some(0),
            };
            let operands = self.body.operands(id);
            let all = operands.iter().map(|operand| roundings[operand.index()]);
            roundings.push(all.fold(own, |sum, operand| Some(sum? + operand?)));
        }
        roundings.last().copied().flatten().is_some_and(|count| count <= 1)
    }

    fn variance(
        &mut self,
        source: NodeId,
        bound: &Bound<'_>,
        from: &[Size],
        dims: &[usize],
        place: &[Index],
    ) -> Result<VarId, Refusal> {
        let correction = match bound.has("unbiased") {
            true => i64::from(bound.arg("unbiased").as_bool().unwrap_or(true)),
            false => bound.int("correction").unwrap_or(1),
        };
        let x = self.pull(source, place)?;
        let x = self.cast(x, Kind::Float);
        let (_, squares) = self.moments(x, from, dims)?;
        let count = self.count(from, dims)?;
        let variance = A / (B - Expr::int(correction));
        let formula = match bound.op {
            Op::Var => variance,
            _ => Expr::call("tl.sqrt", [variance]),
        };
        Ok(self.compute(Kind::Float, formula, &[squares, count]))
    }

    /// The centred values and the sum of their squares.
    pub(super) fn moments(
        &mut self,
        x: VarId,
        from: &[Size],
        dims: &[usize],
    ) -> Result<(VarId, VarId), Refusal> {
        let count = self.count(from, dims)?;
        let total = self.fold(Fold::Sum, x)?;
        let mean = self.compute(Kind::Float, A / B, &[total, count]);
        let centred = self.compute(Kind::Float, A - B, &[x, mean]);
        let name = self.fresh("centred");
        self.body.vars[centred].name = Some(name);
        let squares = self.compute(Kind::Float, A * A, &[centred]);
        let sum = self.fold(Fold::Sum, squares)?;
        self.body.moments.push(Moments { total, mean, squares: sum });
        Ok((centred, sum))
    }

    pub(super) fn count(&mut self, from: &[Size], dims: &[usize]) -> Result<VarId, Refusal> {
        let sizes: Vec<Size> = dims.iter().map(|dim| from[*dim].clone()).collect();
        let size = self.elements(&sizes)?;
        Ok(self.extent(&size))
    }

    pub(super) fn fold(&mut self, fold: Fold, value: VarId) -> Result<VarId, Refusal> {
        let kind = self.kind(value);
        if kind == Kind::Bool {
            refuse!("a fold of truth values");
        }
        let value = if kind == Kind::Int { self.wide(value) } else { value };
        let Some(reduced) = &self.reduced else { refuse!("no loop to fold") };
        let axes = self.body.vars[value].axes.difference(reduced).copied().collect();
        Ok(self.add(None, kind, Code::Reduce { fold, value }, axes))
    }

    /// A whole number in 64 bits, as torch sums them; and what is put in its place beyond a row's end fits.
    pub(super) fn wide(&mut self, var: VarId) -> VarId {
        let wide = A.to(Type::Int64);
        match &self.body.vars[var].code {
            code if code.as_literal().is_some() => var,
            Code::Compute { formula, .. } if *formula == wide => var,
            _ => self.compute(Kind::Int, wide, &[var]),
        }
    }

    /// The dimensions a reduction folds, in order; all of them where none is named.
    fn dims(&self, bound: &Bound<'_>, rank: usize) -> Result<Vec<usize>, Refusal> {
        let arg = bound.arg("dim");
        let mut dims = match arg.as_sequence() {
            Some(items) => {
                items.iter().map(|dim| self.dim(dim, rank)).collect::<Result<Vec<_>, _>>()?
            }
            None if arg.is_none() => Vec::new(),
            None => vec![self.dim(arg, rank)?],
        };
        if dims.is_empty() {
            dims = (0..rank).collect();
        }
        dims.sort_unstable();
        dims.dedup();
        Ok(dims)
    }

    /// The index into what is folded: the result's, with the folded loops in the folded dimensions.
    pub(super) fn place_in_source(
        &mut self,
        index: &[Index],
        from: &[Size],
        dims: &[usize],
        keep: bool,
    ) -> Result<Vec<Index>, Refusal> {
        let mut outer = index.iter();
        let mut place: Vec<Option<Index>> = Vec::with_capacity(from.len());
        for dim in 0..from.len() {
            if dims.contains(&dim) {
                if keep {
                    outer.next();
                }
                place.push(None);
            } else {
                let Some(index) = outer.next() else { refuse!("a reduction has another rank") };
                place.push(Some(index.clone()));
            }
        }
        let sizes: Vec<Size> = dims.iter().map(|dim| from[*dim].clone()).collect();
        let loops = self.loops_for(index, &sizes)?;
        let mut loops = loops.into_iter();
        place
            .into_iter()
            .map(|index| match index {
                Some(index) => Ok(index),
                None => loops.next().ok_or_else(|| Refusal::new("too few folded loops")),
            })
            .collect()
    }

    /// Loops to fold: those already folded, those of the main output that the result does not vary with, or new ones.
    pub(super) fn loops_for(
        &mut self,
        index: &[Index],
        sizes: &[Size],
    ) -> Result<Vec<Index>, Refusal> {
        let mut used = BTreeSet::new();
        for index in index {
            used.extend(self.axes_of(index));
        }
        // A loop that decides whether the fold is wanted at all is not the fold's own.
        for guard in &self.guards {
            used.extend(self.axes_of(&guard.index));
        }
        let main_sizes = self.main_sizes()?;
        let mut dims = self.main.iter().zip(&main_sizes);
        let mut found: Vec<Index> = Vec::new();
        for size in sizes {
            let fits = dims.find(|(index, own)| {
                own.same(size) && self.axes_of(index).iter().all(|axis| !used.contains(axis))
            });
            match fits {
                Some((index, _)) => found.push(index.clone()),
                None => break,
            }
        }
        if found.len() < sizes.len() {
            found = match &self.folded {
                None => {
                    self.folded = Some(sizes.iter().map(|size| vec![size.clone()]).collect());
                    refuse!("loops to fold are added");
                }
                Some(_) => self.folded_loops(sizes)?,
            };
        }
        let axes: BTreeSet<AxisId> = found.iter().flat_map(|index| self.axes_of(index)).collect();
        if axes.iter().any(|axis| used.contains(axis)) {
            refuse!("a reduction of a reduction over the same loops");
        }
        self.decide(axes)?;
        Ok(found)
    }

    fn folded_loops(&self, sizes: &[Size]) -> Result<Vec<Index>, Refusal> {
        let own: Vec<Size> = self
            .folded
            .iter()
            .flatten()
            .map(|parts| self.elements(parts))
            .collect::<Result<_, _>>()?;
        let same = own.len() == sizes.len() && own.iter().zip(sizes).all(|(a, b)| a.same(b));
        if !same {
            refuse!("reductions over different dimensions");
        }
        Ok(self.folded_index.clone())
    }

    /// All reductions of a kernel fold the same loops.
    pub(super) fn decide(&mut self, axes: BTreeSet<AxisId>) -> Result<(), Refusal> {
        match &self.reduced {
            None => {
                self.reduced = Some(axes);
                Ok(())
            }
            Some(known) if *known == axes => Ok(()),
            Some(_) => Err(Refusal::new("reductions over different loops")),
        }
    }

    /// Folds dimensions that the result still has: softmax and norms. Their indices must be whole loops.
    pub(super) fn fold_dims(
        &mut self,
        index: &[Index],
        from: &[Size],
        dims: &[usize],
    ) -> Result<(), Refusal> {
        let mut axes = BTreeSet::new();
        for dim in dims {
            let index = &index[*dim];
            let mut size = self.fixed(1);
            for (atom, _) in &index.terms {
                let Atom::Axis(axis) = atom else { refuse!("a normalised dimension is cut up") };
                axes.insert(*axis);
                size = size.times(&self.body.axes[*axis])?;
            }
            if !index.constant.is(0) || !size.same(&from[*dim]) {
                refuse!("a normalised dimension is used in part");
            }
        }
        for (dim, index) in index.iter().enumerate() {
            if !dims.contains(&dim) && self.axes_of(index).iter().any(|axis| axes.contains(axis)) {
                refuse!("a normalised dimension is mixed with another");
            }
        }
        self.decide(axes)
    }

    /// A whole number or a dimension list as dimensions.
    pub(super) fn dim_list(&self, arg: &Arg, rank: usize) -> Result<Vec<usize>, Refusal> {
        match arg.as_sequence() {
            Some(items) => items.iter().map(|dim| self.dim(dim, rank)).collect(),
            None => Ok(vec![self.dim(arg, rank)?]),
        }
    }
}

/// How often a formula rounds; `None` where it computes something whose last bit nobody promises.
fn roundings_of(formula: &Formula, kind: Kind) -> Option<usize> {
    const EXACT: [&str; 5] = ["tl.where", "tl.abs", "tl.minimum", "tl.maximum", "tl.floor"];
    let mut count = Some(0);
    formula.for_each(&mut |part| match part {
        Expr::Call(function, ..) if !EXACT.contains(function) => count = None,
        Expr::Binary(Binary::Over, ..) => count = None,
        Expr::Binary(Binary::Plus | Binary::Minus | Binary::Times, ..) if kind == Kind::Float => {
            count = count.map(|count| count + 1);
        }
        _ => {}
    });
    count
}
