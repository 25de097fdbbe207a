//! Expressions: literals become [`Arg`]s, calls and operators become nodes.

use super::literal;
use crate::Diagnostic;
use crate::graph::{Arg, Call, CalleeKind, Graph, NodeId, Target};
use crate::syntax::{Ranged, Source, TextRange, ast};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::borrow::Cow;

/// What a Python name stands for at this point of the program.
#[derive(Debug, Clone)]
pub(super) enum Name {
    Value(Arg),
    /// Set to `None` to free memory; using it again is an error.
    Cleared,
}

/// Turns expressions into nodes of a growing graph.
pub(super) struct Lowering<'a> {
    pub source: &'a Source,
    pub graph: Graph,
    pub names: FxHashMap<&'a str, Name>,
    /// Node names in use; program variables may be assigned twice, node names are unique.
    taken: FxHashSet<Box<str>>,
    imports: FxHashSet<&'a str>,
}

/// Names of modules, functions and constants that a printed graph refers to.
const RESERVED: &[&str] =
    &["torch", "math", "int", "float", "max", "min", "round", "slice", "Ellipsis", "self"];

impl<'a> Lowering<'a> {
    /// `imports` are the names the file imports at its top.
    pub(super) fn new(source: &'a Source, imports: Vec<&'a str>) -> Self {
        // A node of one of these names would hide what printed calls and literals need.
        let reserved = RESERVED.iter().chain(&imports).map(|name| (*name).into()).collect();
        Lowering {
            source,
            graph: Graph::new(),
            names: FxHashMap::default(),
            imports: imports.into_iter().collect(),
            taken: reserved,
        }
    }

    pub(super) fn line(&self, range: TextRange) -> u32 {
        self.source.position(range.start().to_usize()).0 as u32
    }

    /// Lowers the right-hand side of a statement; its node takes the name of the target.
    pub(super) fn statement(
        &mut self,
        expr: &'a ast::Expr,
        target: Option<&'a str>,
    ) -> Result<Arg, Diagnostic> {
        if let Some(value) = self.constant(expr)? {
            return Ok(value);
        }
        let call = self.call(expr)?;
        Ok(Arg::Node(self.push(target, call, expr.range())))
    }

    /// Lowers an expression that is part of another one.
    pub(super) fn expression(&mut self, expr: &'a ast::Expr) -> Result<Arg, Diagnostic> {
        if let Some(value) = self.constant(expr)? {
            return Ok(value);
        }
        let call = self.call(expr)?;
        Ok(Arg::Node(self.push(None, call, expr.range())))
    }

    /// Names, literals and what is built from them; `None` for what needs a node.
    fn constant(&mut self, expr: &'a ast::Expr) -> Result<Option<Arg>, Diagnostic> {
        Ok(Some(match expr {
            ast::Expr::Name(name) => return self.name(name).map(Some),
            ast::Expr::Tuple(tuple) => Arg::Tuple(self.sequence(&tuple.elts)?),
            ast::Expr::List(list) => Arg::List(self.sequence(&list.elts)?),
            ast::Expr::Slice(slice) => {
                let mut part = |expr: &'a Option<Box<ast::Expr>>| match expr {
                    Some(expr) => self.expression(expr),
                    None => Ok(Arg::None),
                };
                Arg::Slice(Box::new([part(&slice.lower)?, part(&slice.upper)?, part(&slice.step)?]))
            }
            ast::Expr::Call(call) => match literal::constructor(&call.func) {
                Some(literal::Constructor::Slice) => self.slice_call(call)?,
                Some(literal::Constructor::Device) => self.device_call(call)?,
                Some(literal::Constructor::Float) => match literal::float_call(call) {
                    Some(value) => Arg::Float(value),
                    None => return Ok(None),
                },
                None => return Ok(None),
            },
            ast::Expr::Attribute(_) => match dotted_path(self.source, expr) {
                Some(path) if self.is_module_path(&path) => literal::torch_constant(&path)
                    .ok_or_else(|| {
                        self.source
                            .at(expr.range(), format!("`{path}` is not a constant known here"))
                            .with_hint("dtypes such as `torch.float32` and memory formats are")
                    })?,
                _ => return Ok(None),
            },
            other => match literal::literal(other) {
                Ok(value) => return Ok(value),
                Err(message) => return Err(self.source.at(other.range(), message)),
            },
        }))
    }

    fn sequence(&mut self, items: &'a [ast::Expr]) -> Result<Vec<Arg>, Diagnostic> {
        items.iter().map(|item| self.expression(item)).collect()
    }

    fn name(&mut self, name: &'a ast::ExprName) -> Result<Arg, Diagnostic> {
        let id = name.id.as_str();
        match self.names.get(id) {
            Some(Name::Value(value)) => Ok(value.clone()),
            Some(Name::Cleared) => Err(self
                .source
                .at(name.range(), format!("`{id}` is used after it was set to `None`"))),
            None => literal::free_name(id)
                .ok_or_else(|| self.source.at(name.range(), format!("`{id}` is not defined"))),
        }
    }

    /// A path is a module's when its first name is not a local variable.
    fn is_module_path(&self, path: &str) -> bool {
        let first = path.split('.').next().unwrap_or(path);
        !self.names.contains_key(first)
    }

    fn slice_call(&mut self, call: &'a ast::ExprCall) -> Result<Arg, Diagnostic> {
        let args = self.positional(call)?;
        let parts = match <[Arg; 3]>::try_from(args) {
            Ok(parts) => parts,
            Err(mut args) if args.len() == 1 => [Arg::None, args.remove(0), Arg::None],
            Err(args) if args.len() == 2 => {
                let mut args = args.into_iter();
                [args.next().unwrap_or(Arg::None), args.next().unwrap_or(Arg::None), Arg::None]
            }
            Err(_) => {
                return Err(self.source.at(call.range(), "`slice` takes one to three arguments"));
            }
        };
        Ok(Arg::Slice(Box::new(parts)))
    }

    fn device_call(&mut self, call: &'a ast::ExprCall) -> Result<Arg, Diagnostic> {
        literal::device(call)
            .map(Arg::Device)
            .ok_or_else(|| self.source.at(call.range(), "this device is not known here"))
    }

    fn positional(&mut self, call: &'a ast::ExprCall) -> Result<Vec<Arg>, Diagnostic> {
        if let Some(keyword) = call.arguments.keywords.first() {
            return Err(self.source.at(keyword.range(), "no keyword arguments are allowed here"));
        }
        self.sequence(&call.arguments.args)
    }

    /// Everything that is a node: calls, operators, subscripts, attribute reads.
    fn call(&mut self, expr: &'a ast::Expr) -> Result<Call, Diagnostic> {
        let operator = |path: &str, args: Vec<Arg>| Call {
            target: Target::resolve(CalleeKind::Operator, path),
            args,
            kwargs: Vec::new(),
        };
        match expr {
            ast::Expr::Call(call) => self.function_or_method(call),
            ast::Expr::BinOp(binary) => {
                let left = self.expression(&binary.left)?;
                let right = self.expression(&binary.right)?;
                Ok(operator(binary_operator(binary.op), vec![left, right]))
            }
            ast::Expr::Compare(compare) => {
                let (&[op], [right]) = (&*compare.ops, &*compare.comparators) else {
                    return Err(self.source.at(expr.range(), "comparisons cannot be chained here"));
                };
                let Some(path) = comparison(op) else {
                    return Err(self
                        .source
                        .at(expr.range(), "this comparison is not allowed here"));
                };
                let left = self.expression(&compare.left)?;
                let right = self.expression(right)?;
                Ok(operator(path, vec![left, right]))
            }
            ast::Expr::UnaryOp(unary) => {
                let path = match unary.op {
                    ast::UnaryOp::USub => "neg",
                    ast::UnaryOp::UAdd => "pos",
                    ast::UnaryOp::Invert => "invert",
                    ast::UnaryOp::Not => {
                        return Err(self.source.at(expr.range(), "`not` is not allowed here"));
                    }
                };
                let operand = self.expression(&unary.operand)?;
                Ok(operator(path, vec![operand]))
            }
            ast::Expr::Subscript(subscript) => {
                let value = self.expression(&subscript.value)?;
                let index = self.expression(&subscript.slice)?;
                Ok(operator("getitem", vec![value, index]))
            }
            ast::Expr::Attribute(attribute) => {
                let value = self.expression(&attribute.value)?;
                Ok(Call {
                    target: Target::resolve(CalleeKind::Attribute, attribute.attr.as_str()),
                    args: vec![value],
                    kwargs: Vec::new(),
                })
            }
            other => Err(self
                .source
                .at(other.range(), "this expression cannot stand in a graph")
                .with_hint("calls, operators, subscripts, attribute reads and literals can")),
        }
    }

    /// A function of torch, of Python or of a module the file imports.
    /// What `from x import f` binds has lost its module and could not be printed.
    fn function(&self, path: &str, range: TextRange) -> Result<Target, Diagnostic> {
        let target = Target::resolve(CalleeKind::Function, path);
        let root = path.split('.').next().unwrap_or(path);
        let exists = root == "torch" || (path.contains('.') && self.imports.contains(root));
        match target {
            Target::Unknown { .. } if !exists => {
                Err(self.source.at(range, format!("`{root}` is not defined")))
            }
            target => Ok(target),
        }
    }

    fn function_or_method(&mut self, call: &'a ast::ExprCall) -> Result<Call, Diagnostic> {
        let mut args = Vec::with_capacity(call.arguments.args.len() + 1);
        let target = match &*call.func {
            ast::Expr::Name(name) if !self.names.contains_key(name.id.as_str()) => {
                self.function(name.id.as_str(), call.func.range())?
            }
            ast::Expr::Attribute(attribute) => match dotted_path(self.source, &call.func) {
                Some(path) if self.is_module_path(&path) => {
                    self.function(&path, call.func.range())?
                }
                _ => {
                    args.push(self.expression(&attribute.value)?);
                    Target::resolve(CalleeKind::Method, attribute.attr.as_str())
                }
            },
            other => {
                return Err(self
                    .source
                    .at(other.range(), "only torch functions and tensor methods can be called"));
            }
        };
        for arg in &call.arguments.args {
            if arg.is_starred_expr() {
                return Err(self.source.at(arg.range(), "`*` arguments are not allowed here"));
            }
            args.push(self.expression(arg)?);
        }
        let mut kwargs = Vec::with_capacity(call.arguments.keywords.len());
        for keyword in &call.arguments.keywords {
            let Some(name) = &keyword.arg else {
                return Err(self.source.at(keyword.range(), "`**` arguments are not allowed here"));
            };
            if kwargs.iter().any(|(seen, _): &(Box<str>, Arg)| **seen == *name.as_str()) {
                return Err(self.source.at(keyword.range(), format!("`{name}` is given twice")));
            }
            kwargs.push((name.as_str().into(), self.expression(&keyword.value)?));
        }
        Ok(Call { target, args, kwargs })
    }

    /// Appends a node, named after its target or, without one, after its operation.
    pub(super) fn push(&mut self, target: Option<&str>, call: Call, range: TextRange) -> NodeId {
        let line = self.line(range);
        let name = match target {
            Some(name) => self.claim_name(name),
            None => {
                let base = call.target.op_name().rsplit('.').next().unwrap_or("value").to_string();
                self.claim_name(&base)
            }
        };
        self.graph.push_call(name, call, line)
    }

    /// Appends an in-place node; the updated variable names it, unless that already names another node.
    pub(super) fn push_in_place(&mut self, target: &str, call: Call, range: TextRange) -> NodeId {
        let name = (!self.taken.contains(target)).then_some(target);
        self.push(name, call, range)
    }

    /// Gives an in-place node the name of the alias that follows it.
    pub(super) fn rename(&mut self, node: NodeId, name: &str) {
        let old = self.graph.node(node).name.clone();
        self.taken.remove(&old);
        let name = self.claim_name(name);
        self.graph.rename(node, &name);
    }

    /// Reserves a node name, with a number appended if it is taken.
    pub(super) fn claim_name(&mut self, wanted: &str) -> Box<str> {
        if self.taken.insert(wanted.into()) {
            return wanted.into();
        }
        let free =
            (1..).map(|n| format!("{wanted}_{n}")).find(|name| !self.taken.contains(&**name));
        let name: Box<str> = free.unwrap_or_default().into();
        self.taken.insert(name.clone());
        name
    }
}

/// `a.b.c` as text, when the expression is nothing but names and dots.
fn dotted_path<'a>(source: &'a Source, expr: &ast::Expr) -> Option<Cow<'a, str>> {
    let mut names: SmallVec<[&str; 8]> = SmallVec::new();
    let mut root = expr;
    while let ast::Expr::Attribute(attribute) = root {
        names.push(attribute.attr.as_str());
        root = &attribute.value;
    }
    let ast::Expr::Name(first) = root else { return None };
    // Almost always it is written just so, without white space, brackets or letters beyond ASCII.
    let written = source.slice(expr.range());
    if written.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.')) {
        return Some(Cow::Borrowed(written));
    }
    names.push(first.id.as_str());
    names.reverse();
    Some(Cow::Owned(names.join(".")))
}

/// Python's name for `a op b` in module `operator`.
pub fn binary_operator(op: ast::Operator) -> &'static str {
    match op {
        ast::Operator::Add => "add",
        ast::Operator::Sub => "sub",
        ast::Operator::Mult => "mul",
        ast::Operator::Div => "truediv",
        ast::Operator::FloorDiv => "floordiv",
        ast::Operator::Mod => "mod",
        ast::Operator::Pow => "pow",
        ast::Operator::MatMult => "matmul",
        ast::Operator::BitAnd => "and_",
        ast::Operator::BitOr => "or_",
        ast::Operator::BitXor => "xor",
        ast::Operator::LShift => "lshift",
        ast::Operator::RShift => "rshift",
    }
}

/// Python's name for a comparison in module `operator`.
pub fn comparison(op: ast::CmpOp) -> Option<&'static str> {
    Some(match op {
        ast::CmpOp::Eq => "eq",
        ast::CmpOp::NotEq => "ne",
        ast::CmpOp::Lt => "lt",
        ast::CmpOp::LtE => "le",
        ast::CmpOp::Gt => "gt",
        ast::CmpOp::GtE => "ge",
        _ => return None,
    })
}

/// Python's name for `a op= b` in module `operator`.
pub fn augmented_operator(op: ast::Operator) -> Option<&'static str> {
    Some(match op {
        ast::Operator::Add => "iadd",
        ast::Operator::Sub => "isub",
        ast::Operator::Mult => "imul",
        ast::Operator::Div => "itruediv",
        ast::Operator::FloorDiv => "ifloordiv",
        ast::Operator::Mod => "imod",
        ast::Operator::Pow => "ipow",
        ast::Operator::MatMult => "imatmul",
        ast::Operator::BitAnd => "iand",
        ast::Operator::BitOr => "ior",
        ast::Operator::BitXor => "ixor",
        ast::Operator::LShift | ast::Operator::RShift => return None,
    })
}
