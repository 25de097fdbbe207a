//! The families of a task: graphs that differ only in sizes, float types and numbers, so that one pass serves all.

use crate::products::Product;
use passnet_graph::graph::NodeKind;
use passnet_graph::infer::{Inference, Value, infer, infer_folder};
use passnet_graph::ops::{Class, Op};
use passnet_graph::read::{GraphFolder, read_folder};
use passnet_graph::resize::{Assignment, Generalised, find_symbols, records_symbols, with_sizes};
use passnet_graph::{Arg, Call, Diagnostic, Graph, GraphFiles, NodeId, TensorMeta};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// One graph of a task, typed.
#[derive(Debug)]
pub struct TypedGraph {
    /// Its path in the task's list.
    pub path: String,
    /// The graph.
    pub graph: Graph,
    /// The types of all its values.
    pub types: Inference,
    /// How the graph's inputs are drawn, in argument order.
    pub metas: Vec<TensorMeta>,
}

impl TypedGraph {
    /// Reads a graph folder and infers its types.
    pub fn read(files: &GraphFiles) -> Result<TypedGraph, Vec<Diagnostic>> {
        let folder = read_folder(files)?;
        let types = infer_folder(&folder);
        Ok(TypedGraph { path: files.path.clone(), graph: folder.graph, types, metas: folder.metas })
    }

    /// The graph without what nothing needs, as it is run once a pass has changed it.
    pub fn without_unneeded(&self) -> TypedGraph {
        let (graph, _) = self.graph.without_unneeded();
        let types = infer(&graph, &self.types.values[..graph.placeholder_count()]);
        TypedGraph { path: self.path.clone(), graph, types, metas: self.metas.clone() }
    }

    /// The same graph with each size that its constraints leave open another one, as far as the graph allows it; `None` where they
    /// promise nothing.
    pub fn at_other_sizes(files: &GraphFiles) -> Option<TypedGraph> {
        let folder = read_folder(files).ok().filter(|f| records_symbols(&f.constraints))?;
        let folder = GraphFolder { constraints: find_symbols(&folder), ..folder };
        let generalised = Generalised::new(&folder);
        let symbols = &folder.constraints.symbols;
        let with = |more: &dyn Fn(usize) -> i64| -> Assignment {
            let sizes = symbols.iter().enumerate();
            sizes.map(|(at, (name, size))| (name.clone(), size.saturating_add(more(at)))).collect()
        };
        // Different steps, so that sizes which are the same by chance are not the same there.
        let steps = with(&|at| at as i64 + 1);
        let alone = (0..symbols.len()).map(|only| with(&|at| i64::from(at == only)));
        let all = [steps, with(&|_| 1)].into_iter().chain(alone);
        let (variant, types) = all
            .filter(|sizes| sizes != symbols)
            .find_map(|sizes| with_sizes(&folder, &generalised, &sizes).ok())?;
        let GraphFolder { graph, metas, .. } = variant;
        Some(TypedGraph { path: files.path.clone(), graph, types, metas })
    }
}

/// Graphs with the same operations, edges, ranks and kinds of numbers.
#[derive(Debug)]
pub struct GraphFamily {
    /// Those of the task, at least one, and behind them the same at other sizes that their constraints promise: what is decided
    /// about the sizes of a piece must hold there, too, or two that happen to be the same would be taken for one. Which nodes
    /// are views is decided by the recorded ones.
    pub members: Vec<TypedGraph>,
    recorded: usize,
    /// Whether a node's tensor is out of a kernel's reach, because it lies in the host's memory.
    on_host: Vec<bool>,
    is_for_gpu: bool,
    /// Bytes that a product may read for kernels to compute it.
    most_product_bytes: Option<f64>,
    /// Multiprocessors of the GPU that products are cut into tiles for.
    multiprocessors: Option<usize>,
}

impl GraphFamily {
    /// The members that are graphs of the task.
    pub fn recorded(&self) -> &[TypedGraph] {
        &self.members[..self.recorded]
    }

    /// The members that a pattern of these nodes stands for. At other sizes it does where its numbers are the same there; else it
    /// matches nothing there, and numbers that are written into a kernel make it faster.
    pub(crate) fn members_for(&self, nodes: &BTreeSet<NodeId>) -> &[TypedGraph] {
        let differs = |id: &NodeId| {
            let mut calls = self.recorded().iter().filter_map(|member| member.graph.call(*id));
            let Some(first) = calls.next() else { return false };
            let are_alike = calls.all(|call| call == first);
            let resized = self.members[self.recorded..].iter();
            are_alike
                && resized.filter_map(|member| member.graph.call(*id)).any(|call| call != first)
        };
        match nodes.iter().any(differs) {
            true => self.recorded(),
            false => &self.members,
        }
    }

    /// The graph of the first member: what all of them share.
    pub fn graph(&self) -> &Graph {
        &self.members[0].graph
    }

    /// How many members there are.
    pub fn count(&self) -> usize {
        self.members.len()
    }

    /// A number for what is no node of the graph, beyond all nodes.
    pub(crate) fn after(&self, index: usize) -> NodeId {
        NodeId::new(self.graph().nodes().len() + index)
    }

    /// Whether a tensor lies in the host's memory, out of a kernel's reach.
    pub fn is_on_host(&self, id: NodeId) -> bool {
        self.on_host.get(id.index()).copied().unwrap_or(false)
    }

    /// Whether a node sends a tensor of the host's memory to where kernels run.
    pub(crate) fn is_sent(&self, id: NodeId) -> bool {
        let source = self.graph().call(id).and_then(|call| call.args.first()?.as_node());
        source.is_some_and(|source| self.is_on_host(source)) && !self.is_on_host(id)
    }

    /// Whether a tensor has dimensions that are hidden under vmap.
    pub(crate) fn is_mapped(&self, id: NodeId) -> bool {
        let mut tensors = self.members.iter().map(|member| member.types.value(id).as_tensor());
        tensors.any(|tensor| tensor.is_some_and(passnet_graph::infer::TensorType::is_mapped))
    }

    /// For a run on a GPU with so many multiprocessors: tensors that the graph makes without a device are not there.
    pub fn run_on_gpu(&mut self, multiprocessors: usize) {
        self.multiprocessors = Some(multiprocessors);
        self.on_host = on_host(self);
        self.is_for_gpu = true;
    }

    /// From now on kernels compute products, too, with what stands around them: those that read at most so many bytes, and
    /// those with small windows.
    pub fn try_products(&mut self, most_bytes: f64) {
        self.most_product_bytes = Some(most_bytes);
    }

    /// Whether there is a product that kernels compute only where they are tried.
    pub fn has_products_to_try(&self) -> bool {
        let is_tried = |id| {
            self.tries(id, f64::INFINITY) && !self.is_product(id, |own| own == Product::Pointwise)
        };
        self.graph().calls().any(|(id, _)| is_tried(id))
    }

    pub(crate) fn tries_product(&self, id: NodeId) -> bool {
        match self.most_product_bytes {
            Some(most) => self.tries(id, most),
            None => self.is_product(id, |own| own == Product::Pointwise),
        }
    }

    fn tries(&self, id: NodeId, most_bytes: f64) -> bool {
        self.is_product(id, |own| match own {
            Product::Pointwise | Product::Window => true,
            Product::Sum { bytes } => bytes <= most_bytes,
            // What a library calls for matrices is faster than tiles unless measured otherwise; what it calls for convolutions is not.
            Product::Tiles { extent, is_convolution } => {
                (is_convolution || most_bytes.is_infinite())
                    && self.multiprocessors.is_some_and(|count| extent.is_for_tiles(count))
                    && !self.is_attended(id)
            }
        })
    }

    /// Whether attention reads a node, or views of it: of large values it takes the largest alone, and which one that is hangs on
    /// the last bits of a sum, which eager adds up in another order.
    fn is_attended(&self, id: NodeId) -> bool {
        let graph = self.graph();
        let users = graph.users();
        let mut todo = vec![id];
        while let Some(node) = todo.pop() {
            for user in &users[node.index()] {
                match graph.call(*user).and_then(Call::op) {
                    Some(op) if op.class() == Class::Attention => return true,
                    Some(op) if op.class() == Class::View || op == Op::GetItem => todo.push(*user),
                    _ => {}
                }
            }
        }
        false
    }

    /// Whether somebody sees how a GPU lays out a batch normalisation in half precision that is given neither rows nor channels last:
    /// PyTorch's kernel for them keeps the strides it finds, the libraries for float32 and for the CPU, as inference has it, do not.
    pub(crate) fn shows_layout_of_norm(&self, id: NodeId) -> bool {
        let graph = self.graph();
        let norm = graph.call(id).filter(|call| call.op() == Some(Op::BatchNorm));
        let source = norm.and_then(|call| call.args.first()?.as_node());
        let (Some(source), Some(_)) = (source, self.multiprocessors) else { return false };
        let differs = self.members.iter().any(|member| {
            let tensors = [source, id].map(|node| member.types.value(node).as_tensor());
            matches!(tensors, [Some(given), Some(result)]
                if result.dtype.size() < 4 && given.strides != result.strides)
        });
        if !differs {
            return false;
        }
        let users = graph.users();
        let mut shown = BTreeSet::new();
        for output in &graph.outputs {
            output.for_each_node(&mut |node| {
                shown.insert(node);
            });
        }
        let mut todo = vec![id];
        while let Some(node) = todo.pop() {
            if shown.contains(&node) {
                return true;
            }
            // What computes element by element, and what only looks, has the layout that it is given.
            let keeps = |user: &&NodeId| {
                let class = graph.call(**user).and_then(Call::op).map(Op::class);
                matches!(class, Some(Class::Pointwise | Class::View | Class::Random))
            };
            todo.extend(users[node.index()].iter().filter(keeps));
        }
        false
    }

    /// Whether a node is such a product in all graphs.
    fn is_product(&self, id: NodeId, is_such: impl Fn(Product) -> bool) -> bool {
        self.members.iter().all(|member| Product::of(member, id).is_some_and(&is_such))
    }
}

/// For every node whether its tensor was made without a device, or of nothing but such tensors: then it is the host's,
/// and eager lets operations of the CPU and single numbers use it. A kernel cannot.
fn on_host(family: &GraphFamily) -> Vec<bool> {
    let graph = family.graph();
    // A list stands for the tensors in it.
    let is_tensor = |id: NodeId| {
        matches!(family.members[0].types.value(id), Value::Tensor(_) | Value::Sequence(_))
    };
    let mut on_host = vec![false; graph.nodes().len()];
    for (id, call) in graph.calls() {
        let Ok(bound) = call.bind() else { continue };
        let mut tensors = 0;
        let mut others = false;
        call.for_each_input(|input| {
            if is_tensor(input) {
                tensors += 1;
                others |= !on_host[input.index()];
            }
        });
        let is_made = matches!(bound.class(), Class::Creation | Class::Random) && tensors == 0;
        let is_moved = matches!(bound.arg("device"), Arg::Device(_));
        on_host[id.index()] = !is_moved && (is_made || (tensors > 0 && !others));
    }
    on_host
}

/// Sorts graphs into families, the largest family first; `resized` are some of them at other sizes.
pub fn families(graphs: Vec<TypedGraph>, resized: Vec<TypedGraph>) -> Vec<GraphFamily> {
    let mut found: BTreeMap<String, GraphFamily> = BTreeMap::new();
    let mut order: Vec<String> = Vec::new();
    for graph in graphs {
        let key = outline(&graph);
        if !found.contains_key(&key) {
            order.push(key.clone());
        }
        found
            .entry(key)
            .or_insert_with(|| GraphFamily {
                members: Vec::new(),
                recorded: 0,
                on_host: Vec::new(),
                is_for_gpu: false,
                most_product_bytes: None,
                multiprocessors: None,
            })
            .members
            .push(graph);
    }
    found.values_mut().for_each(|family| family.recorded = family.count());
    for graph in resized {
        // By the graph that it is made from: a size that was one there is another number here.
        let is_source = |member: &TypedGraph| is_resized(member, &graph);
        let source = found.values_mut().find(|family| family.recorded().iter().any(is_source));
        if let Some(family) = source {
            family.members.push(graph);
        }
    }
    let mut families: Vec<GraphFamily> = order.iter().filter_map(|key| found.remove(key)).collect();
    families.sort_by_key(|family| std::cmp::Reverse(family.recorded));
    families
}

/// Whether a graph is another one at other sizes: the same calls one after the other, with other numbers.
fn is_resized(graph: &TypedGraph, other: &TypedGraph) -> bool {
    let target = |id: NodeId, of: &TypedGraph| of.graph.call(id).map(|call| call.target.clone());
    graph.path == other.path
        && graph.graph.nodes().len() == other.graph.nodes().len()
        && graph.graph.ids().all(|id| target(id, graph) == target(id, other))
}

/// Everything about a graph that one pass cannot leave open.
fn outline(typed: &TypedGraph) -> String {
    let mut text = String::new();
    for (index, node) in typed.graph.nodes().iter().enumerate() {
        match &node.kind {
            NodeKind::Placeholder(_) => {
                let kind = match &typed.types.values[index] {
                    Value::Tensor(tensor) => {
                        format!("{:?}{}", tensor.dtype.kind(), tensor.rank())
                    }
                    other => other.type_name().to_string(),
                };
                let _ = writeln!(text, "{kind}");
            }
            NodeKind::Call(call) => {
                let open = Open::of(call.op());
                let _ = write!(text, "{}", call.target);
                for arg in call.args.iter().chain(call.kwargs.iter().map(|(_, arg)| arg)) {
                    text.push(' ');
                    literal(&mut text, arg, open);
                }
                for (name, _) in &call.kwargs {
                    let _ = write!(text, " {name}");
                }
                text.push('\n');
            }
        }
    }
    for output in &typed.graph.outputs {
        literal(&mut text, output, Open::NOTHING);
    }
    text
}

/// Which literals of a call may differ within a family.
#[derive(Clone, Copy)]
struct Open {
    sizes: bool,
    floats: bool,
}

impl Open {
    const NOTHING: Open = Open { sizes: false, floats: false };

    fn of(op: Option<Op>) -> Open {
        match op {
            Some(
                Op::View
                | Op::Reshape
                | Op::Expand
                | Op::BroadcastTo
                | Op::Unflatten
                | Op::LayerNorm
                | Op::RmsNorm
                | Op::GetItem
                | Op::Narrow
                | Op::Split
                | Op::Interpolate,
            ) => Open { sizes: true, floats: false },
            Some(Op::Add | Op::Sub | Op::Mul | Op::Div) => Open { sizes: false, floats: true },
            _ => Open::NOTHING,
        }
    }
}

fn literal(text: &mut String, arg: &Arg, open: Open) {
    match arg {
        Arg::Node(id) => {
            let _ = write!(text, "%{}", id.index());
        }
        // Ones broadcast and minus ones are inferred: they are part of the family.
        Arg::Int(value) if open.sizes && *value > 1 => text.push('#'),
        Arg::Float(_) if open.floats => text.push('~'),
        Arg::Tuple(items) | Arg::List(items) => {
            text.push('(');
            for item in items {
                literal(text, item, open);
                text.push(',');
            }
            text.push(')');
        }
        Arg::Slice(parts) => {
            text.push('[');
            for part in parts.iter() {
                literal(text, part, open);
                text.push(':');
            }
            text.push(']');
        }
        other => {
            let _ = write!(text, "{other:?}");
        }
    }
}
