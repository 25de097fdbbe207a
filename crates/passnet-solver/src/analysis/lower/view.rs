//! Views: the same elements under other indices.
//!
//! `passnet_graph::view` says which sizes and strides a view has, and inference asked it for the shapes used here. A kernel
//! is pulled from its outputs, so this file goes the other way: from an index of a view to the index of the same element in
//! its source, for the sizes of several graphs at once. There are no strides in it.

use super::super::body::{Kind, VarId};
use super::super::index::{Atom, Index};
use super::super::{Refusal, Size, refuse};
use super::order::Sorted;
use super::{Lower, Wanted};
use crate::expression::{A, B, Expr};
use passnet_graph::infer::Value;
use passnet_graph::ops::{Bound, Op};
use passnet_graph::{Arg, NodeId};

impl Lower<'_> {
    pub(super) fn view(&mut self, wanted: Wanted<'_, '_>) -> Result<VarId, Refusal> {
        let Wanted { node, bound, index } = wanted;
        let source = self
            .argument(
                node,
                match bound.values.first() {
                    Some(passnet_graph::ops::Value::Given(arg)) => arg,
                    _ => &Arg::None,
                },
            )
            .ok_or_else(|| self.unsupported(bound))?;
        let from = self.piece.shape(source)?;
        let rank = from.len();
        let moved = match bound.op {
            Op::View if bound.has("dtype") && !bound.arg("dtype").is_none() => {
                refuse!("`view` as another dtype")
            }
            Op::View | Op::ViewAs | Op::Reshape | Op::ReshapeAs | Op::Flatten | Op::Unflatten => {
                self.reshaped(index, &self.piece.shape(node)?, &from)?
            }
            Op::Transpose => {
                let (a, b) =
                    (self.dim(bound.arg("dim0"), rank)?, self.dim(bound.arg("dim1"), rank)?);
                let mut index = index.to_vec();
                index.swap(a, b);
                index
            }
            Op::TransposeMatrix | Op::ReverseDims => index.iter().rev().cloned().collect(),
            Op::MatrixTranspose if rank >= 2 => {
                let mut index = index.to_vec();
                index.swap(rank - 1, rank - 2);
                index
            }
            Op::Permute => {
                let mut source = vec![self.zero(); rank];
                for (place, dim) in bound.rest("dims").iter().enumerate() {
                    source[self.dim(dim, rank)?] = index[place].clone();
                }
                source
            }
            Op::Unsqueeze => {
                let mut index = index.to_vec();
                index.remove(self.dim(bound.arg("dim"), rank + 1)?);
                index
            }
            Op::Squeeze => self.with_ones(index, &self.piece.shape(node)?, &from)?,
            Op::Expand | Op::ExpandAs | Op::BroadcastTo => {
                self.broadcast_shape(&from, &self.piece.shape(node)?, index)?
            }
            Op::Narrow => {
                let dim = self.dim(bound.arg("dim"), rank)?;
                let start = self.start(bound.arg("start"), &from[dim])?;
                let mut index = index.to_vec();
                index[dim] = index[dim].offset(&start)?;
                index
            }
            Op::Select => {
                let dim = self.dim(bound.arg("dim"), rank)?;
                let mut index = index.to_vec();
                index.insert(dim, Index::constant(self.start(bound.arg("index"), &from[dim])?));
                index
            }
            Op::UnfoldDim if rank > 0 => {
                let dim = self.dim(bound.arg("dimension"), rank)?;
                if bound.int("step") < bound.int("size") && !self.piece.is_param(source) {
                    refuse!(
                        "what overlapping windows show would be computed once for each of them"
                    );
                }
                let step = self.piece.size_arg(bound.arg("step"))?;
                let Some((within, outer)) = index.split_last() else {
                    return Err(self.unsupported(bound));
                };
                let mut index = outer.to_vec();
                index[dim] = index[dim].times(&step)?.plus(within)?;
                index
            }
            Op::Detach | Op::RequiresGrad | Op::Contiguous => index.to_vec(),
            Op::To
            | Op::TypeAs
            | Op::Type
            | Op::Float
            | Op::Half
            | Op::Bfloat16
            | Op::Long
            | Op::Int
            | Op::Short
            | Op::Byte
            | Op::Bool
            | Op::Cuda
            | Op::Cpu => {
                let value = self.pull(source, index)?;
                return self.converted(node, value);
            }
            _ => return Err(self.unsupported(bound)),
        };
        self.pull(source, &moved)
    }

    /// A conversion: floats stay in float32 inside the kernel, whole numbers are cut.
    fn converted(&mut self, node: NodeId, value: VarId) -> Result<VarId, Refusal> {
        let to = self.piece.kind(node)?;
        Ok(self.cast(value, to))
    }

    /// The index of the source of a reshape.
    pub(super) fn reshaped(
        &mut self,
        index: &[Index],
        to: &[Size],
        from: &[Size],
    ) -> Result<Vec<Index>, Refusal> {
        let graphs = self.piece.graphs;
        let mut source = Vec::with_capacity(from.len());
        let (mut at, mut start) = (0, 0);
        while start < from.len() {
            // The smallest run of dimensions on both sides with the same number of elements.
            let mut end = start + 1;
            let mut here = from[start].clone();
            let first = at;
            let mut there = Size::fixed(1, graphs);
            while !there.same(&here) {
                let less = there.values().iter().zip(here.values()).all(|(a, b)| a < b);
                if less && at < to.len() {
                    there = there.times(&to[at])?;
                    at += 1;
                } else if end < from.len() {
                    here = here.times(&from[end])?;
                    end += 1;
                } else if at < to.len() {
                    there = there.times(&to[at])?;
                    at += 1;
                } else {
                    refuse!("a reshape does not fit");
                }
            }
            // A dimension of one stays with its neighbour of one.
            if first == at && at < to.len() && to[at].is(1) {
                at += 1;
            }
            if at == first + 1 && end == start + 1 {
                source.push(index[first].clone());
            } else {
                let mut rest = self.linear(&index[first..at], &to[first..at])?;
                let mut parts = Vec::new();
                for (place, size) in from[start..end].iter().enumerate().rev() {
                    if place == 0 {
                        parts.push(rest.clone());
                    } else {
                        let (quotient, remainder) = self.divide(&rest, size)?;
                        parts.push(remainder);
                        rest = quotient;
                    }
                }
                source.extend(parts.into_iter().rev());
            }
            start = end;
        }
        Ok(source)
    }

    /// Dimensions of one come or go.
    fn with_ones(
        &self,
        index: &[Index],
        to: &[Size],
        from: &[Size],
    ) -> Result<Vec<Index>, Refusal> {
        let mut rest = index.iter().zip(to).filter(|(_, size)| !size.is(1));
        from.iter()
            .map(|size| {
                if size.is(1) {
                    return Ok(self.zero());
                }
                match rest.next() {
                    Some((index, same)) if same.same(size) => Ok(index.clone()),
                    _ => Err(Refusal::new("dimensions of one do not line up")),
                }
            })
            .collect()
    }

    /// A start or an index along a dimension; negative ones count from the end.
    pub(super) fn start(&self, arg: &Arg, size: &Size) -> Result<Size, Refusal> {
        if arg.is_none() {
            return Ok(self.fixed(0));
        }
        let start = self.piece.size_arg(arg)?;
        let start = if start.values().iter().all(|v| *v < 0) { start.plus(size)? } else { start };
        let fits = start.values().iter().zip(size.values()).all(|(v, n)| *v >= 0 && v <= n);
        if fits { Ok(start) } else { Err(Refusal::new("a slice begins outside its tensor")) }
    }

    /// `x[...]`, gathers and embeddings.
    pub(super) fn indexing(&mut self, wanted: Wanted<'_, '_>) -> Result<VarId, Refusal> {
        let Wanted { node, bound, index } = wanted;
        match bound.op {
            Op::Embedding => self.embedding(wanted),
            Op::Gather | Op::IndexSelect => self.gather(wanted),
            Op::OneHot => self.one_hot(wanted),
            Op::SetItem => self.assigned(wanted),
            Op::GetItem => {
                let source = self.input_node(node, bound, "input")?;
                if self.is_list(source) {
                    return self.element(source, bound.arg("index"), index);
                }
                self.subscript(node, source, bound.arg("index"), index)
            }
            Op::IndexTensors => {
                let source = self.input_node(node, bound, "input")?;
                let indices = bound.arg("indices");
                // There, nothing stands for a whole dimension; in a subscript it makes a new one.
                let all_given = |items: &[Arg]| items.iter().all(|item| item.as_node().is_some());
                if !indices.as_sequence().is_some_and(all_given) {
                    return Err(self.unsupported(bound));
                }
                self.subscript(node, source, indices, index)
            }
            _ => Err(self.unsupported(bound)),
        }
    }

    fn embedding(&mut self, wanted: Wanted<'_, '_>) -> Result<VarId, Refusal> {
        let Wanted { node, bound, index } = wanted;
        if !bound.arg("max_norm").is_none() {
            return Err(self.unsupported(bound));
        }
        let Some((last, place)) = index.split_last() else { refuse!("a row has no elements") };
        let row = self.input(node, bound, "input", place)?;
        let table = self.input_node(node, bound, "weight")?;
        let row = Index::atom(Atom::Value(row), self.piece.graphs);
        self.pull(table, &[row, last.clone()])
    }

    /// One where the place along the last dimension is the class that was given, else zero.
    fn one_hot(&mut self, wanted: Wanted<'_, '_>) -> Result<VarId, Refusal> {
        let Wanted { node, bound, index } = wanted;
        let Some((class, place)) = index.split_last() else { return Err(self.unsupported(bound)) };
        let given = self.input(node, bound, "tensor", place)?;
        let class = self.place(class);
        let is_it = self.compute(Kind::Bool, A.equals(B), &[given, class]);
        Ok(self.cast(is_it, Kind::Int))
    }

    /// Every element by a place of its own along one dimension, or by one for all that lie there.
    fn gather(&mut self, wanted: Wanted<'_, '_>) -> Result<VarId, Refusal> {
        let Wanted { node, bound, index } = wanted;
        let source = self.input_node(node, bound, "input")?;
        let places = self.input_node(node, bound, "index")?;
        let dim = self.dim(bound.arg("dim"), self.piece.shape(source)?.len())?;
        let Some(along) = index.get(dim) else { refuse!("a gather from a single number") };
        let place = match bound.op {
            Op::Gather => self.pull(places, index)?,
            _ => {
                let rank = self.piece.shape(places)?.len();
                self.pull(places, &vec![along.clone(); rank.min(1)])?
            }
        };
        let mut moved = index.to_vec();
        moved[dim] = Index::atom(Atom::Value(place), self.piece.graphs);
        self.pull(source, &moved)
    }

    fn subscript(
        &mut self,
        node: NodeId,
        source: NodeId,
        subscript: &Arg,
        index: &[Index],
    ) -> Result<VarId, Refusal> {
        let from = self.piece.shape(source)?;
        let single = std::slice::from_ref(subscript);
        let items = subscript.as_sequence().unwrap_or(single);
        let consumed = items.iter().filter(|i| !matches!(i, Arg::None | Arg::Ellipsis)).count();
        let skipped = from.len().checked_sub(consumed);
        let Some(skipped) = skipped else { refuse!("too many indices") };
        let mut moved = Vec::with_capacity(from.len());
        let mut taken = index.iter();
        let mut next = || taken.next().cloned().ok_or_else(|| Refusal::new("too few indices"));
        let gathers = self.gathers(node, items)?;
        let mut gathered: Option<Vec<Index>> = None;
        for item in items {
            match item {
                Arg::None => {
                    next()?;
                }
                Arg::Ellipsis => {
                    for _ in 0..skipped {
                        moved.push(next()?);
                    }
                }
                Arg::Slice(parts) => {
                    let size = &from[moved.len()];
                    let step = match &parts[2] {
                        Arg::None => 1,
                        other => other.as_int().filter(|step| *step > 0).unwrap_or(0),
                    };
                    if step == 0 {
                        refuse!("a slice steps backwards");
                    }
                    let start = self.start(&parts[0], size)?;
                    moved.push(next()?.times(&self.fixed(step))?.offset(&start)?);
                }
                Arg::Int(_) => {
                    let size = &from[moved.len()];
                    moved.push(Index::constant(self.start(item, size)?));
                }
                Arg::Node(_) => {
                    let Some(place) = self.argument(node, item) else { refuse!("no index") };
                    if !self.piece.is_tensor(place) {
                        moved.push(Index::constant(self.piece.size_arg(item)?));
                        continue;
                    }
                    // Several gathers in one subscript broadcast against each other, in the place of the first.
                    let shared = match &gathered {
                        Some(shared) => shared.clone(),
                        None => gathers.iter().map(|_| next()).collect::<Result<Vec<_>, _>>()?,
                    };
                    let own = self.broadcast(place, &gathers, &shared)?;
                    gathered = Some(shared);
                    let size = from[moved.len()].clone();
                    let row = self.pull(place, &own)?;
                    let size = self.extent(&size);
                    let from_end = Expr::select(A.below(Expr::int(0)), A + B, A);
                    let row = self.compute(Kind::Int, from_end, &[row, size]);
                    moved.push(Index::atom(Atom::Value(row), self.piece.graphs));
                }
                _ => refuse!("a subscript of a kind that has no loop form"),
            }
        }
        for index in taken {
            moved.push(index.clone());
        }
        if moved.len() != from.len() {
            refuse!("a subscript does not fit its tensor");
        }
        self.pull(source, &moved)
    }

    /// The shape that the tensors of a subscript broadcast to. They must stand side by side: else torch moves what they
    /// give to the front.
    fn gathers(&self, node: NodeId, items: &[Arg]) -> Result<Vec<Size>, Refusal> {
        let mut shape: Vec<Size> = Vec::new();
        let mut places: Vec<usize> = Vec::new();
        for (number, item) in items.iter().enumerate() {
            let Some(place) = self.argument(node, item).filter(|id| self.piece.is_tensor(*id))
            else {
                continue;
            };
            if self.piece.kind(place)? != Kind::Int {
                refuse!("a subscript by masks");
            }
            places.push(number);
            let own = self.piece.shape(place)?;
            while shape.len() < own.len() {
                shape.insert(0, self.fixed(1));
            }
            let skip = shape.len() - own.len();
            for (size, own) in shape[skip..].iter_mut().zip(own) {
                if size.is(1) {
                    *size = own;
                }
            }
        }
        if places.windows(2).any(|pair| pair[1] != pair[0] + 1) {
            refuse!("tensors of a subscript that do not stand side by side");
        }
        Ok(shape)
    }

    /// One tensor of a grid: it varies with one dimension.
    fn grid(
        &mut self,
        list: NodeId,
        bound: &Bound<'_>,
        which: usize,
        index: &[Index],
    ) -> Result<VarId, Refusal> {
        let tensors = bound.rest("tensors");
        let tensors = match tensors {
            [one] => one.as_sequence().unwrap_or(tensors),
            _ => tensors,
        };
        let Some(source) = tensors.get(which).and_then(|arg| self.argument(list, arg)) else {
            refuse!("a grid of something that is no tensor")
        };
        let dim = match (bound.arg("indexing").as_str(), which) {
            (Some("xy"), 0) if tensors.len() > 1 => 1,
            (Some("xy"), 1) => 0,
            _ => which,
        };
        self.pull(source, &index[dim..=dim])
    }

    /// One tensor of a list that `chunk`, `split` or `unbind` makes.
    fn element(&mut self, list: NodeId, which: &Arg, index: &[Index]) -> Result<VarId, Refusal> {
        let Some(call) = self.piece.graph.call(list) else { refuse!("a list comes from outside") };
        let bound = call.bind().map_err(Refusal::new)?;
        let count = match self.piece.values(list).first() {
            Some(Value::Sequence(items)) => items.len(),
            _ => refuse!("no list"),
        };
        let which = self.dim(which, count)?;
        match bound.op {
            Op::Meshgrid => return self.grid(list, &bound, which, index),
            Op::Max | Op::Min => return self.extreme_along(list, &bound, which, index),
            Op::Sort => {
                let what = if which == 0 { Sorted::Values } else { Sorted::Places };
                return self.sorted(Wanted { node: list, bound: &bound, index }, what);
            }
            _ => {}
        }
        let first = match bound.values.first() {
            Some(passnet_graph::ops::Value::Given(arg)) => *arg,
            _ => &Arg::None,
        };
        let Some(source) = self.argument(list, first) else { refuse!("no tensor to take apart") };
        let from = self.piece.shape(source)?;
        let dim = self.dim(bound.arg("dim"), from.len())?;
        let mut index = index.to_vec();
        match bound.op {
            Op::Unbind => index.insert(dim, Index::fixed(which as i64, self.piece.graphs)),
            Op::Chunk | Op::Split | Op::TensorSplit => {
                let mut start = self.fixed(0);
                for earlier in 0..which {
                    start = start.plus(&self.piece.element_shape(list, earlier)?[dim])?;
                }
                index[dim] = index[dim].offset(&start)?;
            }
            _ => return Err(self.unsupported(&bound)),
        }
        self.pull(source, &index)
    }
}
