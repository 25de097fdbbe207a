//! Inputs that PyTorch takes: indices that lie inside what they index, bounds that their type can hold.
//!
//! The statistics of a model say what an index was there. A piece is run alone, and its variants have other sizes, so what
//! counts is how the piece itself uses an argument: a place in a table, a class, a row. That is followed backwards from the
//! operation that looks something up to the arguments, through views, conversions and arithmetic with known numbers.

use passnet_graph::dtype::Kind;
use passnet_graph::infer::{Dim, Inference, TensorType, Value};
use passnet_graph::ops::{Bound, Class, Op};
use passnet_graph::read::{GraphFolder, Number, TensorMeta};
use passnet_graph::stats::{self, Stats};
use passnet_graph::{Arg, DType, NodeId};

/// Whole numbers that a value may have, both ends included.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Span {
    min: f64,
    max: f64,
}

impl Span {
    /// The places of something with so many elements.
    fn places(size: i64) -> Self {
        Span { min: 0.0, max: size as f64 - 1.0 }
    }

    /// The same with places counted from the end.
    fn signed_places(size: i64) -> Self {
        Span { min: -(size as f64), max: size as f64 - 1.0 }
    }

    fn and(self, other: Span) -> Span {
        Span { min: self.min.max(other.min), max: self.max.min(other.max) }
    }

    fn is_empty(self) -> bool {
        self.min > self.max
    }
}

/// Gives the arguments of a piece bounds with which the piece can be run. What is recorded stays where it is legal.
pub fn legalise(folder: &mut GraphFolder, types: &Inference) {
    for meta in &mut folder.metas {
        meta.min_val = held(meta.min_val, meta.dtype);
        meta.max_val = held(meta.max_val, meta.dtype);
    }
    let looks_up = |op: Op| {
        let is_loss = matches!(
            op,
            Op::CrossEntropy
                | Op::NllLoss
                | Op::MultiMarginLoss
                | Op::CtcLoss
                | Op::BinaryCrossEntropy
        );
        is_loss || op.class() == Class::Indexing
    };
    if !folder.graph.calls().any(|(_, call)| call.op().is_some_and(looks_up)) {
        return;
    }
    let spans = Spans::of(folder, types);
    for (meta, span) in folder.metas.iter_mut().zip(spans.values) {
        if let Some(span) = span.filter(|span| !span.is_empty()) {
            restrict(meta, span);
        }
    }
}

/// A bound that was recorded for a wider type, such as that of an attention mask, inside what a half type can hold.
pub(crate) fn held(bound: Option<Number>, dtype: DType) -> Option<Number> {
    let (Some(most), Some(number)) = (largest(dtype), bound) else { return bound };
    let value = match number {
        Number::Float(value) => value,
        Number::Int(value) => value as f64,
        Number::Bool(_) => return bound,
    };
    match value.abs() > most {
        true => Some(Number::Float(value.clamp(-most, most))),
        false => bound,
    }
}

/// The largest finite number of a half type; other types hold whatever is recorded for them.
pub(crate) fn largest(dtype: DType) -> Option<f64> {
    match dtype {
        DType::Float16 => Some(65_504.0),
        DType::BFloat16 => Some(3.389_531_389_251_535_5e38),
        _ => None,
    }
}

fn restrict(meta: &mut TensorMeta, span: Span) {
    let inside = |value: f64| span.min <= value && value <= span.max;
    let bounds = (meta.min_val.map(|n| n.as_f64()), meta.max_val.map(|n| n.as_f64()));
    // Integers with both bounds are drawn between them, whatever else is recorded.
    let is_drawn_by_bounds =
        meta.dtype.kind() == Kind::Integer && bounds.0.is_some() && bounds.1.is_some();
    if let Some(data) = meta.data.as_ref().filter(|_| !is_drawn_by_bounds) {
        if data.iter().all(|value| inside(value.as_f64())) {
            return;
        }
        meta.data = None;
    }
    let recorded =
        Span { min: bounds.0.unwrap_or(f64::NEG_INFINITY), max: bounds.1.unwrap_or(f64::INFINITY) };
    let both = recorded.and(span);
    let span = if both.is_empty() { span } else { both };
    let number = |value: f64| match meta.dtype.kind() {
        Kind::Integer => Some(Number::Int(value as i64)),
        Kind::Float => Some(Number::Float(value)),
        Kind::Bool | Kind::Complex => None,
    };
    (meta.min_val, meta.max_val) = match (number(span.min), number(span.max)) {
        (Some(min), Some(max)) => (Some(min), Some(max)),
        _ => return,
    };
}

/// What every value of a graph may be, by how it is used.
struct Spans<'a> {
    types: &'a Inference,
    stats: Stats,
    values: Vec<Option<Span>>,
}

impl<'a> Spans<'a> {
    fn of(folder: &GraphFolder, types: &'a Inference) -> Self {
        let stats = stats::propagate(folder, types);
        let values = vec![None; folder.graph.nodes().len()];
        let mut spans = Self { types, stats, values };
        let calls: Vec<_> = folder.graph.calls().collect();
        for (id, call) in calls.into_iter().rev() {
            if let Ok(bound) = call.bind() {
                spans.look_up(id, &bound);
                if let Some(span) = spans.values[id.index()] {
                    spans.pass_on(span, &bound);
                }
            }
        }
        spans
    }

    fn tensor(&self, arg: &Arg) -> Option<&'a TensorType> {
        self.types.value(arg.as_node()?).as_tensor()
    }

    /// Asks for a value inside `span`.
    fn ask(&mut self, arg: &Arg, span: Span) {
        if let Some(id) = arg.as_node() {
            let known = &mut self.values[id.index()];
            *known = Some(known.map_or(span, |known| known.and(span)));
        }
    }

    /// What an operation looks up must be there.
    fn look_up(&mut self, id: NodeId, bound: &Bound<'_>) {
        match bound.op {
            Op::Embedding | Op::EmbeddingBag => {
                let rows = self.tensor(bound.arg("weight")).and_then(|weight| weight.shape.first());
                if let Some(rows) = rows.map(|rows| rows.size) {
                    self.ask(bound.arg("input"), Span::places(rows));
                }
            }
            Op::Gather
            | Op::IndexSelect
            | Op::Scatter
            | Op::ScatterAdd
            | Op::ScatterReduce
            | Op::IndexAdd
            | Op::IndexCopy
            | Op::IndexFill => {
                if let Some(size) = self.size_along(bound) {
                    self.ask(bound.arg("index"), Span::places(size));
                }
            }
            Op::TakeAlongDim => {
                if let Some(size) = self.size_along(bound) {
                    self.ask(bound.arg("indices"), Span::places(size));
                }
            }
            Op::Take => {
                if let Some(input) = self.tensor(bound.arg("input")) {
                    self.ask(bound.arg("index"), Span::signed_places(input.elements()));
                }
            }
            Op::OneHot => {
                let classes = self.types.value(id).as_tensor().and_then(|made| made.shape.last());
                if let Some(classes) = classes.map(|classes| classes.size) {
                    self.ask(bound.arg("tensor"), Span::places(classes));
                }
            }
            Op::CrossEntropy | Op::NllLoss | Op::MultiMarginLoss => {
                let is_class = self
                    .tensor(bound.arg("target"))
                    .is_some_and(|target| target.dtype.kind() == Kind::Integer);
                let shape = self.tensor(bound.arg("input")).map(|input| &input.shape);
                let classes = shape.and_then(|shape| shape.get(usize::from(shape.len() > 1)));
                if let Some(classes) = classes.map(|dim| dim.size).filter(|_| is_class) {
                    self.ask(bound.arg("target"), Span::places(classes));
                }
            }
            Op::MaxUnpool1d | Op::MaxUnpool2d | Op::MaxUnpool3d => {
                let spatial = match bound.op {
                    Op::MaxUnpool1d => 1,
                    Op::MaxUnpool2d => 2,
                    _ => 3,
                };
                if let Some(made) = self.types.value(id).as_tensor() {
                    let sizes = made.shape.iter().rev().take(spatial);
                    let places = sizes.fold(1, |n: i64, dim| n.saturating_mul(dim.size));
                    self.ask(bound.arg("indices"), Span::places(places));
                }
            }
            Op::CtcLoss => self.sequences(bound),
            // It refuses what is no probability.
            Op::BinaryCrossEntropy => self.ask(bound.arg("input"), Span { min: 0.0, max: 1.0 }),
            Op::GetItem | Op::SetItem => self.subscripts(bound.arg("input"), bound.arg("index")),
            Op::IndexTensors | Op::IndexPut => {
                self.subscripts(bound.arg("input"), bound.arg("indices"));
            }
            _ => {}
        }
    }

    /// Classes of a text, and lengths within what there is of it and of time.
    fn sequences(&mut self, bound: &Bound<'_>) {
        let Some(input) = self.tensor(bound.arg("log_probs")) else { return };
        let size = |dim: Option<&Dim>| dim.map_or(1, |dim| dim.size);
        self.ask(bound.arg("targets"), Span::places(size(input.shape.last())));
        self.ask(bound.arg("input_lengths"), Span::places(size(input.shape.first()) + 1));
        if let Some(targets) = self.tensor(bound.arg("targets")).filter(|it| it.rank() == 2) {
            let length = size(targets.shape.last());
            self.ask(bound.arg("target_lengths"), Span::places(length + 1));
        }
    }

    /// The size of the dimension that an operation looks things up in; all elements where it names none.
    fn size_along(&self, bound: &Bound<'_>) -> Option<i64> {
        let input = self.tensor(bound.arg("input"))?;
        let Some(dim) = bound.int("dim") else { return Some(input.elements()) };
        let rank = input.shape.len() as i64;
        let dim = usize::try_from(if dim < 0 { dim + rank } else { dim }).ok()?;
        // A scalar counts as one element.
        Some(input.shape.get(dim).map_or(1, |dim| dim.size))
    }

    /// `x[a, 1:2, None, b]`: each tensor among the subscripts holds places of the dimension where it stands.
    fn subscripts(&mut self, input: &Arg, index: &Arg) {
        let Some(input) = self.tensor(input) else { return };
        let items = match index {
            Arg::Tuple(items) | Arg::List(items) => items.as_slice(),
            one => std::slice::from_ref(one),
        };
        let taken = |item: &Arg| match (item, self.tensor(item)) {
            (_, Some(tensor)) if tensor.dtype == DType::Bool => tensor.shape.len(),
            (Arg::None | Arg::Ellipsis, _) => 0,
            _ => 1,
        };
        let mut dim = 0;
        let mut asked = Vec::new();
        let total: usize = items.iter().map(taken).sum();
        for item in items {
            if let (Some(tensor), Some(size)) = (self.tensor(item), input.shape.get(dim))
                && tensor.dtype.kind() == Kind::Integer
            {
                asked.push((item, size.size));
            }
            dim += match item {
                Arg::Ellipsis => input.shape.len().saturating_sub(total),
                item => taken(item),
            };
        }
        for (item, size) in asked {
            self.ask(item, Span::signed_places(size));
        }
    }

    /// What a result must be says what its operands must be.
    fn pass_on(&mut self, span: Span, bound: &Bound<'_>) {
        let Some(first) = bound.signature.params.first().map(|param| bound.arg(param.name)) else {
            return;
        };
        match bound.op {
            Op::Add | Op::Sub => {
                let (left, right) = (first, bound.arg("other"));
                let by = bound.float("alpha").unwrap_or(1.0)
                    * if bound.op == Op::Add { 1.0 } else { -1.0 };
                if let Some((min, max)) = self.bounds(right) {
                    let (least, most) =
                        if by < 0.0 { (max * by, min * by) } else { (min * by, max * by) };
                    self.ask(left, Span { min: span.min - least, max: span.max - most });
                }
                if let Some((min, max)) = self.bounds(left).filter(|_| by == 1.0) {
                    self.ask(right, Span { min: span.min - min, max: span.max - max });
                }
            }
            Op::Mul => {
                for (operand, other) in [(first, bound.arg("other")), (bound.arg("other"), first)] {
                    // The other operand only makes it larger, or leaves it out.
                    if let Some((_, most)) =
                        self.bounds(other).filter(|(min, max)| *min >= 0.0 && *max >= 1.0)
                    {
                        let span =
                            Span { min: (span.min / most).ceil(), max: (span.max / most).floor() };
                        self.ask(operand, span);
                    }
                }
            }
            Op::FloorDivide => {
                if let Some((by, _)) =
                    self.bounds(bound.arg("other")).filter(|(min, max)| min == max && *min >= 1.0)
                {
                    self.ask(first, Span { min: span.min * by, max: span.max * by + by - 1.0 });
                }
            }
            Op::Cumsum => {
                let count = self.size_along(bound).unwrap_or(1).max(1) as f64;
                self.ask(
                    first,
                    Span { min: (span.min / count).ceil(), max: (span.max / count).floor() },
                );
            }
            Op::Clamp | Op::ClampMin | Op::ClampMax | Op::MaskedFill => self.ask(first, span),
            Op::Where => {
                self.ask(bound.arg("input"), span);
                self.ask(bound.arg("other"), span);
            }
            Op::GetItem if !matches!(self.value(first), Some(Value::Tensor(_))) => {}
            Op::GetItem | Op::IndexSelect | Op::Gather | Op::TakeAlongDim => self.ask(first, span),
            _ if matches!(bound.class(), Class::View | Class::Movement) => {
                let mut nodes = Vec::new();
                first.for_each_node(&mut |id| nodes.push(id));
                nodes.into_iter().for_each(|id| self.ask(&Arg::Node(id), span));
            }
            _ => {}
        }
    }

    fn value(&self, arg: &Arg) -> Option<&'a Value> {
        arg.as_node().map(|id| self.types.value(id))
    }

    /// The least and the largest value of an operand, where both are known.
    fn bounds(&self, arg: &Arg) -> Option<(f64, f64)> {
        let (min, max) = match arg {
            Arg::Int(value) => (*value as f64, *value as f64),
            Arg::Float(value) => (*value, *value),
            Arg::Node(id) => self.stats.of(*id).map(|stat| (stat.min, stat.max))?,
            _ => return None,
        };
        (min.is_finite() && max.is_finite()).then_some((min, max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use passnet_graph::infer::infer_folder;
    use passnet_graph::read::read_folder;
    use passnet_graph::{FileName, GraphFiles};

    /// The bounds of `i` in a graph over a table `t` of ten rows of four and indices `i` that are recorded up to 1,000.
    fn bounds(body: &str) -> (f64, f64) {
        bounds_of("[6]", "    min_val = 0\n    max_val = 1000\n    data = None\n", body)
    }

    fn bounds_of(shape: &str, recorded: &str, body: &str) -> (f64, f64) {
        let lines: String = body.lines().map(|line| format!("        {}\n", line.trim())).collect();
        let model = format!(
            "import torch\n\nclass GraphModule(torch.nn.Module):\n    def forward(self, t, i):\n{lines}        return (out,)\n"
        );
        let class = |name: &str, shape: &str, dtype: &str, rest: &str| {
            format!(
                "class Program_weight_tensor_meta_{name}:\n    name = \"{name}\"\n    shape = {shape}\n    dtype = \"torch.{dtype}\"\n{rest}\n"
            )
        };
        let metas =
            class("t", "[10, 4]", "float32", "    mean = 0.0\n    std = 1.0\n    data = None\n")
                + &class("i", shape, "int64", recorded);
        let files =
            GraphFiles::new("g").with(FileName::Model, model).with(FileName::WeightMeta, metas);
        let mut folder = read_folder(&files).unwrap();
        let types = infer_folder(&folder);
        assert!(types.failures.is_empty(), "{:?}", types.failures);
        legalise(&mut folder, &types);
        let meta = &folder.metas[1];
        let number = |bound: Option<Number>| bound.map_or(f64::NAN, |bound| bound.as_f64());
        (number(meta.min_val), number(meta.max_val))
    }

    #[test]
    fn an_index_lies_inside_what_it_indexes() {
        let places = (0.0, 9.0);
        assert_eq!(bounds("out = torch.nn.functional.embedding(i, t)"), places);
        assert_eq!(bounds("out = torch.index_select(t, 0, i)"), places);
        assert_eq!(bounds("out = torch.index_select(t, -1, i)"), (0.0, 3.0));
        assert_eq!(bounds("out = t[i]"), places);
        assert_eq!(bounds("out = t[(slice(None, None, None), i)]"), (0.0, 3.0));
        assert_eq!(bounds("out = t[(Ellipsis, i)]"), (0.0, 3.0));
        assert_eq!(bounds("out = t[(None, i)]"), places);
        assert_eq!(bounds("out = torch.take(t, i)"), (0.0, 39.0));
        assert_eq!(bounds("j = i.view(6, 1)\nout = torch.gather(t, 1, j)"), (0.0, 3.0));
        assert_eq!(bounds("j = i.view(6, 1)\nout = torch.take_along_dim(t, j, 0)"), places);
        assert_eq!(bounds("out = torch.nn.functional.one_hot(i, 7)"), (0.0, 6.0));
        assert_eq!(bounds("u = t[slice(0, 6, None)]\nout = t.index_add(0, i, u)"), places);
        assert_eq!(
            bounds("j = i.view(6, 1)\nu = t[slice(0, 6, None)]\nout = torch.scatter(t, 1, j, u)"),
            (0.0, 3.0)
        );
    }

    #[test]
    fn a_loss_gets_what_it_takes() {
        let classes = "u = t[slice(0, 6, None)]\nout = torch.nn.functional.";
        assert_eq!(bounds(&format!("{classes}nll_loss(u, i)")), (0.0, 3.0));
        assert_eq!(bounds(&format!("{classes}multi_margin_loss(u, i)")), (0.0, 3.0));
        let unpooled = "u = t.reshape(1, 20, 2)\nj = i.view(1, 1, 6)\nv = u[slice(None, None, None), slice(0, 1, None)]\n\
            w = v.repeat(1, 1, 3)\nout = torch.nn.functional.max_unpool1d(w, j, 2)";
        assert_eq!(bounds(unpooled), (0.0, 11.0));
        let texts = "p = t.view(10, 1, 4)\nj = i.view(1, 6)\n\
            out = torch.nn.functional.ctc_loss(p, j, (10,), (6,))";
        assert_eq!(bounds(texts), (0.0, 3.0));
        let probabilities = "p = i.float()\nz = torch.zeros(6)\nout = torch.nn.functional.";
        assert_eq!(bounds(&format!("{probabilities}binary_cross_entropy(p, z)")), (0.0, 1.0));
        assert_eq!(
            bounds(&format!("{probabilities}binary_cross_entropy_with_logits(p, z)")),
            (0.0, 1000.0)
        );
    }

    #[test]
    fn the_way_from_an_argument_to_its_use_counts() {
        let found =
            |j: &str| bounds(&format!("j = {j}\nout = torch.nn.functional.embedding(j, t)"));
        assert_eq!(found("i.view(2, 3)"), (0.0, 9.0));
        assert_eq!(found("i + 2"), (0.0, 7.0));
        assert_eq!(found("i - 2"), (2.0, 11.0));
        assert_eq!(found("i * 3"), (0.0, 3.0));
        assert_eq!(found("i // 4"), (0.0, 39.0));
        assert_eq!(found("i.to(torch.int32)"), (0.0, 9.0));
        assert_eq!(found("torch.cat([i, i], 0)"), (0.0, 9.0));
        // The sum of six of them is a place, too.
        assert_eq!(found("torch.cumsum(i, 0)"), (0.0, 1.0));
        // Places of other values are known: they are those of an arange.
        assert_eq!(found("torch.arange(6) + i"), (0.0, 4.0));
        // What is looked up nowhere keeps what is recorded.
        assert_eq!(bounds("out = i + 1"), (0.0, 1000.0));
    }

    #[test]
    fn what_is_recorded_stays_where_it_is_legal() {
        let embedding = "out = torch.nn.functional.embedding(i, t)";
        let of = |recorded: &str| bounds_of("[3]", recorded, embedding);
        assert_eq!(of("    min_val = 2\n    max_val = 5\n    data = None\n"), (2.0, 5.0));
        let (min, max) = of("    data = [1, 9, 0]\n");
        assert!(min.is_nan() && max.is_nan(), "legal elements need no bounds");
        assert_eq!(of("    data = [1, 10, 0]\n"), (0.0, 9.0));
        assert_eq!(of("    min_val = 50\n    max_val = 60\n    data = None\n"), (0.0, 9.0));
        assert_eq!(of("    data = None\n"), (0.0, 9.0));
    }
}
