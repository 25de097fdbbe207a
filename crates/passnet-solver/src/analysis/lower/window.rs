//! Pooling and convolutions of single channels: folds over small windows that are unrolled inside the kernel.

use super::super::body::{Code, Fold, Guard, Kind, VarId};
use super::super::index::{Atom, Index};
use super::super::{Refusal, Size, refuse};
use super::{Lower, Wanted};
use crate::expression::{A, B, Expr, Formula};
use crate::products::MOST_WINDOW;
use passnet_graph::ops::{Bound, Op};
use passnet_graph::{Arg, NodeId};
use std::rc::Rc;

impl Lower<'_> {
    pub(super) fn window(&mut self, wanted: Wanted<'_, '_>) -> Result<VarId, Refusal> {
        let Wanted { bound, .. } = wanted;
        match bound.op {
            Op::AdaptiveAvgPool1d | Op::AdaptiveAvgPool2d | Op::AdaptiveAvgPool3d => {
                self.adaptive_average(wanted)
            }
            Op::MaxPool1d | Op::MaxPool2d | Op::AvgPool1d | Op::AvgPool2d => self.pool(wanted),
            Op::Interpolate => self.interpolate(wanted),
            _ => Err(self.unsupported(bound)),
        }
    }

    /// Adaptive pooling: a mean over what each element of the result stands for. Their windows overlap and differ in length where
    /// sizes do not divide: all are given as many steps as the longest may have, of which only those inside count.
    fn adaptive_average(&mut self, wanted: Wanted<'_, '_>) -> Result<VarId, Refusal> {
        let Wanted { node, bound, index } = wanted;
        let source = self.input_node(node, bound, "input")?;
        let from = self.piece.shape(source)?;
        let to = self.piece.shape(node)?;
        let pooled = match bound.op {
            Op::AdaptiveAvgPool1d => 1,
            Op::AdaptiveAvgPool2d => 2,
            _ => 3,
        };
        let first = from.len().saturating_sub(pooled);
        if to[first..].iter().all(|size| size.is(1)) {
            return self.global_average(wanted, source, &from, first);
        }
        // A computed input would be computed once for every window it lies in.
        if !self.piece.is_param(source) {
            refuse!("a window over computed values");
        }
        let mut place = index.to_vec();
        let mut guards = Vec::new();
        let mut lengths = Vec::new();
        let shares: Vec<Share> = (first..from.len())
            .map(|dim| self.share(&index[dim], &from[dim], &to[dim]))
            .collect::<Result<_, _>>()?;
        let sizes: Vec<Size> = shares.iter().map(|share| share.steps.clone()).collect();
        let loops = self.loops_for(index, &sizes)?;
        for (dim, (share, step)) in (first..).zip(shares.iter().zip(&loops)) {
            place[dim] = share.start.plus(step)?;
            match &share.end {
                None => lengths.push(self.extent(&share.steps)),
                Some(end) => {
                    let beyond = place[dim].plus(&end.times(&self.fixed(-1))?)?;
                    guards.push(Guard { index: beyond, low: None, high: Some(self.fixed(0)) });
                    let length = end.plus(&share.start.times(&self.fixed(-1))?)?;
                    lengths.push(self.place(&length));
                }
            }
        }
        let x = self.guarded(&guards, |lower| lower.pull(source, &place))?;
        let x = self.cast(x, Kind::Float);
        let x = self.inside_or(&guards, x, Expr::float(0.0));
        let mut mean = self.fold(Fold::Sum, x)?;
        for length in lengths {
            mean = self.compute(Kind::Float, A / B, &[mean, length]);
        }
        Ok(mean)
    }

    /// What an element of an adaptive pooling's result stands for along one dimension. That sizes divide in all graphs of the task
    /// settles nothing: a pattern matches other sizes, too, and no shape would tell.
    fn share(&self, index: &Index, from: &Size, to: &Size) -> Result<Share, Refusal> {
        if from.formula() == to.formula() {
            return Ok(Share { start: index.clone(), end: None, steps: self.fixed(1) });
        }
        if to.constant() == Some(1) {
            return Ok(Share { start: self.zero(), end: None, steps: from.clone() });
        }
        // A kernel counts in 32 bits, and this product is no place of any tensor.
        if from.plus(&self.fixed(1))?.times(to)?.largest() > i64::from(i32::MAX) {
            refuse!("places of an adaptive pooling beyond 32 bits");
        }
        let part =
            |place: Index| Index::atom(Atom::Div(Rc::new(place), to.clone()), self.piece.graphs);
        let scaled = index.times(from)?;
        let rounded_up = from.plus(to)?.minus(&self.fixed(1))?;
        let (start, end) = (part(scaled.clone()), part(scaled.offset(&rounded_up)?));
        // It begins and ends inside an element at most.
        let steps = from.whole_over(to)?.plus(&self.fixed(2))?;
        Ok(Share { start, end: Some(end), steps })
    }

    /// Adaptive pooling to one element: a mean.
    fn global_average(
        &mut self,
        wanted: Wanted<'_, '_>,
        source: NodeId,
        from: &[Size],
        first: usize,
    ) -> Result<VarId, Refusal> {
        let dims: Vec<usize> = (first..from.len()).collect();
        let place = self.place_in_source(wanted.index, from, &dims, true)?;
        let x = self.pull(source, &place)?;
        let x = self.cast(x, Kind::Float);
        let total = self.fold(Fold::Sum, x)?;
        let count = self.count(from, &dims)?;
        Ok(self.compute(Kind::Float, A / B, &[total, count]))
    }

    fn pool(&mut self, wanted: Wanted<'_, '_>) -> Result<VarId, Refusal> {
        let Wanted { node, bound, index } = wanted;
        let source = self.input_node(node, bound, "input")?;
        // A computed input would be computed once for every window it lies in.
        if !self.piece.is_param(source) {
            return Err(Refusal::new("a window over computed values"));
        }
        let from = self.piece.shape(source)?;
        let pooled = if matches!(bound.op, Op::MaxPool1d | Op::AvgPool1d) { 1 } else { 2 };
        let window = Window::of(bound, pooled).ok_or_else(|| self.unsupported(bound))?;
        let is_max = matches!(bound.op, Op::MaxPool1d | Op::MaxPool2d);
        let count = window.size.iter().product::<i64>();
        let plain = count <= MOST_WINDOW
            && !bound.flag("return_indices")
            && (is_max || (!bound.flag("ceil_mode") && bound.arg("divisor_override").is_none()));
        if !plain {
            return Err(self.unsupported(bound));
        }
        let first = from.len().saturating_sub(pooled);
        let reading = self.reading(index, &from, &window, bound.flag("ceil_mode"))?;
        let before = self.body.vars.len();
        let x = self.guarded(&reading.guards, |lower| lower.pull(source, &reading.place))?;
        let value = self.cast(x, Kind::Float);
        let fill = Expr::float(if is_max { f64::NEG_INFINITY } else { 0.0 });
        let value = self.inside_or(&reading.guards, value, fill);
        let fold = if is_max { Fold::Max } else { Fold::Sum };
        let total = self.over_window(node, fold, reading.loops, before, value);
        if is_max {
            return Ok(total);
        }
        let Window { size, stride, padding, .. } = window;
        let padded = padding.iter().any(|p| *p > 0);
        let include = !bound.has("count_include_pad") || bound.flag("count_include_pad");
        if include || !padded {
            return Ok(self.compute(Kind::Float, A / Expr::int(count), &[total]));
        }
        self.windowed_mean(total, index, &from, first, [&size, &stride, &padding])
    }

    /// A convolution that computes every channel from itself alone.
    pub(super) fn depthwise(&mut self, wanted: Wanted<'_, '_>) -> Result<VarId, Refusal> {
        let Wanted { node, bound, index } = wanted;
        let source = self.input_node(node, bound, "input")?;
        let weight = self.input_node(node, bound, "weight")?;
        // A computed input would be computed once for every window it lies in.
        if !self.piece.is_param(source) {
            refuse!("a window over computed values");
        }
        if !self.steps_along(index, source)? {
            refuse!("a window that is read across the direction of memory");
        }
        let from = self.piece.shape(source)?;
        let shape = self.piece.tensor(weight)?.shape[2..].iter().map(|size| size.size);
        let size: Vec<i64> = shape.collect();
        let window = Window::with(bound, size).ok_or_else(|| self.unsupported(bound))?;
        let Some(channel) = index.get(1).cloned() else { return Err(self.unsupported(bound)) };
        let reading = self.reading(index, &from, &window, false)?;
        let before = self.body.vars.len();
        let mut own = vec![channel.clone(), self.zero()];
        let step = |window: &(usize, i64)| Index::atom(Atom::Window(window.0), self.piece.graphs);
        own.extend(reading.loops.iter().map(step));
        let x = self.guarded(&reading.guards, |lower| lower.pull(source, &reading.place))?;
        let weight = self.pull(weight, &own)?;
        let (x, weight) = (self.cast(x, Kind::Float), self.cast(weight, Kind::Float));
        let value = self.compute(Kind::Float, A * B, &[x, weight]);
        // What lies outside adds nothing, whatever it is multiplied with.
        let value = self.inside_or(&reading.guards, value, Expr::float(0.0));
        let total = self.over_window(node, Fold::Sum, reading.loops, before, value);
        self.with_bias(node, bound, total, channel)
    }

    /// Whether the innermost loop goes through a parameter as memory does.
    fn steps_along(&self, index: &[Index], param: NodeId) -> Result<bool, Refusal> {
        let innermost = self.main.iter().flat_map(|index| self.axes_of(index)).max();
        let steps = self.piece.tensor(param)?.strides.iter().rposition(|stride| *stride == 1);
        let along = steps.and_then(|dim| index.get(dim));
        Ok(along
            .is_some_and(|index| innermost.is_some_and(|axis| self.axes_of(index).contains(&axis))))
    }

    /// Where a window reads its source at an index of its result.
    fn reading(
        &mut self,
        index: &[Index],
        from: &[Size],
        window: &Window,
        may_end_outside: bool,
    ) -> Result<Reading, Refusal> {
        let first = from.len().saturating_sub(window.size.len());
        let mut reading = Reading { place: index.to_vec(), loops: Vec::new(), guards: Vec::new() };
        for dim in 0..window.size.len() {
            let number = self.windows;
            self.windows += 1;
            reading.loops.push((number, window.size[dim]));
            let offset = Index::atom(Atom::Window(number), self.piece.graphs)
                .times(&self.fixed(window.dilation[dim]))?;
            let at = index[first + dim]
                .times(&self.fixed(window.stride[dim]))?
                .plus(&offset)?
                .offset(&self.fixed(-window.padding[dim]))?;
            if window.padding[dim] > 0 || may_end_outside {
                reading.guards.push(Guard {
                    index: at.clone(),
                    low: Some(self.fixed(0)),
                    high: Some(from[first + dim].clone()),
                });
            }
            reading.place[first + dim] = at;
        }
        Ok(reading)
    }

    /// A value where all conditions hold, and elsewhere a number.
    fn inside_or(&mut self, guards: &[Guard], value: VarId, fill: Formula) -> VarId {
        if guards.is_empty() {
            return value;
        }
        let inside = self.inside(guards);
        self.compute(Kind::Float, Expr::select(A, B, fill), &[inside, value])
    }

    /// The fold of a value over a window, for which everything since `before` is computed at each of its places.
    fn over_window(
        &mut self,
        node: NodeId,
        fold: Fold,
        loops: Vec<(usize, i64)>,
        before: usize,
        value: VarId,
    ) -> VarId {
        let body: Vec<VarId> = self.body.var_ids().skip(before).collect();
        let axes = body.iter().flat_map(|var| self.body.vars[*var].axes.clone()).collect();
        let name = self.fresh(self.piece.name(node));
        self.add(Some(name), Kind::Float, Code::Window { fold, loops, body, value }, axes)
    }

    /// The mean over the part of a window that lies inside the tensor.
    fn windowed_mean(
        &mut self,
        total: VarId,
        index: &[Index],
        from: &[Size],
        first: usize,
        [size, stride, padding]: [&[i64]; 3],
    ) -> Result<VarId, Refusal> {
        let mut divided = total;
        for dim in 0..size.len() {
            let start = index[first + dim]
                .times(&self.fixed(stride[dim]))?
                .offset(&self.fixed(-padding[dim]))?;
            let start = self.place(&start);
            let limit = self.extent(&from[first + dim].clone());
            let end = Expr::call("tl.minimum", [A + Expr::int(size[dim]), B]);
            let count = end - Expr::call("tl.maximum", [A, Expr::int(0)]);
            let count = self.compute(Kind::Int, count, &[start, limit]);
            divided = self.compute(Kind::Float, A / B, &[divided, count]);
        }
        Ok(divided)
    }
}

/// What a window reads.
struct Reading {
    /// The place in the source.
    place: Vec<Index>,
    /// The loops through the window.
    loops: Vec<(usize, i64)>,
    /// What holds where the place lies in the source.
    guards: Vec<Guard>,
}

/// What an element of an adaptive pooling's result stands for along one dimension.
struct Share {
    start: Index,
    /// The first place beyond it; none where it has all steps.
    end: Option<Index>,
    /// How many steps the longest may have.
    steps: Size,
}

/// How a window lies, one number for each dimension that it has.
struct Window {
    size: Vec<i64>,
    stride: Vec<i64>,
    padding: Vec<i64>,
    dilation: Vec<i64>,
}

impl Window {
    /// A pooling's; `None` where a number is not known, or there are too many or too few.
    fn of(bound: &Bound<'_>, pooled: usize) -> Option<Window> {
        let size = numbers(bound.arg("kernel_size"), pooled)?;
        Window::with(bound, size)
    }

    /// One of this size, which an operation moves.
    fn with(bound: &Bound<'_>, size: Vec<i64>) -> Option<Window> {
        let stride = match bound.arg("stride") {
            Arg::None => size.clone(),
            Arg::Tuple(items) | Arg::List(items) if items.is_empty() => size.clone(),
            arg => numbers(arg, size.len())?,
        };
        let list = |name: &str, usual: i64| match bound.arg(name) {
            Arg::None => Some(vec![usual; size.len()]),
            arg => numbers(arg, size.len()),
        };
        let padding = list("padding", 0)?;
        let dilation =
            if bound.has("dilation") { list("dilation", 1)? } else { vec![1; size.len()] };
        Some(Window { size, stride, padding, dilation })
    }
}

/// A number for each dimension, or one for all.
fn numbers(arg: &Arg, count: usize) -> Option<Vec<i64>> {
    let list: Vec<i64> = match arg.as_sequence() {
        Some([one]) => vec![one.as_int()?; count],
        Some(items) => items.iter().map(Arg::as_int).collect::<Option<_>>()?,
        None => vec![arg.as_int()?; count],
    };
    (list.len() == count).then_some(list)
}
