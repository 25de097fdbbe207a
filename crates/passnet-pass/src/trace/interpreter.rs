//! The state of a trace, and its limits.

use super::value::{Callable, Class, Code, Locals, Value};
use super::{Dialect, Origin};
use crate::load::{Binding, Bindings, ModuleId, Program};
use passnet_graph::graph::{CalleeKind, Target};
use passnet_graph::syntax::{Ranged, TextRange, ast};
use passnet_graph::{Arg, Call, Diagnostic, Graph, NodeId};
use rustc_hash::FxHashMap;

const MAX_STEPS: usize = 200_000;
const MAX_CALL_DEPTH: usize = 32;
const MAX_NODES: usize = 20_000;

pub(super) struct Interpreter<'a> {
    pub program: &'a Program,
    pub bindings: &'a Bindings<'a>,
    pub dialect: Dialect,
    graph: Graph,
    origins: Vec<Origin>,
    warnings: Vec<Diagnostic>,
    names: FxHashMap<String, usize>,
    steps: usize,
    pub depth: usize,
    /// Set while a top-level constant is evaluated: it cannot contain graph operations.
    pub in_constant: bool,
}

pub(super) struct Traced<'a> {
    pub graph: Graph,
    pub origins: Vec<Origin>,
    pub warnings: Vec<Diagnostic>,
    pub result: Value<'a>,
}

/// One function being executed.
pub(super) struct Frame<'a> {
    pub module: ModuleId,
    pub locals: Locals<'a>,
    pub captured: Option<std::rc::Rc<Locals<'a>>>,
}

impl<'a> Interpreter<'a> {
    pub(super) fn new(program: &'a Program, bindings: &'a Bindings<'a>, dialect: Dialect) -> Self {
        Interpreter {
            program,
            bindings,
            dialect,
            graph: Graph::new(),
            origins: Vec::new(),
            warnings: Vec::new(),
            names: FxHashMap::default(),
            steps: 0,
            depth: 0,
            in_constant: false,
        }
    }

    /// Runs a function of the pass with one placeholder for each parameter.
    pub(super) fn trace(
        mut self,
        module: ModuleId,
        function: &'a ast::StmtFunctionDef,
    ) -> Result<Traced<'a>, Diagnostic> {
        let mut locals = Locals::default();
        let parameters = &function.parameters;
        if let Some(extra) = parameters.vararg.as_ref().or(parameters.kwarg.as_ref()) {
            return Err(self.error(
                module,
                extra.range(),
                "`*args` and `**kwargs` have no fixed number of values here",
            ));
        }
        let all =
            parameters.posonlyargs.iter().chain(&parameters.args).chain(&parameters.kwonlyargs);
        for parameter in all {
            let name = parameter.parameter.name.as_str();
            self.names.insert(name.to_string(), 0);
            let range = parameter.range();
            let line = self.program.module(module).line(parameter);
            let id = self.graph.push_placeholder(name, Default::default(), line);
            self.origins.push(Origin { module, range });
            locals.insert(name, Value::Arg(Arg::Node(id)));
        }
        let mut frame = Frame { module, locals, captured: None };
        let result = self.body(&function.body, &mut frame)?;
        Ok(Traced { graph: self.graph, origins: self.origins, warnings: self.warnings, result })
    }

    pub(super) fn error(
        &self,
        module: ModuleId,
        range: TextRange,
        message: impl Into<String>,
    ) -> Diagnostic {
        self.program.module(module).source.at(range, message)
    }

    pub(super) fn warn(&mut self, warning: Diagnostic) {
        self.warnings.push(warning);
    }

    /// Counts a step of evaluation; endless loops end here.
    pub(super) fn step(&mut self, module: ModuleId, range: TextRange) -> Result<(), Diagnostic> {
        self.steps += 1;
        if self.steps > MAX_STEPS {
            return Err(self.error(
                module,
                range,
                format!("tracing takes more than {MAX_STEPS} steps"),
            ));
        }
        Ok(())
    }

    pub(super) fn enter(&mut self, module: ModuleId, range: TextRange) -> Result<(), Diagnostic> {
        self.depth += 1;
        if self.depth > MAX_CALL_DEPTH {
            let message = format!("functions call each other more than {MAX_CALL_DEPTH} deep");
            return Err(self
                .error(module, range, message)
                .with_hint("a pattern is a straight line of operations: write them out"));
        }
        Ok(())
    }

    /// Appends a call to the graph.
    pub(super) fn push(
        &mut self,
        module: ModuleId,
        range: TextRange,
        target: Target,
        args: Vec<Arg>,
        kwargs: Vec<(Box<str>, Arg)>,
    ) -> Result<Value<'a>, Diagnostic> {
        if self.in_constant {
            return Err(self
                .error(module, range, "a tensor made at the top level of a file cannot be traced")
                .with_hint("make it inside the function, or pass it as an argument"));
        }
        if self.graph.nodes().len() >= MAX_NODES {
            return Err(self.error(module, range, format!("more than {MAX_NODES} operations")));
        }
        let mut call = Call { target, args, kwargs };
        if self.dialect == Dialect::Fx {
            // torch.fx computes with constants while it traces.
            let (mut inputs, mut constants) = (0, 0);
            call.for_each_input(|id| {
                inputs += 1;
                constants += usize::from(self.graph.call(id).is_some_and(is_constant_of_module));
            });
            if inputs > 0 && inputs == constants {
                call = Call { target: constant_of_module(), args: Vec::new(), kwargs: Vec::new() };
            }
        }
        let base = call.target.op_name().rsplit('.').next().unwrap_or("value").to_string();
        let name = self.fresh_name(&base);
        let line = self.program.module(module).source.position(range.start().to_usize()).0 as u32;
        let id: NodeId = self.graph.push_call(name, call, line);
        self.origins.push(Origin { module, range });
        Ok(Value::Arg(Arg::Node(id)))
    }

    fn fresh_name(&mut self, base: &str) -> String {
        if !self.names.contains_key(base) {
            self.names.insert(base.to_string(), 0);
            return base.to_string();
        }
        loop {
            let count = self.names.entry(base.to_string()).or_insert(0);
            *count += 1;
            let name = format!("{base}_{count}");
            if !self.names.contains_key(&name) {
                self.names.insert(name.clone(), 0);
                return name;
            }
        }
    }

    /// What a name means inside a function: local, captured, global, or built in.
    pub(super) fn name(
        &mut self,
        frame: &Frame<'a>,
        name: &'a ast::ExprName,
    ) -> Result<Value<'a>, Diagnostic> {
        let id = name.id.as_str();
        if let Some(value) = frame.locals.get(id) {
            return Ok(value.clone());
        }
        if let Some(value) = frame.captured.as_ref().and_then(|captured| captured.get(id)) {
            return Ok(value.clone());
        }
        if self.bindings.get(frame.module, id).is_some() {
            return self.global(frame.module, id, frame.module, name.range());
        }
        if id == "Ellipsis" {
            return Ok(Value::Arg(Arg::Ellipsis));
        }
        if super::builtins::is_builtin(id) {
            return Ok(Value::Path(id.to_string()));
        }
        Err(self.error(frame.module, name.range(), format!("`{id}` is not defined")))
    }

    /// A name defined at the top level of a file.
    pub(super) fn global(
        &mut self,
        home: ModuleId,
        name: &str,
        module: ModuleId,
        range: TextRange,
    ) -> Result<Value<'a>, Diagnostic> {
        let bindings = self.bindings;
        let Some((home, binding)) = bindings.resolve(home, name) else {
            let where_ = &self.program.module(home).name;
            return Err(self.error(module, range, format!("`{where_}` does not define `{name}`")));
        };
        match binding {
            Binding::Function(def) => {
                Ok(Value::Function(Callable { module: home, code: Code::Def(def), captured: None }))
            }
            Binding::Module(id) => Ok(Value::Module(*id)),
            Binding::Outside(path) => Ok(Value::Path(path.clone())),
            Binding::Class(def) => Ok(Value::Class(Class { module: home, def })),
            Binding::Member(..) => {
                Err(self.error(module, range, format!("`{name}` is imported in a circle")))
            }
            Binding::Value { expr, element } => {
                let value = self.constant(home, expr)?;
                element.iter().try_fold(value, |value, index| match value {
                    Value::Sequence { mut items, .. } if *index < items.len() => {
                        Ok(items.swap_remove(*index))
                    }
                    _ => Err(self.error(home, expr.range(), "this cannot be unpacked here")),
                })
            }
        }
    }

    /// Evaluates a top-level constant.
    fn constant(&mut self, home: ModuleId, expr: &'a ast::Expr) -> Result<Value<'a>, Diagnostic> {
        self.enter(home, expr.range())?;
        let outer = std::mem::replace(&mut self.in_constant, true);
        let mut frame = Frame { module: home, locals: Locals::default(), captured: None };
        let value = self.expression(expr, &mut frame);
        self.in_constant = outer;
        self.depth -= 1;
        value
    }
}

/// A tensor that torch.fx computed while tracing: no node of a graph is one, so it matches nothing.
pub(super) const CONSTANT_OF_MODULE: &str = "get_attr";

pub(super) fn constant_of_module() -> Target {
    Target::Unknown { kind: CalleeKind::Function, path: CONSTANT_OF_MODULE.into() }
}

/// Whether a call is a constant that torch.fx stored in the module.
pub(super) fn is_constant_of_module(call: &Call) -> bool {
    call.target.path() == CONSTANT_OF_MODULE && call.args.is_empty()
}
