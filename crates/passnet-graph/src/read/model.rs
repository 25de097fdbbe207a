//! `model.py`: finds `GraphModule.forward` and turns its statements into nodes.
//!
//! Aliases (`a = b`) and clean-ups (`a = None`) are bookkeeping of Python names and leave no node. Every other
//! statement is one operation, so the position of a statement among them is its op index.

use super::expression::{Lowering, Name, augmented_operator};
use crate::Diagnostic;
use crate::graph::{Annotation, Arg, Call, CalleeKind, Graph, NodeId, Target};
use crate::syntax::{Ranged, Source, ast, parse};

/// Reads the graph of a `model.py`.
pub fn read_model(source: &Source) -> Result<Graph, Diagnostic> {
    let module = parse(source)?;
    let forward = find_forward(source, &module)?;
    Reader::new(source, imports(&module)).read(forward)
}

/// The names that the file's import statements bind.
fn imports(module: &ast::ModModule) -> Vec<&str> {
    let aliases = module.body.iter().flat_map(|stmt| match stmt {
        ast::Stmt::Import(import) => &import.names[..],
        ast::Stmt::ImportFrom(import) => &import.names[..],
        _ => &[],
    });
    aliases
        .map(|alias| match &alias.asname {
            Some(name) => name.as_str(),
            None => alias.name.as_str().split('.').next().unwrap_or_default(),
        })
        .filter(|name| !matches!(*name, "device" | "inf"))
        .collect()
}

fn find_forward<'a>(
    source: &Source,
    module: &'a ast::ModModule,
) -> Result<&'a ast::StmtFunctionDef, Diagnostic> {
    let mut classes = module.body.iter().filter_map(|stmt| match stmt {
        ast::Stmt::ClassDef(class) => Some(class),
        _ => None,
    });
    let Some(class) = classes.next() else {
        return Err(Diagnostic::file(source.path(), "no class `GraphModule` in this file")
            .with_hint("a graph is one class with a single method `forward`"));
    };
    if let Some(second) = classes.next() {
        return Err(source.at(second.name.range(), "a graph file holds exactly one class"));
    }
    let methods = class.body.iter().filter_map(|stmt| match stmt {
        ast::Stmt::FunctionDef(function) => Some(function),
        _ => None,
    });
    let mut forward = None;
    for method in methods {
        if method.name.as_str() != "forward" {
            return Err(source
                .at(method.name.range(), format!("unexpected method `{}`", method.name))
                .with_hint("weights are arguments of `forward`; no other method is allowed"));
        }
        forward = Some(method);
    }
    forward.ok_or_else(|| source.at(class.name.range(), "the class has no method `forward`"))
}

struct Reader<'a> {
    lower: Lowering<'a>,
    /// An in-place statement whose node takes its name from the alias that follows it.
    unnamed: Option<InPlace<'a>>,
    returned: bool,
}

/// `x += y` and `x[i] = y` have no target of their own: torch writes `z = x` after them.
struct InPlace<'a> {
    node: NodeId,
    target: &'a str,
}

impl<'a> Reader<'a> {
    fn new(source: &'a Source, imports: Vec<&'a str>) -> Self {
        Reader { lower: Lowering::new(source, imports), unnamed: None, returned: false }
    }

    fn read(mut self, forward: &'a ast::StmtFunctionDef) -> Result<Graph, Diagnostic> {
        self.parameters(&forward.parameters)?;
        for stmt in &forward.body {
            if self.returned {
                return Err(self.lower.source.at(stmt.range(), "statement after `return`"));
            }
            self.statement(stmt)?;
        }
        if !self.returned {
            return Err(self.lower.source.at(forward.name.range(), "`forward` does not return"));
        }
        Ok(self.lower.graph)
    }

    fn parameters(&mut self, parameters: &'a ast::Parameters) -> Result<(), Diagnostic> {
        let source = self.lower.source;
        if let Some(extra) = parameters.vararg.as_ref().or(parameters.kwarg.as_ref()) {
            return Err(source.at(extra.range(), "`*args` and `**kwargs` are not allowed here"));
        }
        let mut all =
            parameters.posonlyargs.iter().chain(&parameters.args).chain(&parameters.kwonlyargs);
        if all.next().is_none_or(|first| first.parameter.name.as_str() != "self") {
            return Err(source.at(parameters.range(), "the first argument of `forward` is `self`"));
        }
        for with_default in all {
            let parameter = &with_default.parameter;
            if let Some(default) = &with_default.default {
                return Err(source.at(default.range(), "arguments of `forward` have no defaults"));
            }
            let name = parameter.name.as_str();
            if matches!(self.lower.names.get(name), Some(Name::Value(_))) {
                return Err(
                    source.at(parameter.range(), format!("two arguments are named `{name}`"))
                );
            }
            let annotation = match parameter.annotation.as_deref() {
                None => Annotation::None,
                Some(annotation) => match source.slice(annotation.range()) {
                    "torch.nn.parameter.Parameter" | "torch.nn.Parameter" => Annotation::Parameter,
                    "torch.SymInt" | "int" => Annotation::SymInt,
                    _ => Annotation::Tensor,
                },
            };
            let line = self.lower.line(parameter.range());
            let id = self.lower.graph.push_placeholder(name, annotation, line);
            self.lower.claim_name(name);
            self.lower.names.insert(name, Name::Value(Arg::Node(id)));
        }
        Ok(())
    }

    fn statement(&mut self, stmt: &'a ast::Stmt) -> Result<(), Diagnostic> {
        match stmt {
            ast::Stmt::Assign(assign) => self.assign(assign),
            ast::Stmt::AugAssign(assign) => self.augmented(assign),
            ast::Stmt::Return(ret) => self.return_(ret),
            ast::Stmt::Expr(expr) if is_docstring(&expr.value) => Ok(()),
            ast::Stmt::Expr(expr) => self.lower.statement(&expr.value, None).map(|_| ()),
            ast::Stmt::Pass(_) => Ok(()),
            other => Err(self
                .lower
                .source
                .at(other.range(), "this kind of statement cannot stand in a graph")
                .with_hint("a graph is straight-line code: assignments, calls and one `return`")),
        }
    }

    fn assign(&mut self, assign: &'a ast::StmtAssign) -> Result<(), Diagnostic> {
        if assign.value.is_none_literal_expr() {
            for target in &assign.targets {
                let name = self.plain_name(target)?;
                self.lower.names.insert(name, Name::Cleared);
            }
            return Ok(());
        }
        if let ast::Expr::Name(value) = &*assign.value {
            return self.alias(assign, value);
        }
        if let [ast::Expr::Subscript(target)] = assign.targets.as_slice() {
            return self.subscript_write(target, &assign.value, assign);
        }
        self.unnamed = None;
        if let [
            ast::Expr::Tuple(ast::ExprTuple { elts, .. })
            | ast::Expr::List(ast::ExprList { elts, .. }),
        ] = assign.targets.as_slice()
        {
            let value = self.lower.statement(&assign.value, None)?;
            return self.unpack(elts, value, assign);
        }
        let first = self.plain_name(&assign.targets[0])?;
        let value = self.lower.statement(&assign.value, Some(first))?;
        for target in &assign.targets {
            let name = self.plain_name(target)?;
            self.lower.names.insert(name, Name::Value(value.clone()));
        }
        Ok(())
    }

    fn alias(
        &mut self,
        assign: &'a ast::StmtAssign,
        value: &'a ast::ExprName,
    ) -> Result<(), Diagnostic> {
        if let [ast::Expr::Subscript(target)] = assign.targets.as_slice() {
            return self.subscript_write(target, &assign.value, assign);
        }
        let bound = self.lower.expression(&assign.value)?;
        if let [ast::Expr::Tuple(tuple)] = assign.targets.as_slice() {
            return self.unpack(&tuple.elts, bound, assign);
        }
        for target in &assign.targets {
            let name = self.plain_name(target)?;
            if let Some(in_place) = self.unnamed.take_if(|it| it.target == value.id.as_str()) {
                self.lower.rename(in_place.node, name);
            }
            self.lower.names.insert(name, Name::Value(bound.clone()));
        }
        Ok(())
    }

    /// `a, b = value`: each name is an item of the value.
    fn unpack(
        &mut self,
        targets: &'a [ast::Expr],
        value: Arg,
        assign: &'a ast::StmtAssign,
    ) -> Result<(), Diagnostic> {
        for (index, target) in targets.iter().enumerate() {
            let name = self.plain_name(target)?;
            let call = Call {
                target: Target::resolve(CalleeKind::Operator, "getitem"),
                args: vec![value.clone(), Arg::Int(index as i64)],
                kwargs: Vec::new(),
            };
            let node = self.lower.push(Some(name), call, assign.range());
            self.lower.names.insert(name, Name::Value(Arg::Node(node)));
        }
        Ok(())
    }

    fn augmented(&mut self, assign: &'a ast::StmtAugAssign) -> Result<(), Diagnostic> {
        let source = self.lower.source;
        let Some(path) = augmented_operator(assign.op) else {
            return Err(source.at(assign.range(), "this operator cannot be used in place"));
        };
        match &*assign.target {
            ast::Expr::Name(target) => {
                let receiver = self.lower.expression(&assign.target)?;
                let value = self.lower.expression(&assign.value)?;
                // A literal cannot change: `a = 2; a += x` makes a new value.
                let path = if receiver.as_node().is_some() { path } else { &path[1..] };
                let call = Call {
                    target: Target::resolve(CalleeKind::Operator, path),
                    args: vec![receiver, value],
                    kwargs: Vec::new(),
                };
                let node = self.lower.push_in_place(target.id.as_str(), call, assign.range());
                self.lower.names.insert(target.id.as_str(), Name::Value(Arg::Node(node)));
                self.unnamed = Some(InPlace { node, target: target.id.as_str() });
                Ok(())
            }
            other => Err(source.at(other.range(), "only a name can be updated in place here")),
        }
    }

    fn subscript_write(
        &mut self,
        target: &'a ast::ExprSubscript,
        value: &'a ast::Expr,
        assign: &'a ast::StmtAssign,
    ) -> Result<(), Diagnostic> {
        let ast::Expr::Name(name) = &*target.value else {
            return Err(self
                .lower
                .source
                .at(target.range(), "only a name can be written by index"));
        };
        let receiver = self.lower.expression(&target.value)?;
        let index = self.lower.expression(&target.slice)?;
        let value = self.lower.expression(value)?;
        let call = Call {
            target: Target::resolve(CalleeKind::Operator, "setitem"),
            args: vec![receiver, index, value],
            kwargs: Vec::new(),
        };
        let node = self.lower.push(None, call, assign.range());
        self.unnamed = Some(InPlace { node, target: name.id.as_str() });
        Ok(())
    }

    fn return_(&mut self, ret: &'a ast::StmtReturn) -> Result<(), Diagnostic> {
        let Some(value) = ret.value.as_deref() else {
            return Err(self.lower.source.at(ret.range(), "`forward` returns nothing"));
        };
        let outputs = match value {
            ast::Expr::Tuple(tuple) => {
                tuple.elts.iter().map(|e| self.lower.expression(e)).collect::<Result<_, _>>()?
            }
            single => vec![self.lower.expression(single)?],
        };
        self.lower.graph.outputs = outputs;
        self.returned = true;
        Ok(())
    }

    fn plain_name(&self, target: &'a ast::Expr) -> Result<&'a str, Diagnostic> {
        match target {
            ast::Expr::Name(name) => Ok(name.id.as_str()),
            other => Err(self
                .lower
                .source
                .at(other.range(), "only plain names can be assigned in a graph")
                .with_hint("take tuples apart with `a, b = x` or with `x[0]`, `x[1]`")),
        }
    }
}

fn is_docstring(expr: &ast::Expr) -> bool {
    matches!(expr, ast::Expr::StringLiteral(_))
}
