//! `model.py` in canonical style: one statement per line, values freed after their last use.

use super::python::{Dialect, write_arg, write_items};
use crate::graph::{Annotation, Arg, Call, CalleeKind, Graph, NodeId, NodeKind};
use std::collections::BTreeSet;

/// Prints a graph so that reading the text gives the same graph back.
pub fn print_model(graph: &Graph) -> String {
    let mut printer = Printer::new(graph);
    for (id, call) in graph.calls() {
        printer.statement(id, call);
        printer.free_after(id);
    }
    printer.finish()
}

struct Printer<'a> {
    graph: &'a Graph,
    body: String,
    dialect: Dialect,
    /// For every node, the last node that uses it; outputs are never freed.
    last_use: Vec<Option<NodeId>>,
    returned: Vec<bool>,
}

impl<'a> Printer<'a> {
    fn new(graph: &'a Graph) -> Self {
        let mut last_use = vec![None; graph.nodes().len()];
        for (id, call) in graph.calls() {
            last_use[id.index()] = Some(id);
            call.for_each_input(|input| last_use[input.index()] = Some(id));
        }
        let mut returned = vec![false; graph.nodes().len()];
        for output in &graph.outputs {
            output.for_each_node(&mut |id| returned[id.index()] = true);
        }
        let named = |name: &str| graph.nodes().iter().any(|node| &*node.name == name);
        let dialect = Dialect { qualified_device: named("device"), called_inf: named("inf") };
        Printer { graph, body: String::new(), dialect, last_use, returned }
    }

    fn name(&self, id: NodeId) -> &'a str {
        &self.graph.node(id).name
    }

    fn line(&mut self, text: &str) {
        self.body.push_str("        ");
        self.body.push_str(text);
        self.body.push('\n');
    }

    fn statement(&mut self, id: NodeId, call: &Call) {
        let name = self.name(id);
        if call.target.kind() == CalleeKind::Operator {
            let path = call.target.path();
            if let ("setitem", [Arg::Node(target), index, value]) = (path, &call.args[..]) {
                let target = self.name(*target);
                let text = format!("{target}[{}] = {}", self.index(index), self.arg(value));
                self.line(&text);
                self.line(&format!("{name} = {target}"));
                return;
            }
            if let (Some(operator), [Arg::Node(target), value]) = (augmented(path), &call.args[..])
            {
                return self.augmented(id, *target, operator, value);
            }
        }
        let text = format!("{name} = {}", self.expression(call));
        self.line(&text);
    }

    /// `a += b` rebinds `a`, so where the old value is still needed by name the new one is named first.
    fn augmented(&mut self, id: NodeId, target: NodeId, operator: &str, value: &Arg) {
        let (name, target_name, value) = (self.name(id), self.name(target), self.arg(value));
        let needed_later =
            self.returned[target.index()] || self.last_use[target.index()] > Some(id);
        if needed_later {
            self.line(&format!("{name} = {target_name}"));
            self.line(&format!("{name} {operator} {value}"));
        } else {
            self.line(&format!("{target_name} {operator} {value}"));
            self.line(&format!("{name} = {target_name}"));
        }
    }

    fn expression(&self, call: &Call) -> String {
        match (call.target.kind(), &call.args[..]) {
            (CalleeKind::Operator, [value, index]) if call.target.path() == "getitem" => {
                format!("{}[{}]", self.receiver(value), self.index(index))
            }
            (CalleeKind::Operator, [left, right]) if binary(call.target.path()).is_some() => {
                let operator = binary(call.target.path()).unwrap_or_default();
                format!("{} {operator} {}", self.receiver(left), self.arg(right))
            }
            (CalleeKind::Operator, [operand]) if unary(call.target.path()).is_some() => {
                let operator = unary(call.target.path()).unwrap_or_default();
                format!("{operator}{}", self.receiver(operand))
            }
            (CalleeKind::Attribute, [value]) => {
                format!("{}.{}", self.receiver(value), call.target.path())
            }
            (CalleeKind::Method, [receiver, rest @ ..]) => format!(
                "{}.{}({})",
                self.receiver(receiver),
                call.target.path(),
                self.arguments(rest, call)
            ),
            _ => format!("{}({})", call.target.path(), self.arguments(&call.args, call)),
        }
    }

    fn arguments(&self, positional: &[Arg], call: &Call) -> String {
        let mut text = String::new();
        write_items(&mut text, self.graph, positional, self.dialect);
        for (name, arg) in &call.kwargs {
            if !text.is_empty() {
                text.push_str(", ");
            }
            text.push_str(name);
            text.push('=');
            write_arg(&mut text, self.graph, arg, self.dialect);
        }
        text
    }

    fn arg(&self, arg: &Arg) -> String {
        let mut text = String::new();
        write_arg(&mut text, self.graph, arg, self.dialect);
        text
    }

    /// The value before an operator, a dot or a bracket: numbers need parentheses there.
    fn receiver(&self, arg: &Arg) -> String {
        let text = self.arg(arg);
        match arg {
            Arg::Int(_) | Arg::Float(_) if text.starts_with('-') => format!("({text})"),
            _ => text,
        }
    }

    fn index(&self, index: &Arg) -> String {
        match index {
            Arg::Tuple(items) if items.len() > 1 => {
                let mut text = String::new();
                write_items(&mut text, self.graph, items, self.dialect);
                text
            }
            other => self.arg(other),
        }
    }

    /// Frees every value whose last use this was, and a result that nothing uses.
    fn free_after(&mut self, id: NodeId) {
        let mut dead: Vec<NodeId> = Vec::new();
        let mut consider = |value: NodeId| {
            let last = self.last_use[value.index()] == Some(id) && !self.returned[value.index()];
            if last && !dead.contains(&value) {
                dead.push(value);
            }
        };
        if let Some(call) = self.graph.call(id) {
            call.for_each_input(&mut consider);
        }
        consider(id);
        if !dead.is_empty() {
            let names: Vec<&str> = dead.iter().map(|value| self.name(*value)).collect();
            self.line(&format!("{} = None", names.join(" = ")));
        }
    }

    fn finish(mut self) -> String {
        let outputs = Arg::Tuple(self.graph.outputs.clone());
        let text = format!("return {}", self.arg(&outputs));
        self.line(&text);
        let mut file = String::from("import torch\n");
        for module in self.modules() {
            file.push_str(&format!("import {module}\n"));
        }
        if !self.dialect.qualified_device && self.body.contains("device(type=") {
            file.push_str("from torch import device\n");
        }
        if !self.dialect.called_inf && self.uses_inf() {
            file.push_str("from torch import inf\n");
        }
        file.push_str("\nclass GraphModule(torch.nn.Module):\n\n    def forward(self");
        for node in self.graph.placeholders() {
            file.push_str(", ");
            file.push_str(&node.name);
            if let NodeKind::Placeholder(annotation) = &node.kind
                && *annotation != Annotation::None
            {
                file.push_str(": ");
                file.push_str(&annotation.to_string());
            }
        }
        file.push_str("):\n");
        file.push_str(&self.body);
        file
    }

    /// Modules other than torch whose functions are called.
    fn modules(&self) -> BTreeSet<&str> {
        let functions = self.graph.calls().filter_map(|(_, call)| {
            let is_function = call.target.kind() == CalleeKind::Function;
            is_function.then(|| call.target.path().rsplit_once('.'))?
        });
        let modules = functions.map(|(module, _)| module);
        modules.filter(|module| module.split('.').next() != Some("torch")).collect()
    }

    fn uses_inf(&self) -> bool {
        fn holds_inf(arg: &Arg) -> bool {
            matches!(arg, Arg::Float(value) if value.is_infinite())
                || arg.parts().iter().any(holds_inf)
        }
        self.graph.calls().any(|(_, call)| call.all_args().any(holds_inf))
            || self.graph.outputs.iter().any(holds_inf)
    }
}

fn binary(path: &str) -> Option<&'static str> {
    Some(match path {
        "add" => "+",
        "sub" => "-",
        "mul" => "*",
        "truediv" => "/",
        "floordiv" => "//",
        "mod" => "%",
        "pow" => "**",
        "matmul" => "@",
        "and_" => "&",
        "or_" => "|",
        "xor" => "^",
        "lshift" => "<<",
        "rshift" => ">>",
        "eq" => "==",
        "ne" => "!=",
        "lt" => "<",
        "le" => "<=",
        "gt" => ">",
        "ge" => ">=",
        _ => return None,
    })
}

fn unary(path: &str) -> Option<&'static str> {
    Some(match path {
        "neg" => "-",
        "pos" => "+",
        "invert" => "~",
        _ => return None,
    })
}

fn augmented(path: &str) -> Option<&'static str> {
    Some(match path {
        "iadd" => "+=",
        "isub" => "-=",
        "imul" => "*=",
        "itruediv" => "/=",
        "ifloordiv" => "//=",
        "imod" => "%=",
        "ipow" => "**=",
        "imatmul" => "@=",
        "iand" => "&=",
        "ior" => "|=",
        "ixor" => "^=",
        _ => return None,
    })
}
