//! Copies to other places: concatenation, padding, rolling, flipping, repeating.

use super::super::body::{Code, Guard, Kind, VarId};
use super::super::index::Index;
use super::super::{Refusal, Size, refuse};
use super::{Lower, Wanted};
use crate::expression::{A, B, Binary, C, Expr, Formula, Literal};
use passnet_graph::Arg;
use passnet_graph::ops::{Bound, Op};

/// A join of more tensors than this is left alone: each of them is a branch.
const MAX_PARTS: usize = 8;

impl Lower<'_> {
    pub(super) fn movement(&mut self, wanted: Wanted<'_, '_>) -> Result<VarId, Refusal> {
        let Wanted { node, bound, index } = wanted;
        match bound.op {
            Op::Cat | Op::Stack => self.join(wanted),
            Op::Clone => self.input(node, bound, "input", index),
            Op::Copy => self.copied(wanted),
            Op::Pad | Op::ConstantPadNd => self.pad(wanted),
            Op::Roll => self.roll(wanted),
            Op::Flip => {
                let source = self.input_node(node, bound, "input")?;
                let from = self.piece.shape(source)?;
                let mut index = index.to_vec();
                for dim in bound.rest("dims") {
                    let dim = self.dim(dim, from.len())?;
                    let last = from[dim].minus(&self.fixed(1))?;
                    index[dim] = index[dim].times(&self.fixed(-1))?.offset(&last)?;
                }
                self.pull(source, &index)
            }
            Op::Repeat | Op::Tile => {
                let source = self.input_node(node, bound, "input")?;
                let from = self.piece.shape(source)?;
                let to = self.piece.shape(node)?;
                let skip = index.len() - from.len().min(index.len());
                let mut moved = Vec::with_capacity(from.len());
                for (dim, size) in from.iter().enumerate() {
                    let index = &index[skip + dim];
                    moved.push(if size.is(1) {
                        self.zero()
                    } else if size.same(&to[skip + dim]) {
                        index.clone()
                    } else {
                        self.divide(index, size)?.1
                    });
                }
                self.pull(source, &moved)
            }
            Op::RepeatInterleave => {
                let source = self.input_node(node, bound, "input")?;
                let rank = self.piece.shape(source)?.len();
                let repeats = bound.arg("repeats");
                let is_tensor = repeats.as_node().is_some_and(|node| self.piece.is_tensor(node));
                if is_tensor || bound.arg("dim").is_none() {
                    return Err(self.unsupported(bound));
                }
                let times = self.piece.size_arg(repeats)?;
                let dim = self.dim(bound.arg("dim"), rank)?;
                let mut index = index.to_vec();
                index[dim] = self.divide(&index[dim].clone(), &times)?.0;
                self.pull(source, &index)
            }
            Op::PixelShuffle => self.pixel_shuffle(wanted),
            Op::Diag => self.diagonal(wanted),
            Op::Tril | Op::Triu => {
                let value = self.input(node, bound, "input", index)?;
                let diagonal = bound.int("diagonal").unwrap_or(0);
                let [.., row, column] = index else { return Err(self.unsupported(bound)) };
                let distance = column.plus(&row.times(&self.fixed(-1))?)?;
                let place = self.place(&distance);
                let operator = if bound.op == Op::Tril { Binary::AtMost } else { Binary::AtLeast };
                let kind = self.kind(value);
                let is_kept = Expr::binary(operator, A, Expr::int(diagonal));
                let formula = Expr::select(is_kept, B, Expr::int(0));
                Ok(self.compute(kind, formula, &[place, value]))
            }
            _ => Err(self.unsupported(bound)),
        }
    }

    /// An index as a number.
    pub(super) fn place(&mut self, index: &Index) -> VarId {
        if let Some(number) = index.constant.constant().filter(|_| index.terms.is_empty()) {
            return self.number(Kind::Int, Literal::Int(number));
        }
        let axes = self.axes_of(index);
        self.add(None, Kind::Int, Code::Place(index.clone()), axes)
    }

    /// Evaluates under a condition: loads outside it are masked.
    pub(super) fn guarded<T>(
        &mut self,
        guards: &[Guard],
        evaluate: impl FnOnce(&mut Self) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let before = self.guards.len();
        self.guards.extend_from_slice(guards);
        let value = evaluate(self);
        self.guards.truncate(before);
        value
    }

    pub(super) fn inside(&mut self, guards: &[Guard]) -> VarId {
        let axes = guards.iter().flat_map(|guard| self.axes_of(&guard.index)).collect();
        self.add(None, Kind::Bool, Code::Inside(guards.to_vec()), axes)
    }

    fn join(&mut self, wanted: Wanted<'_, '_>) -> Result<VarId, Refusal> {
        let Wanted { node, bound, index } = wanted;
        let Some(items) = bound.arg("tensors").as_sequence() else {
            return Err(self.unsupported(bound));
        };
        if items.is_empty() || items.len() > MAX_PARTS {
            refuse!("a join of {} tensors", items.len());
        }
        let dim = self.dim(bound.arg("dim"), index.len())?;
        let kind = self.piece.kind(node)?;
        let mut parts: Vec<(Guard, VarId)> = Vec::new();
        let mut start = self.fixed(0);
        for (number, item) in items.iter().enumerate() {
            let Some(source) = self.argument(node, item) else {
                return Err(self.unsupported(bound));
            };
            let size = match bound.op {
                Op::Stack => self.fixed(1),
                _ => match self.piece.shape(source)?.get(dim) {
                    Some(size) => size.clone(),
                    None => refuse!("a join of tensors of other ranks"),
                },
            };
            let end = start.plus(&size)?;
            let guard = Guard {
                index: index[dim].clone(),
                low: (number > 0).then(|| start.clone()),
                high: (number + 1 < items.len()).then(|| end.clone()),
            };
            let guard = if self.liberty.may_join { self.decided(&guard)? } else { guard };
            let is_everywhere = match guard.settled() {
                // No element of this part is asked for.
                Some(false) => {
                    start = end;
                    continue;
                }
                settled => settled.is_some() || items.len() == 1,
            };
            let mut own = index.to_vec();
            if bound.op == Op::Stack {
                own.remove(dim);
            } else {
                own[dim] = own[dim].minus_size(&start)?;
            }
            let guards = if is_everywhere { &[] } else { std::slice::from_ref(&guard) };
            let value = self.guarded(guards, |lower| lower.pull(source, &own))?;
            let value = self.cast(value, kind);
            if is_everywhere {
                return Ok(value);
            }
            parts.push((guard, value));
            start = end;
        }
        // From the last part to the first: `where(index < end, part, what follows)`.
        let Some((_, mut value)) = parts.pop() else { return Err(self.unsupported(bound)) };
        while let Some((guard, part)) = parts.pop() {
            let upper = Guard { low: None, ..guard };
            let inside = self.inside(&[upper]);
            value = self.chosen(inside, part, value);
        }
        Ok(value)
    }

    fn pad(&mut self, wanted: Wanted<'_, '_>) -> Result<VarId, Refusal> {
        let Wanted { node, bound, index } = wanted;
        if bound.arg("mode").as_str().is_some_and(|mode| mode != "constant") {
            return Err(self.unsupported(bound));
        }
        let Some(widths) = bound.arg("pad").as_sequence() else {
            return Err(self.unsupported(bound));
        };
        let source = self.input_node(node, bound, "input")?;
        let from = self.piece.shape(source)?;
        let mut moved = index.to_vec();
        let mut guards = Vec::new();
        for (pair, widths) in widths.chunks(2).enumerate() {
            let [low, high] = widths else { return Err(self.unsupported(bound)) };
            let Some(dim) = from.len().checked_sub(pair + 1) else {
                return Err(self.unsupported(bound));
            };
            let (low, high) = (self.piece.size_arg(low)?, self.piece.size_arg(high)?);
            moved[dim] = moved[dim].minus_size(&low)?;
            if low.is(0) && high.is(0) {
                continue;
            }
            let guard = Guard {
                index: moved[dim].clone(),
                low: (low.largest() > 0).then(|| self.fixed(0)),
                high: (high.largest() > 0).then(|| from[dim].clone()),
            };
            match guard.settled() {
                Some(true) => {}
                Some(false) => {
                    let kind = self.piece.kind(node)?;
                    let fill = self.fill(bound, kind)?;
                    return Ok(self.compute(kind, fill, &[]));
                }
                None => guards.push(guard),
            }
        }
        let value = self.guarded(&guards, |lower| lower.pull(source, &moved))?;
        if guards.is_empty() {
            return Ok(value);
        }
        let kind = self.kind(value);
        let fill = self.fill(bound, kind)?;
        let inside = self.inside(&guards);
        Ok(self.compute(kind, Expr::select(A, B, fill), &[inside, value]))
    }

    /// What a padding puts around its input.
    fn fill(&self, bound: &Bound<'_>, kind: Kind) -> Result<Formula, Refusal> {
        let fill = match bound.arg("value") {
            Arg::None => 0.0,
            other => other.as_float().ok_or_else(|| self.unsupported(bound))?,
        };
        Ok(match kind {
            Kind::Float => Expr::float(fill),
            _ => Expr::int(fill as i64),
        })
    }

    fn roll(&mut self, wanted: Wanted<'_, '_>) -> Result<VarId, Refusal> {
        let Wanted { node, bound, index } = wanted;
        let source = self.input_node(node, bound, "input")?;
        let from = self.piece.shape(source)?;
        let list = |arg: &Arg| -> Option<Vec<i64>> {
            match arg.as_sequence() {
                Some(items) => items.iter().map(Arg::as_int).collect(),
                None => arg.as_int().map(|value| vec![value]),
            }
        };
        let (Some(shifts), Some(dims)) = (list(bound.arg("shifts")), list(bound.arg("dims")))
        else {
            return Err(self.unsupported(bound));
        };
        let mut moved = index.to_vec();
        for (shift, dim) in shifts.iter().zip(&dims) {
            let dim = self.dim(&Arg::Int(*dim), from.len())?;
            let size = &from[dim];
            if size.values().iter().any(|n| shift.abs() > *n) || *shift == 0 {
                return Err(self.unsupported(bound));
            }
            let by: Size =
                if *shift > 0 { size.minus(&self.fixed(*shift))? } else { self.fixed(-*shift) };
            moved[dim] = self.divide(&moved[dim].offset(&by)?, size)?.1;
        }
        self.pull(source, &moved)
    }

    /// A row on a diagonal with zeros around it, or the diagonal of a matrix.
    fn diagonal(&mut self, wanted: Wanted<'_, '_>) -> Result<VarId, Refusal> {
        let Wanted { node, bound, index } = wanted;
        let source = self.input_node(node, bound, "input")?;
        let offset = bound.int("diagonal").unwrap_or(0);
        let (below, above) =
            (self.fixed(offset.min(0).saturating_neg()), self.fixed(offset.max(0)));
        let from = self.piece.shape(source)?;
        let ([size], [row, column]) = (&from[..], index) else {
            let [place] = index else { return Err(self.unsupported(bound)) };
            return self.pull(source, &[place.offset(&below)?, place.offset(&above)?]);
        };
        // Of the two the one that is within the row wherever the other is.
        let place = if offset < 0 { column } else { row };
        let guards = match offset {
            0 => Vec::new(),
            _ => vec![Guard { index: place.clone(), low: None, high: Some(size.clone()) }],
        };
        let value =
            self.guarded(&guards, |lower| lower.pull(source, std::slice::from_ref(place)))?;
        let wanted = row.offset(&self.fixed(offset))?;
        let (column, wanted) = (self.place(column), self.place(&wanted));
        let kind = self.kind(value);
        let formula = Expr::select(A.equals(B), C, Expr::int(0));
        Ok(self.compute(kind, formula, &[column, wanted, value]))
    }

    fn pixel_shuffle(&mut self, wanted: Wanted<'_, '_>) -> Result<VarId, Refusal> {
        let Wanted { node, bound, index } = wanted;
        let factor = bound.int("upscale_factor").ok_or_else(|| self.unsupported(bound))?;
        let [batch @ .., channel, y, x] = index else { return Err(self.unsupported(bound)) };
        let by = self.fixed(factor);
        let (row, dy) = self.divide(y, &by)?;
        let (column, dx) = self.divide(x, &by)?;
        let channel = channel.times(&by)?.plus(&dy)?.times(&by)?.plus(&dx)?;
        let mut moved = batch.to_vec();
        moved.extend([channel, row, column]);
        self.input(node, bound, "input", &moved)
    }
}

impl Index {
    pub(super) fn minus_size(&self, by: &Size) -> Result<Index, Refusal> {
        Ok(Index { terms: self.terms.clone(), constant: self.constant.minus(by)? })
    }
}
