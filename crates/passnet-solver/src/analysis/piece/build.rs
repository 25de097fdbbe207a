//! The pattern of a piece, put together from the calls of all graphs: what they differ in becomes an argument.

use super::{Param, outputs_of};
use crate::analysis::{Refusal, refuse};
use crate::graph_family::{GraphFamily, TypedGraph};
use passnet_graph::graph::Annotation;
use passnet_graph::infer::Value;
use passnet_graph::{Arg, Call, Device, Graph, NodeId};
use std::collections::{BTreeMap, BTreeSet};

/// Where a pattern's node comes from.
pub(super) enum Origin {
    Node(NodeId),
    Literal(Vec<Value>),
}

pub(super) struct Builder<'f> {
    family: &'f GraphFamily,
    graphs: &'f [TypedGraph],
    members: &'f BTreeSet<NodeId>,
    /// Nodes outside that members use, in order of first use.
    inputs: Vec<NodeId>,
    /// Literals that differ among the graphs.
    literals: Vec<(bool, Vec<Value>)>,
    /// The device that calls name, where it becomes an argument.
    device: Option<Device>,
}

impl<'f> Builder<'f> {
    pub(super) fn new(family: &'f GraphFamily, members: &'f BTreeSet<NodeId>) -> Self {
        let graphs = family.members_for(members);
        Builder { family, graphs, members, inputs: Vec::new(), literals: Vec::new(), device: None }
    }

    pub(super) fn find_inputs(&mut self) -> Result<(), Refusal> {
        for &id in self.members {
            let Some(call) = self.family.graph().call(id) else {
                refuse!("an argument of the graph cannot be replaced")
            };
            call.for_each_input(|input| {
                if !self.members.contains(&input) && !self.inputs.contains(&input) {
                    self.inputs.push(input);
                }
            });
        }
        Ok(())
    }

    /// The members' calls with differing literals taken out: `Err` of a literal's number in their place.
    pub(super) fn calls(&mut self) -> Result<Vec<(NodeId, Call)>, Refusal> {
        let mut calls = Vec::new();
        for &id in self.members {
            let variants: Vec<&Call> =
                self.graphs.iter().filter_map(|member| member.graph.call(id)).collect();
            if variants.len() != self.graphs.len() {
                refuse!("the graphs of the form differ");
            }
            let mut call = variants[0].clone();
            for index in 0..call.args.len() {
                let args: Vec<&Arg> = variants.iter().map(|call| &call.args[index]).collect();
                call.args[index] = self.merge(&args)?;
            }
            for index in 0..call.kwargs.len() {
                let args: Vec<&Arg> = variants.iter().map(|call| &call.kwargs[index].1).collect();
                call.kwargs[index].1 = self.merge(&args)?;
            }
            calls.push((id, call));
        }
        let is_tensor =
            |id: &NodeId| matches!(self.family.members[0].types.value(*id), Value::Tensor(_));
        if !self.inputs.iter().any(is_tensor) {
            let calls = calls.iter_mut().map(|(_, call)| call);
            calls.for_each(|call| self.open_device(call));
        }
        Ok(calls)
    }

    /// Makes the device that a call names an argument of the pattern: a wrapper that gets no tensor learns it so.
    fn open_device(&mut self, call: &mut Call) {
        let named = call.kwargs.iter_mut().map(|(_, arg)| arg).chain(&mut call.args);
        for arg in named {
            if let Arg::Device(device) = arg
                && *self.device.get_or_insert(*device) == *device
            {
                *arg = Arg::Node(self.family.after(self.literals.len()));
            }
        }
    }

    /// One argument for all graphs. Differing literals become nodes numbered beyond the family's graph.
    fn merge(&mut self, args: &[&Arg]) -> Result<Arg, Refusal> {
        let first = args[0];
        if args.iter().all(|arg| *arg == first) {
            return Ok(first.clone());
        }
        let number = |arg: &&Arg| match arg {
            Arg::Int(value) => Some(Value::int(*value)),
            Arg::Float(value) => Some(Value::float(*value)),
            _ => None,
        };
        if let Some(values) = args.iter().map(number).collect::<Option<Vec<Value>>>() {
            let whole = args.iter().all(|arg| matches!(arg, Arg::Int(_)));
            let known = self.literals.iter().position(|(_, known)| *known == values);
            let index = known.unwrap_or_else(|| {
                self.literals.push((whole, values));
                self.literals.len() - 1
            });
            return Ok(Arg::Node(self.family.after(index)));
        }
        let parts: Option<Vec<&[Arg]>> = args.iter().map(|arg| Some(arg.parts())).collect();
        let Some(parts) = parts.filter(|parts| {
            !parts[0].is_empty() && parts.iter().all(|part| part.len() == parts[0].len())
        }) else {
            refuse!("an argument differs among the graphs")
        };
        let merged: Result<Vec<Arg>, Refusal> = (0..parts[0].len())
            .map(|index| self.merge(&parts.iter().map(|part| &part[index]).collect::<Vec<_>>()))
            .collect();
        let merged = merged?;
        Ok(match (first, <[Arg; 3]>::try_from(merged.clone())) {
            (Arg::Slice(_), Ok(parts)) => Arg::Slice(Box::new(parts)),
            (Arg::List(_), _) => Arg::List(merged),
            _ => Arg::Tuple(merged),
        })
    }

    pub(super) fn assemble(
        self,
        calls: Vec<(NodeId, Call)>,
    ) -> Result<(Graph, Vec<Param>, Vec<Origin>), Refusal> {
        let family_graph = self.family.graph();
        let mut graph = Graph::new();
        let mut params = Vec::new();
        let mut origin = Vec::new();
        let mut map: BTreeMap<NodeId, NodeId> = BTreeMap::new();
        for &input in &self.inputs {
            let name = safe_name(&family_graph.node(input).name);
            let id = graph.push_placeholder(name, Annotation::None, 0);
            map.insert(input, id);
            params.push(match self.family.members[0].types.value(input) {
                Value::Tensor(_) => Param::Tensor(input),
                Value::Scalar(_) => Param::Number,
                other => refuse!(
                    "`{}` is a {}, which a pattern cannot take",
                    family_graph.node(input).name,
                    other.type_name()
                ),
            });
            origin.push(Origin::Node(input));
        }
        let literals = self.literals.len();
        let mut counts = [0usize; 2];
        for (index, (whole, values)) in self.literals.into_iter().enumerate() {
            let count = &mut counts[usize::from(whole)];
            let name = format!("{}_{count}", if whole { "given" } else { "factor" });
            *count += 1;
            let id = graph.push_placeholder(name, Annotation::None, 0);
            map.insert(self.family.after(index), id);
            params.push(Param::Literal);
            origin.push(Origin::Literal(values));
        }
        if let Some(device) = self.device {
            let id = graph.push_placeholder("on_device".to_string(), Annotation::None, 0);
            map.insert(self.family.after(literals), id);
            params.push(Param::Device);
            origin.push(Origin::Literal(vec![Value::Device(Some(device)); self.graphs.len()]));
        }
        for (id, mut call) in calls {
            let mut missing = false;
            call.map_inputs(|input| match map.get(&input) {
                Some(new) => Arg::Node(*new),
                None => {
                    missing = true;
                    Arg::None
                }
            });
            if missing {
                refuse!("a value is used before it is made");
            }
            let new = graph.push_call(safe_name(&family_graph.node(id).name), call, 0);
            map.insert(id, new);
            origin.push(Origin::Node(id));
        }
        graph.outputs = outputs_of(family_graph, self.members)
            .into_iter()
            .filter_map(|id| map.get(&id).map(|id| Arg::Node(*id)))
            .collect();
        Ok((graph, params, origin))
    }
}

/// Names that generated code gives to things of its own.
const OWN_NAMES: &[&str] = &[
    "across",
    "along",
    "along_inside",
    "block",
    "candidate",
    "centred",
    "column",
    "columns",
    "count",
    "down",
    "down_inside",
    "extent",
    "height",
    "high",
    "inner",
    "inside",
    "is_small",
    "lane",
    "left_inside",
    "length",
    "libdevice",
    "low",
    "offset",
    "out",
    "part",
    "pattern",
    "place",
    "powers",
    "program",
    "right_inside",
    "row",
    "rows",
    "scale",
    "side",
    "slab",
    "slabs",
    "start",
    "stride",
    "tile",
    "tiles",
    "tl",
    "torch",
    "total",
    "triton",
    "width",
];
const OWN_BEGINNINGS: &[&str] = &[
    "across_",
    "block_",
    "centred_",
    "column_",
    "columns_",
    "count_",
    "end_",
    "extent_",
    "extreme_",
    "factor_",
    "given_",
    "height_",
    "high_",
    "inner_",
    "is_small_",
    "length_",
    "low_",
    "offset_",
    "out_",
    "part_",
    "powers_",
    "row_",
    "rows_",
    "scale_",
    "side_",
    "size_",
    "slab_",
    "slabs_",
    "stride_",
    "sum_",
    "tile_",
    "total_",
    "w0",
    "w1",
    "width_",
];

/// The graph's name for a value, changed where generated code would use it for something else.
fn safe_name(name: &str) -> String {
    let taken = OWN_NAMES.contains(&name) || OWN_BEGINNINGS.iter().any(|own| name.starts_with(own));
    if taken { format!("g_{name}") } else { name.to_string() }
}
