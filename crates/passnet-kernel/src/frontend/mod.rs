//! From `@triton.jit` source to tile IR, typed as Triton types it.
//!
//! The front end is an interpreter over the syntax tree: compile-time values are computed, run-time values
//! become instructions, helper functions are inlined, `static_range` is unrolled.

mod arguments;
mod assembly;
mod atomics;
mod attributes;
mod binary;
mod block_pointers;
mod branches;
mod builder;
mod builtins;
mod calls;
mod combine;
mod control;
mod expr;
mod float8;
mod loops;
mod math;
mod memory;
mod names;
mod reduction;
mod shapes;
mod value;

pub use builtins::is_static_assertion;

use crate::consts::Const;
use crate::ir::{Block, Function, Param, verify};
use crate::modules::{FunctionRef, ModuleSet};
use crate::types::{Elem, Shape, Type};
use builder::Builder;
pub(crate) use names::is_constexpr;
use passnet_graph::Diagnostic;
use passnet_graph::syntax::ast::Expr;
use passnet_graph::syntax::{Ranged, Source};
use std::collections::BTreeMap;
use std::sync::LazyLock;
use value::{BlockPtr, Func, Scope, Value};

/// How one parameter of a kernel is specialised.
#[derive(Debug, Clone, PartialEq)]
pub enum ArgSpec {
    /// A tensor of such elements.
    Pointer(Elem),
    /// A number of run time.
    Scalar(Elem),
    /// A number of compile time.
    Const(Const),
}

/// Instructions one kernel may have after inlining and unrolling.
const MAX_INSTS: usize = 100_000;
/// Statements and expressions the front end may visit.
const MAX_STEPS: usize = 2_000_000;
/// Nested expressions, blocks and calls together: the front end recurses over them.
const MAX_NESTING: usize = 600;
/// Depth of inlined calls.
const MAX_CALL_DEPTH: usize = 32;

type Result<T> = std::result::Result<T, Diagnostic>;

/// Functions of `tl` that are themselves written in the language.
static PRELUDE: LazyLock<Result<ModuleSet>> = LazyLock::new(|| {
    ModuleSet::new(vec![("prelude".into(), Source::new("<triton>", include_str!("prelude.py")))])
});

/// Compiles a kernel for given argument kinds; parameters without one take their default.
pub fn compile(
    modules: &ModuleSet,
    module: usize,
    kernel: &str,
    args: &BTreeMap<String, ArgSpec>,
) -> Result<Function> {
    let Some(function) = modules.function(module, kernel) else {
        let file = modules.source(module).path();
        return Err(Diagnostic::file(file, format!("no function `{kernel}` in this file")));
    };
    let prelude = PRELUDE.as_ref().map_err(Clone::clone)?;
    let mut compiler = Compiler::new(modules, prelude);
    let mut result = compiler.kernel(function, args)?;
    if let Some(inst) = float8::computes(&result) {
        let mut error = Diagnostic::file(
            result.file(inst.loc),
            format!("`{}` does not take floats of eight bits", inst.op),
        );
        error.line = inst.loc.line as usize;
        error.column = usize::from(error.line > 0);
        return Err(
            error.with_hint("convert them with `.to(tl.float16)` or `.to(tl.float32)` first")
        );
    }
    float8::to_bytes(&mut result);
    result.renumber();
    if let Err(broken) = verify::verify(&result) {
        let source = modules.source(function.module);
        return Err(source.at(function.def.name.range(), format!("internal error: {broken}")));
    }
    Ok(result)
}

/// What a constant expression of a module stands for.
#[derive(Debug)]
pub(crate) enum Constant {
    Value(Const),
    /// Something from outside the pass, by its dotted path.
    Path(String),
}

/// Evaluates an expression at the top level of a module, as a kernel that names it would.
pub(crate) fn constant(modules: &ModuleSet, module: usize, expression: &Expr) -> Result<Constant> {
    let prelude = ModuleSet::new(Vec::new())?;
    let mut compiler = Compiler::new(modules, &prelude);
    compiler.file.module = module;
    match compiler.host_expr(expression)? {
        Value::Path(path) => Ok(Constant::Path(path)),
        value => match value.to_const() {
            Some(value) => Ok(Constant::Value(value)),
            None => Err(compiler.error(expression, "this is not a constant that a kernel can use")),
        },
    }
}

/// Which set of files a function belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    Pass,
    Prelude,
}

/// The function being compiled: where its names are looked up and its errors are located.
#[derive(Debug, Clone, Copy)]
struct SourceFile {
    origin: Origin,
    module: usize,
}

struct Compiler<'a> {
    modules: &'a ModuleSet,
    prelude: &'a ModuleSet,
    b: Builder,
    scope: Scope<'a>,
    file: SourceFile,
    /// The call in the pass file that led into the prelude: errors inside are reported there.
    call_site: Option<(usize, passnet_graph::syntax::TextRange)>,
    depth: usize,
    /// Whether an expression outside kernels is evaluated.
    host: bool,
    nesting: usize,
    steps: usize,
}

impl<'a> Compiler<'a> {
    fn new(modules: &'a ModuleSet, prelude: &'a ModuleSet) -> Self {
        Compiler {
            modules,
            prelude,
            b: Builder::default(),
            scope: Scope::default(),
            file: SourceFile { origin: Origin::Pass, module: 0 },
            call_site: None,
            depth: 0,
            host: false,
            nesting: 0,
            steps: 0,
        }
    }

    fn kernel(
        &mut self,
        function: FunctionRef<'a>,
        args: &BTreeMap<String, ArgSpec>,
    ) -> Result<Function> {
        self.file = SourceFile { origin: Origin::Pass, module: function.module };
        let def = function.def;
        if !function.is_kernel() {
            return Err(self
                .error(&def.name, format!("`{}` is not decorated with `@triton.jit`", def.name)));
        }
        if let Some(extra) = def.parameters.vararg.as_ref().or(def.parameters.kwarg.as_ref()) {
            return Err(self.error(&**extra, "kernels cannot take `*args` or `**kwargs`"));
        }
        let mut params = Vec::new();
        for parameter in def.parameters.iter_non_variadic_params() {
            let name = parameter.parameter.name.as_str();
            let value = match (self.argument(name, args, &mut params), &parameter.default) {
                (Some(value), _) => value,
                (None, Some(default)) => self.host_expr(default)?,
                (None, None) => {
                    return Err(
                        self.error(&parameter.parameter, format!("no argument for `{name}`"))
                    );
                }
            };
            self.scope.set(name, value);
        }
        self.b.open();
        self.function_body(&def.body)?;
        let insts = self.b.close();
        Ok(Function {
            name: def.name.to_string(),
            params,
            types: std::mem::take(&mut self.b.types),
            body: Block { params: Vec::new(), insts, yields: Vec::new() },
            files: self.modules.files(),
        })
    }

    /// A compile-time argument; functions are looked up in the pass.
    fn known(&self, c: &Const) -> Value<'a> {
        match c {
            Const::Tuple(items) => {
                Value::Tuple(items.iter().map(|item| self.known(item)).collect())
            }
            Const::Function(module, name) => match self.modules.function(*module, name) {
                Some(function) => Value::Function(Func { function, prelude: false }),
                None => Value::Const(c.clone()),
            },
            other => Value::from_const(other.clone()),
        }
    }

    /// The value of a parameter; a tuple's parts have names of their own (`xs.0`, `xs.1.0`).
    fn argument(
        &mut self,
        name: &str,
        args: &BTreeMap<String, ArgSpec>,
        params: &mut Vec<Param>,
    ) -> Option<Value<'a>> {
        match args.get(name) {
            Some(ArgSpec::Pointer(elem)) => Some(self.param(params, name, Type::pointer(*elem))),
            Some(ArgSpec::Scalar(elem)) => Some(self.param(params, name, Type::scalar(*elem))),
            Some(ArgSpec::Const(c)) => Some(self.known(c)),
            None => {
                let inside = format!("{name}.");
                let first = args.range(inside.clone()..).next();
                first.filter(|(key, _)| key.starts_with(&inside))?;
                if let Some(ArgSpec::Pointer(elem)) = args.get(&format!("{inside}base")) {
                    return self.descriptor_argument(&inside, *elem, args, params);
                }
                let mut items = Vec::new();
                while let Some(item) =
                    self.argument(&format!("{inside}{}", items.len()), args, params)
                {
                    items.push(item);
                }
                Some(Value::Tuple(items))
            }
        }
    }

    /// A descriptor that the host made: base, sizes and strides are parameters, its block is known.
    fn descriptor_argument(
        &mut self,
        inside: &str,
        elem: Elem,
        args: &BTreeMap<String, ArgSpec>,
        params: &mut Vec<Param>,
    ) -> Option<Value<'a>> {
        let Some(ArgSpec::Const(Const::Tuple(sizes))) = args.get(&format!("{inside}block")) else {
            return None;
        };
        let sizes = sizes.iter().map(|size| size.as_int().and_then(|i| u32::try_from(i).ok()));
        let block: Option<Shape> = sizes.collect();
        let block = block?;
        let mut part = |this: &mut Self, name: String, ty: Type| match this.param(params, &name, ty)
        {
            Value::Tensor(v) => Some(v),
            _ => None,
        };
        let wide = Type::scalar(Elem::I64);
        let base = part(self, format!("{inside}base"), Type::pointer(elem))?;
        let mut sizes = |this: &mut Self, name: &str| -> Option<Vec<_>> {
            let names = (0..block.len()).map(|d| format!("{inside}{name}.{d}"));
            names.map(|name| part(this, name, wide.clone())).collect()
        };
        let (shape, strides) = (sizes(self, "shape")?, sizes(self, "strides")?);
        let offsets = shape.clone();
        let nan = args.get(&format!("{inside}nan")) == Some(&ArgSpec::Const(Const::Bool(true)));
        let made = BlockPtr { base, shape, strides, offsets, block, descriptor: true, nan };
        Some(Value::BlockPtr(std::rc::Rc::new(made)))
    }

    fn param(&mut self, params: &mut Vec<Param>, name: &str, ty: Type) -> Value<'a> {
        let value = self.b.fresh(ty);
        params.push(Param { name: name.to_string(), value });
        Value::Tensor(value)
    }

    fn module_set(&self) -> &'a ModuleSet {
        match self.file.origin {
            Origin::Pass => self.modules,
            Origin::Prelude => self.prelude,
        }
    }

    fn error(&self, node: &impl Ranged, message: impl Into<String>) -> Diagnostic {
        match (self.file.origin, self.call_site) {
            (Origin::Prelude, Some((module, range))) => {
                self.modules.source(module).at(range, message)
            }
            _ => self.module_set().source(self.file.module).at(node.range(), message),
        }
    }

    /// Counts work and moves the location that new instructions carry.
    fn step(&mut self, node: &impl Ranged) -> Result<()> {
        self.steps += 1;
        if self.steps > MAX_STEPS {
            return Err(
                self.error(node, format!("kernel needs more than {MAX_STEPS} compile steps"))
            );
        }
        if self.nesting > MAX_NESTING {
            return Err(self.error(node, format!("nested more than {MAX_NESTING} levels deep")));
        }
        if self.b.count > MAX_INSTS {
            return Err(self
                .error(node, format!("kernel has more than {MAX_INSTS} operations after unrolling"))
                .with_hint("use `range` instead of `tl.static_range`, or fewer iterations"));
        }
        Ok(())
    }

    /// Sets the line of the instructions that follow.
    fn locate(&mut self, node: &impl Ranged) {
        if self.file.origin == Origin::Pass {
            self.b.loc.file = self.file.module as u16;
            self.b.loc.line = self.modules.line(self.file.module, node);
        }
    }
}
