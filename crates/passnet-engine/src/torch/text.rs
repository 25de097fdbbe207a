//! A graph as the worker compiles it: printed by us, from our own table of operations, with nothing of a pass in it.

use crate::engine::{EngineError, ErrorKind};
use passnet_graph::graph::{Replacement, Target};
use passnet_graph::print::print_model;
use passnet_graph::{Arg, Device, Graph};

/// A graph's text, and what its calls of `passnet_plan_0`, `passnet_plan_1`, … stand for.
#[derive(Debug)]
pub(super) struct GraphText {
    pub(super) text: String,
    pub(super) replaced: Vec<Replacement>,
}

/// Prints a graph for a device.
pub(super) fn print(graph: &Graph, device: Device) -> Result<GraphText, EngineError> {
    let mut replaced = Vec::new();
    let mut copy = graph.clone();
    for (id, call) in copy.calls_mut() {
        for arg in call.args.iter_mut().chain(call.kwargs.iter_mut().map(|(_, arg)| arg)) {
            place(arg, device);
        }
        match &mut call.target {
            Target::Known(_) => {}
            Target::Unknown { .. } => {
                let node = graph.node(id);
                return Err(EngineError {
                    kind: ErrorKind::Unsupported,
                    node: node.name.to_string(),
                    operation: call.target.to_string(),
                    line: node.line,
                    message: "the table of operations does not know it".into(),
                });
            }
            Target::Replacement(replacement) => {
                let name = format!("passnet_plan_{}", replaced.len());
                replaced.push((**replacement).clone());
                replacement.wrapper = name.into();
            }
        }
    }
    Ok(GraphText { text: print_model(&copy), replaced })
}

/// Puts every device where the worker computes.
fn place(arg: &mut Arg, device: Device) {
    match arg {
        Arg::Device(named) => *named = device,
        Arg::Tuple(items) | Arg::List(items) => {
            items.iter_mut().for_each(|item| place(item, device));
        }
        Arg::Slice(parts) => parts.iter_mut().for_each(|part| place(part, device)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use passnet_graph::read::read_model;
    use passnet_graph::syntax::Source;

    fn graph(body: &str) -> Graph {
        let text = format!(
            "import torch\nclass GraphModule(torch.nn.Module):\n    def forward(self, x):\n{body}"
        );
        read_model(&Source::new("model.py", &text)).unwrap()
    }

    #[test]
    fn devices_become_the_workers() {
        let graph = graph(
            "        y = torch.zeros(3, device=device(type='cuda', index=0))\n        return (x + y,)\n",
        );
        let text = print(&graph, Device::CPU).unwrap().text;
        assert!(text.contains("device(type='cpu')") && !text.contains("cuda"), "{text}");
    }

    #[test]
    fn what_the_table_does_not_know_is_refused() {
        let unknown = graph("        y = torch.hub.load(x, 'model')\n        return (y,)\n");
        let error = print(&unknown, Device::CPU).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unsupported, "{error}");
    }
}
