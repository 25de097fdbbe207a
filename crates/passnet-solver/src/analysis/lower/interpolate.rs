//! `interpolate`: elements of the source around a position that is computed, weighed by how near they are to it.

use super::super::body::{Kind, VarId};
use super::super::index::{Atom, Index};
use super::super::{Refusal, Size};
use super::{Lower, Wanted};
use crate::expression::{A, B, C, D, Expr, Formula, Literal, Type};
use passnet_graph::ops::{Bound, Class, Op, Value};
use passnet_graph::{Arg, NodeId};

/// How elements around a position become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// The element in whose part of the dimension the position lies; whether that is the part around the element's centre.
    Nearest {
        centred: bool,
    },
    Linear,
    Cubic,
}

/// Elements along a dimension among which a position lies, and what their values come to.
struct Neighbours {
    dim: usize,
    places: Vec<Index>,
    /// Over the values, in order, and behind them the weights.
    blend: Formula,
    weights: Vec<VarId>,
}

impl Lower<'_> {
    pub(super) fn interpolate(&mut self, wanted: Wanted<'_, '_>) -> Result<VarId, Refusal> {
        let Wanted { node, bound, index } = wanted;
        let mode = match bound.arg("mode").as_str() {
            Some("nearest") => Mode::Nearest { centred: false },
            Some("nearest-exact") => Mode::Nearest { centred: true },
            Some("linear" | "bilinear") => Mode::Linear,
            Some("bicubic") => Mode::Cubic,
            _ => return Err(self.unsupported(bound)),
        };
        let source = self.input_node(node, bound, "input")?;
        let from = self.piece.shape(source)?;
        let to = self.piece.shape(node)?;
        let keeps_size = |dim: usize| from[dim].same(&to[dim]);
        if (2..from.len()).all(keeps_size) && self.steps_are_whole(bound, from.len())? {
            return self.pull(source, index);
        }
        if matches!(mode, Mode::Nearest { .. }) {
            if let Some(place) = self.whole_steps(wanted, &from, &to)? {
                return self.pull(source, &place);
            }
        } else if bound.flag("antialias")
            || self.piece.kind(node)? != Kind::Float
            // A computed input would be computed once for every neighbour.
            || !self.is_only_read(source)
        {
            return Err(self.unsupported(bound));
        }
        let mut neighbours = Vec::new();
        for dim in 2..from.len() {
            // Of a size that stays torch takes cubic weights all the same.
            if keeps_size(dim) && mode == Mode::Linear {
                continue;
            }
            let at = self.place(&index[dim]);
            let at = self.cast(at, Kind::Float);
            let size = self.extent(&from[dim]);
            let step = self.step(bound, dim, [&from[dim], &to[dim]])?;
            neighbours.push(match mode {
                Mode::Nearest { centred } => self.nearest(dim, [at, step, size], centred),
                Mode::Linear => self.two_neighbours(bound, dim, [at, step, size]),
                Mode::Cubic => self.four_neighbours(bound, dim, [at, step, size]),
            });
        }
        self.blend(source, &mut index.to_vec(), &neighbours)
    }

    /// Whether a value is a parameter or a view of one: to read it again is all that it costs.
    fn is_only_read(&self, node: NodeId) -> bool {
        if self.piece.is_param(node) {
            return true;
        }
        let Some(bound) = self.piece.graph.call(node).and_then(|call| call.bind().ok()) else {
            return false;
        };
        let mut looks_up = false;
        bound.arg("index").for_each_node(&mut |place| looks_up |= self.piece.is_tensor(place));
        let is_view = bound.class() == Class::View || (bound.op == Op::GetItem && !looks_up);
        let source = bound.values.first().and_then(Value::arg);
        let source = source.and_then(|arg| self.argument(node, arg));
        is_view && bound.mutated().is_none() && source.is_some_and(|of| self.is_only_read(of))
    }

    /// Whether an interpolation that keeps all sizes gives its input back: not where a factor other than one was given for its steps.
    fn steps_are_whole(&self, bound: &Bound<'_>, rank: usize) -> Result<bool, Refusal> {
        let mut are_whole = true;
        for dim in 2..rank {
            are_whole &= bound.flag("align_corners")
                || self.scale(bound, dim)?.is_none_or(|scale| scale == 1.0);
        }
        Ok(are_whole)
    }

    /// Where the nearest element lies, if every dimension grows by a whole factor: the place is a quotient then.
    fn whole_steps(
        &mut self,
        wanted: Wanted<'_, '_>,
        from: &[Size],
        to: &[Size],
    ) -> Result<Option<Vec<Index>>, Refusal> {
        let Wanted { bound, index, .. } = wanted;
        let mut place = index.to_vec();
        for dim in 2..from.len() {
            let Some(factor) = to[dim].over(&from[dim]) else { return Ok(None) };
            let is_factor = |scale: f64| scale.fract() == 0.0 && factor.is(scale as i64);
            if !self.scale(bound, dim)?.is_none_or(is_factor) {
                return Ok(None);
            }
            place[dim] = self.divide(&place[dim].clone(), &factor)?.0;
        }
        Ok(Some(place))
    }

    /// The factor that was given for a dimension and that steps are made with; none where sizes were given.
    fn scale(&self, bound: &Bound<'_>, dim: usize) -> Result<Option<f64>, Refusal> {
        let given = bound.arg("scale_factor");
        let scale = match given.as_sequence() {
            _ if given.is_none() || bound.flag("recompute_scale_factor") => return Ok(None),
            Some([one]) => Some(one),
            Some(several) => several.get(dim - 2),
            None => Some(given),
        };
        let scale = scale.and_then(Arg::as_float).filter(|scale| *scale > 0.0);
        scale.map(Some).ok_or_else(|| self.unsupported(bound))
    }

    /// How many elements of the source there are for one of the result.
    fn step(
        &mut self,
        bound: &Bound<'_>,
        dim: usize,
        [from, to]: [&Size; 2],
    ) -> Result<VarId, Refusal> {
        if !bound.flag("align_corners")
            && let Some(scale) = self.scale(bound, dim)?
        {
            return Ok(self.number(Kind::Float, Literal::Float(1.0 / scale)));
        }
        let step = match bound.flag("align_corners") {
            true => {
                let steps = Expr::call("tl.maximum", [B - Expr::int(1), Expr::int(1)]);
                (A - Expr::int(1)) / steps
            }
            false => A / B,
        };
        let (from, to) = (self.extent(from), self.extent(to));
        Ok(self.compute(Kind::Float, step, &[from, to]))
    }

    /// The index that a whole number is.
    fn found(&self, place: VarId) -> Index {
        Index::atom(Atom::Value(place), self.piece.graphs)
    }

    fn nearest(&mut self, dim: usize, [at, step, size]: [VarId; 3], centred: bool) -> Neighbours {
        let position = if centred { (A + Expr::float(0.5)) * B } else { A * B };
        let whole = Expr::call("tl.floor", [position]).to(Type::Int64);
        let place = Expr::call("tl.minimum", [whole, C - Expr::int(1)]);
        let place = self.compute(Kind::Int, place, &[at, step, size]);
        Neighbours { dim, places: vec![self.found(place)], blend: A, weights: Vec::new() }
    }

    /// What lies before and behind a position, and how near it is to the second.
    fn two_neighbours(
        &mut self,
        bound: &Bound<'_>,
        dim: usize,
        [at, step, size]: [VarId; 3],
    ) -> Neighbours {
        let position = match bound.flag("align_corners") {
            true => A * B,
            false => Expr::call("tl.maximum", [centre(), Expr::float(0.0)]),
        };
        let position = self.compute(Kind::Float, position, &[at, step]);
        let whole = Expr::call("tl.floor", [A]).to(Type::Int64);
        let first = Expr::call("tl.minimum", [whole, B - Expr::int(1)]);
        let first = self.compute(Kind::Int, first, &[position, size]);
        let second = Expr::call("tl.minimum", [A + Expr::int(1), B - Expr::int(1)]);
        let second = self.compute(Kind::Int, second, &[first, size]);
        let nearness = Expr::call("tl.minimum", [A - B.to(Type::Float32), Expr::float(1.0)]);
        let nearness = self.compute(Kind::Float, nearness, &[position, first]);
        let blend = A * (Expr::float(1.0) - C) + B * C;
        let places = [first, second].map(|place| self.found(place)).into();
        Neighbours { dim, places, blend, weights: vec![nearness] }
    }

    /// Two elements on either side of a position, each with its weight; beyond the border lies the last one.
    fn four_neighbours(
        &mut self,
        bound: &Bound<'_>,
        dim: usize,
        [at, step, size]: [VarId; 3],
    ) -> Neighbours {
        let position = if bound.flag("align_corners") { A * B } else { centre() };
        let position = self.compute(Kind::Float, position, &[at, step]);
        let whole = self.compute(Kind::Float, Expr::call("tl.floor", [A]), &[position]);
        let first = self.compute(Kind::Int, A.to(Type::Int64), &[whole]);
        let after = self.compute(Kind::Float, A - B, &[position, whole]);
        let before = self.compute(Kind::Float, Expr::float(1.0) - A, &[after]);
        let mut places = Vec::new();
        for offset in [-1, 0, 1, 2] {
            let place = match offset {
                0 => A,
                ..0 => A - Expr::int(1),
                _ => A + Expr::int(offset),
            };
            let place = Expr::call("tl.maximum", [place, Expr::int(0)]);
            let place = Expr::call("tl.minimum", [place, B - Expr::int(1)]);
            let place = self.compute(Kind::Int, place, &[first, size]);
            places.push(self.found(place));
        }
        let outer = |lower: &mut Self, distance: VarId| {
            let distance = lower.compute(Kind::Float, A + Expr::float(1.0), &[distance]);
            lower.compute(Kind::Float, outer_weight(), &[distance])
        };
        let weights = vec![
            outer(self, after),
            self.compute(Kind::Float, inner_weight(), &[after]),
            self.compute(Kind::Float, inner_weight(), &[before]),
            outer(self, before),
        ];
        let weight = |number: usize| Expr::Value(4 + number);
        let blend = A * weight(0) + B * weight(1) + C * weight(2) + D * weight(3);
        Neighbours { dim, places, blend, weights }
    }

    fn blend(
        &mut self,
        source: NodeId,
        place: &mut Vec<Index>,
        neighbours: &[Neighbours],
    ) -> Result<VarId, Refusal> {
        let Some((own, others)) = neighbours.split_first() else {
            return self.pull(source, place);
        };
        let mut values = Vec::new();
        for neighbour in &own.places {
            place[own.dim] = neighbour.clone();
            values.push(self.blend(source, place, others)?);
        }
        if own.weights.is_empty() {
            return Ok(values[0]);
        }
        for value in &mut values {
            *value = self.cast(*value, Kind::Float);
        }
        values.extend(&own.weights);
        Ok(self.compute(Kind::Float, own.blend.clone(), &values))
    }
}

/// The position of the centre of an element of the result, numbered by the first operand, at steps as long as the second.
fn centre() -> Formula {
    B * (A + Expr::float(0.5)) - Expr::float(0.5)
}

/// The cubic weight of an element at most one away, with the parameter that torch takes: -0.75.
fn inner_weight() -> Formula {
    (Expr::float(1.25) * A - Expr::float(2.25)) * A * A + Expr::float(1.0)
}

/// The cubic weight of an element between one and two away.
fn outer_weight() -> Formula {
    let slope = Expr::float(3.75) - Expr::float(0.75) * A;
    (slope * A - Expr::float(6.0)) * A + Expr::float(3.0)
}
