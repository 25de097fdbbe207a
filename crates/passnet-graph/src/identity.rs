//! Identity: digests that two graphs share exactly when they compute the same thing the same way.
//!
//! A digest does not depend on names, on the order of independent statements, on the order of the forward
//! arguments or on how a call is spelled. It depends on the operations, on what flows where, on the order of
//! effects, and (by level) on literals and on the shapes and dtypes of the inputs.
//!
//! Method: every node gets a label from what it computes (upwards from the inputs), then from how its result
//! is used (downwards from the outputs), twice; the digest covers the sorted labels and the ordered outputs.
//! Cost: a few hashes per node and argument, O(n log n) for the sorting.

use crate::graph::effects::Effects;
use crate::graph::{Annotation, Arg, Call, Graph, NodeId, NodeKind, Target};
use crate::ops::{ParamType, Value};
use crate::read::TensorMeta;
use std::fmt;

/// A 256-bit digest, printed as 64 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

impl Digest {
    pub fn of(bytes: &[u8]) -> Self {
        Digest(*blake3::hash(bytes).as_bytes())
    }

    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// The three levels of identity; each distinguishes at least what the one before it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// Operations and topology.
    pub structure: Digest,
    /// The same, with literal arguments.
    pub literals: Digest,
    /// The same, with the shapes and dtypes of the inputs.
    pub full: Digest,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Structure,
    Literals,
    Full,
}

/// Identifies a graph; `metas` are its arguments' metas in order, or empty if there are none.
pub fn identify(graph: &Graph, metas: &[TensorMeta]) -> Identity {
    let order = Effects::of(graph).order(graph);
    let digest = |level| Labels { graph, metas, level, order: &order }.digest();
    Identity {
        structure: digest(Level::Structure),
        literals: digest(Level::Literals),
        full: digest(Level::Full),
    }
}

type Label = [u8; 32];

struct Labels<'a> {
    graph: &'a Graph,
    metas: &'a [TensorMeta],
    level: Level,
    order: &'a [Vec<NodeId>],
}

impl Labels<'_> {
    fn digest(&self) -> Digest {
        let count = self.graph.nodes().len();
        let used = self.used_placeholders();
        let mut placeholders: Vec<Label> =
            (0..self.graph.placeholder_count()).map(|index| self.placeholder(index)).collect();
        let mut labels: Vec<Label> = Vec::new();
        for _ in 0..2 {
            let upward = self.upward(&placeholders);
            labels = self.downward(&upward);
            placeholders.copy_from_slice(&labels[..self.graph.placeholder_count()]);
        }
        let mut hasher = blake3::Hasher::new();
        let mut sorted: Vec<&Label> =
            (0..count).filter(|&index| used[index]).map(|index| &labels[index]).collect();
        sorted.sort_unstable();
        hasher.update(&(sorted.len() as u64).to_le_bytes());
        for label in sorted {
            hasher.update(label);
        }
        for output in &self.graph.outputs {
            let mut bytes = Vec::new();
            self.encode(&mut bytes, output, &labels);
            hasher.update(&(bytes.len() as u64).to_le_bytes());
            hasher.update(&bytes);
        }
        Digest(*hasher.finalize().as_bytes())
    }

    /// An argument that nothing uses cannot change the result.
    fn used_placeholders(&self) -> Vec<bool> {
        let mut used = vec![true; self.graph.nodes().len()];
        used[..self.graph.placeholder_count()].fill(false);
        for (_, call) in self.graph.calls() {
            call.for_each_input(|input| used[input.index()] = true);
        }
        for output in &self.graph.outputs {
            output.for_each_node(&mut |id| used[id.index()] = true);
        }
        used
    }

    fn placeholder(&self, index: usize) -> Label {
        let mut bytes = vec![b'p'];
        let node = &self.graph.nodes()[index];
        if matches!(node.kind, NodeKind::Placeholder(Annotation::SymInt)) {
            bytes.push(b's');
        }
        if self.level == Level::Full
            && let Some(meta) = self.metas.get(index)
        {
            bytes.extend_from_slice(meta.dtype.name().as_bytes());
            for size in &meta.shape {
                bytes.extend_from_slice(&size.to_le_bytes());
            }
        }
        *blake3::hash(&bytes).as_bytes()
    }

    /// What each node computes, from the labels of the arguments.
    fn upward(&self, placeholders: &[Label]) -> Vec<Label> {
        let mut labels = placeholders.to_vec();
        let mut bytes = Vec::new();
        let mut before: Vec<Label> = Vec::new();
        for (id, call) in self.graph.calls() {
            bytes.clear();
            self.encode_call(&mut bytes, call, &labels);
            before.clear();
            before.extend(self.order[id.index()].iter().map(|earlier| labels[earlier.index()]));
            before.sort_unstable();
            bytes.push(b'<');
            before.iter().for_each(|label| bytes.extend_from_slice(label));
            labels.push(*blake3::hash(&bytes).as_bytes());
        }
        labels
    }

    /// How each node is used: by whom, in which place, and as which output.
    fn downward(&self, upward: &[Label]) -> Vec<Label> {
        let count = upward.len();
        let mut uses: Vec<Vec<Label>> = vec![Vec::new(); count];
        for (position, output) in self.graph.outputs.iter().enumerate() {
            let use_label = |place: u64| use_label(&[b'o'; 32], position as u64, place);
            let mut place = 0;
            output.for_each_node(&mut |id| {
                uses[id.index()].push(use_label(place));
                place += 1;
            });
        }
        let mut labels = upward.to_vec();
        for index in (0..count).rev() {
            let own = &mut uses[index];
            own.sort_unstable();
            let mut hasher = blake3::Hasher::new();
            hasher.update(&upward[index]);
            own.iter().for_each(|label| {
                hasher.update(label);
            });
            labels[index] = *hasher.finalize().as_bytes();
            let Some(call) = self.graph.call(NodeId::new(index)) else { continue };
            self.for_each_use(call, |input, parameter, place| {
                uses[input.index()].push(use_label(&labels[index], parameter, place));
            });
            for earlier in &self.order[index] {
                uses[earlier.index()].push(use_label(&labels[index], u64::MAX, 0));
            }
        }
        labels
    }

    /// Visits the nodes a call uses, with the parameter and the place inside its value.
    fn for_each_use(&self, call: &Call, mut visit: impl FnMut(NodeId, u64, u64)) {
        let mut visit_arg = |parameter: usize, arg: &Arg| {
            let mut place = 0;
            arg.for_each_node(&mut |id| {
                visit(id, parameter as u64, place);
                place += 1;
            });
        };
        match call.bind() {
            Ok(bound) => {
                for (parameter, value) in bound.values.iter().enumerate() {
                    match value {
                        Value::Given(arg) => visit_arg(parameter, arg),
                        Value::Rest(args) => visit_arg(parameter, &Arg::Tuple(args.to_vec())),
                        Value::Default(_) => {}
                    }
                }
            }
            Err(_) => call.all_args().enumerate().for_each(|(index, arg)| visit_arg(index, arg)),
        }
    }

    fn encode_call(&self, bytes: &mut Vec<u8>, call: &Call, labels: &[Label]) {
        match (&call.target, call.bind()) {
            (Target::Known(_), Ok(bound)) => {
                let entry = bound.op.entry();
                bytes.extend_from_slice(entry.spec.spellings[0].as_bytes());
                bytes.push(if bound.is_in_place() { b'!' } else { b'.' });
                for (param, value) in bound.signature.params.iter().zip(&bound.values) {
                    // Where a tensor lives and who asks for gradients change no value.
                    if param.ty == ParamType::Device || param.name == "inplace" {
                        continue;
                    }
                    bytes.push(b',');
                    bytes.extend_from_slice(param.name.as_bytes());
                    bytes.push(b'=');
                    let float_default = matches!(param.default, Some(Arg::Float(_)));
                    match value {
                        Value::Given(Arg::Int(given)) if float_default => {
                            self.encode(bytes, &Arg::Float(*given as f64), labels);
                        }
                        Value::Given(arg) => self.encode(bytes, arg, labels),
                        Value::Default(arg) => self.encode(bytes, arg, labels),
                        Value::Rest(args) => self.encode_items(bytes, args, labels),
                    }
                }
            }
            (target, _) => {
                bytes.push(b'?');
                bytes.push(target.kind() as u8);
                bytes.extend_from_slice(target.path().as_bytes());
                self.encode_items(bytes, &call.args, labels);
                let mut kwargs: Vec<&(Box<str>, Arg)> = call.kwargs.iter().collect();
                kwargs.sort_by(|a, b| a.0.cmp(&b.0));
                for (name, arg) in kwargs {
                    bytes.extend_from_slice(name.as_bytes());
                    bytes.push(b'=');
                    self.encode(bytes, arg, labels);
                }
            }
        }
    }

    fn encode_items(&self, bytes: &mut Vec<u8>, items: &[Arg], labels: &[Label]) {
        if self.level == Level::Structure && !items.iter().any(refers_to_node) {
            bytes.push(b'_');
            return;
        }
        bytes.push(b'(');
        bytes.extend_from_slice(&(items.len() as u64).to_le_bytes());
        items.iter().for_each(|item| self.encode(bytes, item, labels));
    }

    /// A list and a tuple of the same values mean the same to torch.
    fn encode(&self, bytes: &mut Vec<u8>, arg: &Arg, labels: &[Label]) {
        match arg {
            Arg::Node(id) => {
                bytes.push(b'%');
                bytes.extend_from_slice(&labels[id.index()]);
                return;
            }
            Arg::Tuple(items) | Arg::List(items) => return self.encode_items(bytes, items, labels),
            Arg::Slice(parts) => {
                bytes.push(b':');
                return self.encode_items(bytes, &parts[..], labels);
            }
            _ if self.level == Level::Structure => return bytes.push(b'_'),
            _ => {}
        }
        match arg {
            Arg::None => bytes.push(b'N'),
            Arg::Bool(value) => bytes.extend_from_slice(&[b'b', u8::from(*value)]),
            Arg::Int(value) => {
                bytes.push(b'i');
                bytes.extend_from_slice(&value.to_le_bytes());
            }
            Arg::Float(value) => {
                bytes.push(b'f');
                let value = if value.is_nan() { f64::NAN } else { *value };
                bytes.extend_from_slice(&value.to_bits().to_le_bytes());
            }
            Arg::Str(text) | Arg::Constant(text) => {
                bytes.push(b'"');
                bytes.extend_from_slice(&(text.len() as u64).to_le_bytes());
                bytes.extend_from_slice(text.as_bytes());
            }
            Arg::Dtype(dtype) => {
                bytes.push(b'd');
                bytes.extend_from_slice(dtype.name().as_bytes());
            }
            Arg::Device(_) => bytes.push(b'v'),
            Arg::Ellipsis => bytes.push(b'E'),
            Arg::Node(_) | Arg::Tuple(_) | Arg::List(_) | Arg::Slice(_) => {}
        }
    }
}

fn use_label(user: &Label, parameter: u64, place: u64) -> Label {
    let mut bytes = [0; 48];
    bytes[..32].copy_from_slice(user);
    bytes[32..40].copy_from_slice(&parameter.to_le_bytes());
    bytes[40..].copy_from_slice(&place.to_le_bytes());
    *blake3::hash(&bytes).as_bytes()
}

fn refers_to_node(arg: &Arg) -> bool {
    arg.as_node().is_some() || arg.parts().iter().any(refers_to_node)
}
