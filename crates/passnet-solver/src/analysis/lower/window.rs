//! Pooling: folds over small windows that are unrolled inside the kernel.

use super::super::body::{Code, Fold, Guard, Kind, VarId};
use super::super::index::{Atom, Index};
use super::super::{Refusal, Size};
use super::{Lower, Wanted};
use crate::expression::{A, B, Expr};
use passnet_graph::Arg;
use passnet_graph::ops::{Bound, Op};

/// A window with more elements than this is a reduction of its own.
const MAX_WINDOW: i64 = 64;

impl Lower<'_> {
    pub(super) fn window(&mut self, wanted: Wanted<'_, '_>) -> Result<VarId, Refusal> {
        let Wanted { bound, .. } = wanted;
        match bound.op {
            Op::AdaptiveAvgPool1d | Op::AdaptiveAvgPool2d | Op::AdaptiveAvgPool3d => {
                self.global_average(wanted)
            }
            Op::MaxPool1d | Op::MaxPool2d | Op::AvgPool1d | Op::AvgPool2d => self.pool(wanted),
            Op::Interpolate => self.interpolate(wanted),
            _ => Err(self.unsupported(bound)),
        }
    }

    /// Adaptive pooling to one element: a mean.
    fn global_average(&mut self, wanted: Wanted<'_, '_>) -> Result<VarId, Refusal> {
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
        if to[first..].iter().any(|size| !size.is(1)) {
            return Err(self.unsupported(bound));
        }
        let dims: Vec<usize> = (first..from.len()).collect();
        let place = self.place_in_source(index, &from, &dims, true)?;
        let x = self.pull(source, &place)?;
        let x = self.cast(x, Kind::Float);
        let total = self.fold(Fold::Sum, x)?;
        let count = self.count(&from, &dims)?;
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
        let Window { size, stride, padding, dilation } =
            Window::of(bound, pooled).ok_or_else(|| self.unsupported(bound))?;
        let is_max = matches!(bound.op, Op::MaxPool1d | Op::MaxPool2d);
        let count = size.iter().product::<i64>();
        let plain = count <= MAX_WINDOW
            && !bound.flag("return_indices")
            && (is_max || (!bound.flag("ceil_mode") && bound.arg("divisor_override").is_none()));
        if !plain {
            return Err(self.unsupported(bound));
        }
        let first = from.len().saturating_sub(pooled);
        let mut place = index.to_vec();
        let mut loops = Vec::new();
        let mut guards = Vec::new();
        for dim in 0..pooled {
            let window = self.windows;
            self.windows += 1;
            loops.push((window, size[dim]));
            let offset = Index::atom(Atom::Window(window), self.piece.graphs)
                .times(&self.fixed(dilation[dim]))?;
            let at = index[first + dim]
                .times(&self.fixed(stride[dim]))?
                .plus(&offset)?
                .offset(&self.fixed(-padding[dim]))?;
            if padding[dim] > 0 || bound.flag("ceil_mode") {
                guards.push(Guard {
                    index: at.clone(),
                    low: Some(self.fixed(0)),
                    high: Some(from[first + dim].clone()),
                });
            }
            place[first + dim] = at;
        }
        let before = self.body.vars.len();
        let x = self.guarded(&guards, |lower| lower.pull(source, &place))?;
        let mut value = self.cast(x, Kind::Float);
        let fill = Expr::float(if is_max { f64::NEG_INFINITY } else { 0.0 });
        if !guards.is_empty() {
            let inside = self.inside(&guards);
            value = self.compute(Kind::Float, Expr::select(A, B, fill), &[inside, value]);
        }
        let body: Vec<VarId> = self.body.var_ids().skip(before).collect();
        let axes = body.iter().flat_map(|var| self.body.vars[*var].axes.clone()).collect();
        let fold = if is_max { Fold::Max } else { Fold::Sum };
        let name = self.fresh(self.piece.name(node));
        let code = Code::Window { fold, loops, body, value };
        let total = self.add(Some(name), Kind::Float, code, axes);
        if is_max {
            return Ok(total);
        }
        let padded = padding.iter().any(|p| *p > 0);
        let include = !bound.has("count_include_pad") || bound.flag("count_include_pad");
        if include || !padded {
            return Ok(self.compute(Kind::Float, A / Expr::int(count), &[total]));
        }
        self.windowed_mean(total, index, &from, first, [&size, &stride, &padding])
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

/// How a pooling's window lies, one number for each pooled dimension.
struct Window {
    size: Vec<i64>,
    stride: Vec<i64>,
    padding: Vec<i64>,
    dilation: Vec<i64>,
}

impl Window {
    /// `None` where a number is not known, or there are too many or too few.
    fn of(bound: &Bound<'_>, pooled: usize) -> Option<Window> {
        let list = |name: &str| -> Option<Vec<i64>> {
            let arg = bound.arg(name);
            match arg.as_sequence() {
                Some([one]) => Some(vec![one.as_int()?; pooled]),
                Some(items) => items.iter().map(Arg::as_int).collect(),
                None => Some(vec![arg.as_int()?; pooled]),
            }
        };
        let size = list("kernel_size")?;
        let stride = match bound.arg("stride") {
            Arg::None => size.clone(),
            Arg::Tuple(items) | Arg::List(items) if items.is_empty() => size.clone(),
            _ => list("stride")?,
        };
        let padding = list("padding").unwrap_or_else(|| vec![0; pooled]);
        let dilation = if bound.has("dilation") { list("dilation") } else { None };
        let dilation = dilation.unwrap_or_else(|| vec![1; pooled]);
        let is_whole =
            [&size, &stride, &padding, &dilation].iter().all(|list| list.len() == pooled);
        is_whole.then_some(Window { size, stride, padding, dilation })
    }
}
