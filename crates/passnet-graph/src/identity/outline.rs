//! A graph reduced to what identity looks at: per call a stream of words and references, spelling removed.

use super::label::{Label, Mixer};
use crate::graph::{Annotation, Arg, Call, Graph, NodeId, NodeKind, Target};
use crate::ops::{Bound, ParamType, Value};
use crate::read::TensorMeta;

/// How much of the literals counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Detail {
    /// Nothing: every literal is the same blank.
    Operations,
    Literals,
}

#[derive(Debug)]
pub(super) struct Outline<'a> {
    pub(super) calls: Vec<CallOutline<'a>>,
    pub(super) outputs: Form,
    /// Whether a node counts: an argument that nothing uses cannot change the result.
    pub(super) counts: Vec<bool>,
    /// Where each node's uses start in the list of all uses, and behind the last node where they end.
    pub(super) use_starts: Vec<usize>,
}

#[derive(Debug)]
pub(super) struct CallOutline<'a> {
    pub(super) form: Form,
    /// Earlier nodes it must stay after because of effects.
    pub(super) after: &'a [NodeId],
}

/// A stream of words with references to nodes between them.
#[derive(Debug)]
pub(super) struct Form {
    /// The words, already mixed, up to each reference and after the last.
    parts: Vec<Label>,
    /// The references, with their place in the argument list.
    nodes: Vec<(NodeId, u64)>,
}

impl Form {
    pub(super) fn label(&self, labels: &[Label]) -> Label {
        let mut mixer = Mixer::new(Label::CALL);
        for (part, (node, _)) in self.parts.iter().zip(&self.nodes) {
            mixer.label(*part);
            mixer.label(labels[node.index()]);
        }
        if let Some(last) = self.parts.last() {
            mixer.label(*last);
        }
        mixer.finish()
    }

    pub(super) fn uses(&self) -> impl Iterator<Item = (NodeId, u64)> {
        self.nodes.iter().copied()
    }
}

impl<'a> Outline<'a> {
    /// `bound` are the graph's calls, as far as the table knows them.
    pub(super) fn of(
        graph: &Graph,
        bound: &[Option<Bound<'_>>],
        order: &'a [Vec<NodeId>],
        detail: Detail,
    ) -> Self {
        let mut counts = vec![true; graph.nodes().len()];
        counts[..graph.placeholder_count()].fill(false);
        let calls: Vec<CallOutline<'a>> = graph
            .calls()
            .zip(bound)
            .map(|((id, call), bound)| {
                call.for_each_input(|input| counts[input.index()] = true);
                let mut writer = Writer::new(detail);
                match bound {
                    Some(bound) => writer.call(bound),
                    None => writer.unbound(call),
                }
                CallOutline { form: writer.finish(), after: &order[id.index()] }
            })
            .collect();
        let mut writer = Writer::new(detail);
        for (position, output) in graph.outputs.iter().enumerate() {
            output.for_each_node(&mut |id| counts[id.index()] = true);
            writer.place = (position as u64) << 32;
            writer.arg(output);
        }
        let outputs = writer.finish();
        let mut use_starts = vec![0; counts.len() + 1];
        let mut count = |node: NodeId| use_starts[node.index() + 1] += 1;
        outputs.uses().for_each(|(node, _)| count(node));
        for call in &calls {
            call.form.uses().for_each(|(node, _)| count(node));
            call.after.iter().for_each(|node| count(*node));
        }
        for index in 1..use_starts.len() {
            use_starts[index] += use_starts[index - 1];
        }
        Outline { calls, outputs, counts, use_starts }
    }

    pub(super) fn use_count(&self) -> usize {
        self.use_starts.last().copied().unwrap_or(0)
    }
}

/// Labels of the placeholders: all alike, but for sizes and (with metas) types.
pub(super) fn placeholders(graph: &Graph, metas: &[TensorMeta]) -> Vec<Label> {
    let labels = graph.placeholders().iter().enumerate().map(|(index, node)| {
        let is_size = matches!(node.kind, NodeKind::Placeholder(Annotation::SymInt));
        let mut mixer = Mixer::new(Label::PLACEHOLDER).with(u64::from(is_size));
        if let Some(meta) = metas.get(index) {
            mixer.bytes(meta.dtype.name().as_bytes());
            meta.shape.iter().for_each(|size| mixer.word(*size as u64));
        }
        mixer.finish()
    });
    labels.collect()
}

struct Writer {
    detail: Detail,
    mixer: Mixer,
    form: Form,
    /// Parameter in the high half, position inside its value in the low half.
    place: u64,
}

/// Tags that keep different kinds of words apart.
#[repr(u64)]
enum Tag {
    Blank = 1,
    Known,
    InPlace,
    Unknown,
    Param,
    Sequence,
    Slice,
    None,
    Bool,
    Int,
    Float,
    Text,
    Dtype,
    Device,
    Ellipsis,
}

impl Writer {
    fn new(detail: Detail) -> Self {
        let form = Form { parts: Vec::new(), nodes: Vec::new() };
        Writer { detail, mixer: Mixer::new(Label::CALL), form, place: 0 }
    }

    fn finish(mut self) -> Form {
        self.form.parts.push(self.mixer.finish());
        self.form
    }

    fn tag(&mut self, tag: Tag) {
        self.mixer.word(tag as u64);
    }

    fn call(&mut self, bound: &Bound<'_>) {
        let entry = bound.op.entry();
        self.tag(if bound.is_in_place() { Tag::InPlace } else { Tag::Known });
        self.mixer.bytes(entry.spec.spellings[0].as_bytes());
        for (index, (param, value)) in bound.signature.params.iter().zip(&bound.values).enumerate()
        {
            // Where a tensor lives changes no value; being in place is part of the operation already.
            if param.ty == ParamType::Device || param.name == "inplace" {
                continue;
            }
            self.tag(Tag::Param);
            self.mixer.bytes(param.name.as_bytes());
            self.place = (index as u64) << 32;
            let float_default = matches!(param.default, Some(Arg::Float(_)));
            match value {
                Value::Given(Arg::Int(given)) if float_default => {
                    self.arg(&Arg::Float(*given as f64))
                }
                Value::Given(arg) => self.arg(arg),
                Value::Default(arg) => self.arg(arg),
                Value::Rest(args) => self.items(args),
            }
        }
    }

    /// A call the table does not know, as it is written; keyword order does not matter.
    fn unbound(&mut self, call: &Call) {
        self.tag(Tag::Unknown);
        self.mixer.word(call.target.kind() as u64);
        self.mixer.bytes(call.target.path().as_bytes());
        if let Target::Replacement(replacement) = &call.target {
            self.mixer.bytes(replacement.pass.as_bytes());
            self.mixer.bytes(replacement.module.as_bytes());
        }
        self.items(&call.args);
        let mut kwargs: Vec<&(Box<str>, Arg)> = call.kwargs.iter().collect();
        kwargs.sort_by(|a, b| a.0.cmp(&b.0));
        for (index, (name, arg)) in kwargs.into_iter().enumerate() {
            self.mixer.bytes(name.as_bytes());
            self.place = (index as u64 + 1) << 32;
            self.arg(arg);
        }
    }

    fn items(&mut self, items: &[Arg]) {
        if self.detail == Detail::Operations && !items.iter().any(refers_to_node) {
            return self.tag(Tag::Blank);
        }
        self.tag(Tag::Sequence);
        self.mixer.word(items.len() as u64);
        items.iter().for_each(|item| self.arg(item));
    }

    /// A list and a tuple of the same values mean the same to torch.
    fn arg(&mut self, arg: &Arg) {
        match arg {
            Arg::Node(id) => {
                let before = std::mem::replace(&mut self.mixer, Mixer::new(Label::CALL));
                self.form.parts.push(before.finish());
                self.form.nodes.push((*id, self.place));
                self.place += 1;
                return;
            }
            Arg::Tuple(items) | Arg::List(items) => return self.items(items),
            Arg::Slice(parts) => {
                self.tag(Tag::Slice);
                return self.items(&parts[..]);
            }
            _ if self.detail == Detail::Operations => return self.tag(Tag::Blank),
            _ => {}
        }
        match arg {
            Arg::None => self.tag(Tag::None),
            Arg::Bool(value) => {
                self.tag(Tag::Bool);
                self.mixer.word(u64::from(*value));
            }
            Arg::Int(value) => {
                self.tag(Tag::Int);
                self.mixer.word(*value as u64);
            }
            Arg::Float(value) => {
                self.tag(Tag::Float);
                let value = if value.is_nan() { f64::NAN } else { *value };
                self.mixer.word(value.to_bits());
            }
            Arg::Str(text) | Arg::Constant(text) => {
                self.tag(Tag::Text);
                self.mixer.bytes(text.as_bytes());
            }
            Arg::Dtype(dtype) => {
                self.tag(Tag::Dtype);
                self.mixer.bytes(dtype.name().as_bytes());
            }
            Arg::Device(_) => self.tag(Tag::Device),
            Arg::Ellipsis => self.tag(Tag::Ellipsis),
            Arg::Node(_) | Arg::Tuple(_) | Arg::List(_) | Arg::Slice(_) => {}
        }
    }
}

fn refers_to_node(arg: &Arg) -> bool {
    arg.as_node().is_some() || arg.parts().iter().any(refers_to_node)
}
