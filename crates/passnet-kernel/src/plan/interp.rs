//! Statements and expressions of the host subset.

use super::host::PlanLimits;
use super::tensor::Tensor;
use super::value::{DictId, FrameId, ListId, Value};
use super::{BufferSpec, Step};
use crate::consts::{self, Const};
use crate::modules::{Binding, ModuleSet};
use passnet_graph::syntax::ast::{
    BoolOp, CmpOp, Comprehension, Expr, Number, Operator, Stmt, UnaryOp,
};
use passnet_graph::syntax::{Ranged, TextRange};
use passnet_graph::{DType, Device, Diagnostic};
use rustc_hash::FxHashMap;
use std::rc::Rc;

pub(super) type Result<T> = std::result::Result<T, Diagnostic>;

pub(super) struct Frame<'a> {
    names: FxHashMap<String, Value<'a>>,
    parent: Option<FrameId>,
    pub(super) module: usize,
}

pub(super) enum Flow<'a> {
    Next,
    Break,
    Continue,
    Return(Value<'a>),
}

pub(super) struct Interp<'a> {
    pub(super) modules: &'a ModuleSet,
    pub(super) limits: PlanLimits,
    frames: Vec<Frame<'a>>,
    pub(super) lists: Vec<Vec<Value<'a>>>,
    pub(super) dicts: Vec<Vec<(Value<'a>, Value<'a>)>>,
    globals: FxHashMap<(usize, String), Value<'a>>,
    pub(super) frame: FrameId,
    steps: usize,
    items: usize,
    nesting: usize,
    pub(super) buffers: Vec<BufferSpec>,
    pub(super) plan_steps: Vec<Step>,
    pub(super) notes: Vec<String>,
}

const ALLOWED: &str = "a wrapper may compute with sizes, strides and dtypes, make buffers with `torch.empty` and the like, and launch kernels";

const MAX_TUPLE_DEPTH: u32 = 32;
const MAX_TUPLE_NODES: usize = 1 << 16;

impl<'a> Interp<'a> {
    pub(super) fn new(modules: &'a ModuleSet, limits: PlanLimits) -> Self {
        let root = Frame { names: FxHashMap::default(), parent: None, module: 0 };
        Interp {
            modules,
            limits,
            frames: vec![root],
            lists: Vec::new(),
            dicts: Vec::new(),
            globals: FxHashMap::default(),
            frame: FrameId(0),
            steps: 0,
            items: 0,
            nesting: 0,
            buffers: Vec::new(),
            plan_steps: Vec::new(),
            notes: Vec::new(),
        }
    }

    pub(super) fn module(&self) -> usize {
        self.frames[self.frame.0].module
    }

    pub(super) fn error(&self, at: &impl Ranged, message: impl Into<String>) -> Diagnostic {
        self.modules.source(self.module()).at(at.range(), message)
    }

    pub(super) fn outside(&self, at: &impl Ranged, message: impl Into<String>) -> Diagnostic {
        self.error(at, message).with_hint(ALLOWED)
    }

    pub(super) fn line(&self, at: &impl Ranged) -> u32 {
        self.modules.line(self.module(), at)
    }

    pub(super) fn step(&mut self, at: &impl Ranged) -> Result<()> {
        self.steps += 1;
        if self.steps > self.limits.steps {
            return Err(
                self.error(at, format!("the wrapper needs more than {} steps", self.limits.steps))
            );
        }
        if self.nesting > self.limits.nesting {
            return Err(self.error(
                at,
                format!("the wrapper nests more than {} levels deep", self.limits.nesting),
            ));
        }
        Ok(())
    }

    pub(super) fn add_buffer(&mut self, at: &impl Ranged, buffer: BufferSpec) -> Result<usize> {
        let total =
            self.buffers.iter().map(BufferSpec::bytes).fold(buffer.bytes(), u64::saturating_add);
        if total > self.limits.bytes {
            return Err(self.error(
                at,
                format!("buffers need {total} bytes, more than the limit of {}", self.limits.bytes),
            ));
        }
        if self.buffers.len() >= 4096 {
            return Err(self.error(at, "more than 4096 buffers"));
        }
        self.buffers.push(buffer);
        Ok(self.buffers.len() - 1)
    }

    pub(super) fn push_step(&mut self, at: &impl Ranged, step: Step) -> Result<()> {
        if self.plan_steps.len() >= self.limits.launches {
            return Err(self.error(at, format!("more than {} launches", self.limits.launches)));
        }
        self.plan_steps.push(step);
        Ok(())
    }

    fn count_items(&mut self, n: usize) {
        self.items = self.items.saturating_add(n);
        if self.items > self.limits.items {
            // The next step reports it: every loop that makes items also makes steps.
            self.steps = usize::MAX - 1;
        }
    }

    pub(super) fn new_list(&mut self, items: Vec<Value<'a>>) -> Value<'a> {
        self.count_items(items.len() + 1);
        self.lists.push(items);
        Value::List(ListId(self.lists.len() - 1))
    }

    pub(super) fn new_dict(&mut self, items: Vec<(Value<'a>, Value<'a>)>) -> Value<'a> {
        self.count_items(items.len() + 1);
        self.dicts.push(items);
        Value::Dict(DictId(self.dicts.len() - 1))
    }

    pub(super) fn list_push(&mut self, list: ListId, value: Value<'a>) {
        self.count_items(1);
        self.lists[list.0].push(value);
    }

    pub(super) fn new_frame(&mut self, parent: Option<FrameId>, module: usize) -> FrameId {
        self.count_items(1);
        self.frames.push(Frame { names: FxHashMap::default(), parent, module });
        FrameId(self.frames.len() - 1)
    }

    pub(super) fn frame_module(&self, frame: FrameId) -> usize {
        self.frames[frame.0].module
    }

    pub(super) fn set(&mut self, name: &str, value: Value<'a>) {
        let frame = &mut self.frames[self.frame.0];
        match frame.names.get_mut(name) {
            Some(slot) => *slot = value,
            None => {
                frame.names.insert(name.to_string(), value);
            }
        }
    }

    pub(super) fn constant(&mut self, c: Const) -> Value<'a> {
        match c {
            Const::Tuple(items) => {
                let items: Vec<Value<'a>> = items.into_iter().map(|c| self.constant(c)).collect();
                Value::tuple(items)
            }
            other => Value::Const(other),
        }
    }

    /// A compile-time constant for a kernel argument.
    pub(super) fn to_const(&self, value: &Value<'a>) -> Option<Const> {
        match value {
            Value::Const(c) => Some(c.clone()),
            Value::Tuple(items) => {
                items.iter().map(|v| self.to_const(v)).collect::<Option<Vec<_>>>().map(Const::Tuple)
            }
            Value::List(id) => self.lists[id.0]
                .iter()
                .map(|v| self.to_const(v))
                .collect::<Option<Vec<_>>>()
                .map(Const::Tuple),
            Value::DType(d) => crate::types::Elem::from_dtype(*d).map(Const::Elem),
            _ => None,
        }
    }

    pub(super) fn flatten_tensors(
        &self,
        at: &impl Ranged,
        value: &Value<'a>,
        out: &mut Vec<Rc<Tensor>>,
    ) -> Result<()> {
        match value {
            Value::Tensor(t) => out.push(Rc::clone(t)),
            Value::Tuple(items) => {
                for item in items.iter() {
                    self.flatten_tensors(at, item, out)?;
                }
            }
            Value::List(id) if out.len() < 1024 => {
                for item in &self.lists[id.0] {
                    if !matches!(item, Value::Tensor(_)) {
                        return Err(
                            self.error(at, format!("the wrapper returns {}", item.describe()))
                        );
                    }
                    self.flatten_tensors(at, item, out)?;
                }
            }
            other => {
                return Err(self
                    .error(at, format!("the wrapper returns {}", other.describe()))
                    .with_hint("it must return a tensor or a tuple of tensors"));
            }
        }
        Ok(())
    }

    pub(super) fn block(&mut self, body: &'a [Stmt]) -> Result<Flow<'a>> {
        for stmt in body {
            self.step(stmt)?;
            self.nesting += 1;
            let flow = self.statement(stmt);
            self.nesting -= 1;
            match flow? {
                Flow::Next => {}
                other => return Ok(other),
            }
        }
        Ok(Flow::Next)
    }

    fn statement(&mut self, stmt: &'a Stmt) -> Result<Flow<'a>> {
        match stmt {
            Stmt::Expr(s) => {
                self.expr(&s.value)?;
            }
            Stmt::Assign(s) => {
                let value = self.expr(&s.value)?;
                for target in &s.targets {
                    self.assign(target, value.clone())?;
                }
            }
            Stmt::AnnAssign(s) => {
                if let Some(value) = &s.value {
                    let value = self.expr(value)?;
                    self.assign(&s.target, value)?;
                }
            }
            Stmt::AugAssign(s) => {
                let old = self.expr(&s.target)?;
                let value = self.expr(&s.value)?;
                if let (Value::List(list), Operator::Add) = (&old, s.op) {
                    for item in self.iterate(&*s.value, &value)? {
                        self.list_push(*list, item);
                    }
                } else {
                    let value = self.binary(s, s.op, &old, &value)?;
                    self.assign(&s.target, value)?;
                }
            }
            Stmt::Return(s) => {
                let value = match &s.value {
                    Some(value) => self.expr(value)?,
                    None => Value::NONE,
                };
                return Ok(Flow::Return(value));
            }
            Stmt::If(s) => {
                let test = self.expr(&s.test)?;
                if self.truthy(&*s.test, &test)? {
                    return self.block(&s.body);
                }
                for clause in &s.elif_else_clauses {
                    let taken = match &clause.test {
                        None => true,
                        Some(test) => {
                            let value = self.expr(test)?;
                            self.truthy(test, &value)?
                        }
                    };
                    if taken {
                        return self.block(&clause.body);
                    }
                }
            }
            Stmt::For(s) => {
                let iter = self.expr(&s.iter)?;
                for item in self.iterate(&*s.iter, &iter)? {
                    self.step(stmt)?;
                    self.assign(&s.target, item)?;
                    match self.block(&s.body)? {
                        Flow::Next | Flow::Continue => {}
                        Flow::Break => return Ok(Flow::Next),
                        Flow::Return(v) => return Ok(Flow::Return(v)),
                    }
                }
                return self.block(&s.orelse);
            }
            Stmt::While(s) => loop {
                self.step(stmt)?;
                let test = self.expr(&s.test)?;
                if !self.truthy(&*s.test, &test)? {
                    return self.block(&s.orelse);
                }
                match self.block(&s.body)? {
                    Flow::Next | Flow::Continue => {}
                    Flow::Break => return Ok(Flow::Next),
                    Flow::Return(v) => return Ok(Flow::Return(v)),
                }
            },
            Stmt::FunctionDef(def) => {
                let function = crate::modules::FunctionRef { module: self.module(), def };
                if function.is_kernel() {
                    return Err(self
                        .outside(&def.name, "kernels must be defined at the top level of a file"));
                }
                let value = Value::Function(function, Some(self.frame));
                self.set(def.name.as_str(), value);
            }
            Stmt::Assert(s) => {
                let test = self.expr(&s.test)?;
                if !self.truthy(&*s.test, &test)? {
                    let message = match &s.msg {
                        Some(m) => {
                            let value = self.expr(m)?;
                            format!("assertion failed: {}", self.text(&value))
                        }
                        None => "assertion failed".into(),
                    };
                    return Err(self.error(s, message));
                }
            }
            Stmt::Raise(s) => {
                let message = match s.exc.as_deref() {
                    Some(Expr::Call(c)) => match c.arguments.args.first() {
                        Some(arg) => {
                            let value = self.expr(arg)?;
                            self.text(&value)
                        }
                        None => String::new(),
                    },
                    _ => String::new(),
                };
                return Err(self.error(s, format!("the wrapper raises: {message}")));
            }
            Stmt::With(s) => {
                for item in &s.items {
                    let text = self.modules.source(self.module()).slice(item.context_expr.range());
                    let known = [
                        "torch.cuda.device",
                        "torch.no_grad",
                        "torch.inference_mode",
                        "torch.cuda.stream",
                    ];
                    if !known.iter().any(|k| text.starts_with(k)) || item.optional_vars.is_some() {
                        return Err(self.outside(item, "this `with` is not allowed in a wrapper"));
                    }
                }
                return self.block(&s.body);
            }
            Stmt::Import(s) => {
                for alias in &s.names {
                    let root = alias.name.as_str().split('.').next().unwrap_or("");
                    let (name, path) = match &alias.asname {
                        Some(asname) => (asname.as_str(), alias.name.as_str()),
                        None => (root, root),
                    };
                    self.allowed_import(s, path)?;
                    self.set(name, Value::Path(path.into()));
                }
            }
            Stmt::ImportFrom(s) => {
                let module = s.module.as_ref().map_or("", |m| m.as_str());
                self.allowed_import(s, module)?;
                for alias in &s.names {
                    let name = alias.asname.as_ref().unwrap_or(&alias.name);
                    let value = external(&format!("{module}.{}", alias.name));
                    self.set(name.as_str(), value);
                }
            }
            Stmt::Pass(_) => {}
            Stmt::Break(_) => return Ok(Flow::Break),
            Stmt::Continue(_) => return Ok(Flow::Continue),
            Stmt::Delete(s) => {
                for target in &s.targets {
                    if let Expr::Name(n) = target {
                        self.frames[self.frame.0].names.remove(n.id.as_str());
                    }
                }
            }
            other => return Err(self.outside(other, "this statement is not allowed in a wrapper")),
        }
        Ok(Flow::Next)
    }

    fn allowed_import(&self, at: &impl Ranged, path: &str) -> Result<()> {
        let root = path.split('.').next().unwrap_or(path);
        if matches!(root, "torch" | "triton" | "math" | "typing") {
            Ok(())
        } else {
            Err(self.outside(at, format!("`{path}` cannot be imported inside a wrapper")))
        }
    }

    pub(super) fn assign(&mut self, target: &'a Expr, value: Value<'a>) -> Result<()> {
        match target {
            Expr::Name(n) => {
                self.set(n.id.as_str(), value);
                Ok(())
            }
            Expr::Tuple(t) => self.unpack(target, &t.elts, &value),
            Expr::List(l) => self.unpack(target, &l.elts, &value),
            Expr::Subscript(s) => {
                let container = self.expr(&s.value)?;
                let key = self.expr(&s.slice)?;
                match container {
                    Value::List(id) => {
                        let index = self.index(&*s.slice, &key, self.lists[id.0].len())?;
                        self.lists[id.0][index] = value;
                        Ok(())
                    }
                    Value::Dict(id) => {
                        self.dict_set(id, key, value);
                        Ok(())
                    }
                    Value::Tensor(_) => Err(self
                        .outside(target, "a wrapper cannot write tensor elements; a kernel can")),
                    other => {
                        Err(self
                            .outside(target, format!("cannot assign into {}", other.describe())))
                    }
                }
            }
            other => Err(self.outside(other, "this assignment is not allowed in a wrapper")),
        }
    }

    pub(super) fn dict_set(&mut self, id: DictId, key: Value<'a>, value: Value<'a>) {
        let found = self.dicts[id.0].iter().position(|(k, _)| self.equal(k, &key));
        match found {
            Some(i) => self.dicts[id.0][i].1 = value,
            None => {
                self.count_items(1);
                self.dicts[id.0].push((key, value));
            }
        }
    }

    fn unpack(&mut self, at: &'a Expr, targets: &'a [Expr], value: &Value<'a>) -> Result<()> {
        let items = self.iterate(at, value)?;
        if let Some(star) = targets.iter().position(Expr::is_starred_expr) {
            let after = targets.len() - star - 1;
            if items.len() < star + after {
                return Err(
                    self.error(at, format!("{} values for {} names", items.len(), targets.len()))
                );
            }
            let end = items.len() - after;
            for (target, item) in targets[..star].iter().zip(&items) {
                self.assign(target, item.clone())?;
            }
            if let Expr::Starred(s) = &targets[star] {
                let middle = self.new_list(items[star..end].to_vec());
                self.assign(&s.value, middle)?;
            }
            for (target, item) in targets[star + 1..].iter().zip(&items[end..]) {
                self.assign(target, item.clone())?;
            }
            return Ok(());
        }
        if items.len() != targets.len() {
            return Err(
                self.error(at, format!("{} values for {} names", items.len(), targets.len()))
            );
        }
        for (target, item) in targets.iter().zip(items) {
            self.assign(target, item)?;
        }
        Ok(())
    }

    /// The items of anything a wrapper may loop over.
    pub(super) fn iterate(
        &mut self,
        at: &impl Ranged,
        value: &Value<'a>,
    ) -> Result<Vec<Value<'a>>> {
        let items = match value {
            Value::Tuple(items) => items.to_vec(),
            Value::List(id) => self.lists[id.0].clone(),
            Value::Dict(id) => self.dicts[id.0].iter().map(|(k, _)| k.clone()).collect(),
            Value::Const(Const::Str(s)) => s.chars().map(Value::str).collect(),
            Value::Tensor(_) => {
                return Err(self.outside(at, "a wrapper cannot loop over a tensor"));
            }
            other => return Err(self.error(at, format!("cannot loop over {}", other.describe()))),
        };
        self.count_items(items.len());
        self.step(at)?;
        Ok(items)
    }

    pub(super) fn truthy(&self, at: &impl Ranged, value: &Value<'a>) -> Result<bool> {
        Ok(match value {
            Value::Const(c) => c.truthy(),
            Value::Tuple(items) => !items.is_empty(),
            Value::List(id) => !self.lists[id.0].is_empty(),
            Value::Dict(id) => !self.dicts[id.0].is_empty(),
            Value::Tensor(_) => {
                return Err(
                    self.outside(at, "a wrapper cannot branch on tensor data: it sees shapes only")
                );
            }
            _ => true,
        })
    }

    pub(super) fn equal(&self, a: &Value<'a>, b: &Value<'a>) -> bool {
        match (a, b) {
            (Value::Const(x), Value::Const(y)) => consts::equal(x, y),
            (Value::DType(x), Value::DType(y)) => x == y,
            (Value::Device(x), Value::Device(y)) => x == y,
            (Value::Device(d), Value::Const(Const::Str(s)))
            | (Value::Const(Const::Str(s)), Value::Device(d)) => Device::from_name(s) == Some(*d),
            (Value::Tuple(x), Value::Tuple(y)) => {
                x.len() == y.len() && x.iter().zip(y.iter()).all(|(x, y)| self.equal(x, y))
            }
            (Value::Tensor(x), Value::Tensor(y)) => Rc::ptr_eq(x, y),
            (Value::Path(x), Value::Path(y)) => x == y,
            (Value::Kernel(x), Value::Kernel(y)) => std::ptr::eq(x.def, y.def),
            (Value::Function(x, _), Value::Function(y, _)) => std::ptr::eq(x.def, y.def),
            _ => false,
        }
    }

    /// A list or tuple index, negative ones from the end.
    pub(super) fn index(&self, at: &impl Ranged, key: &Value<'a>, len: usize) -> Result<usize> {
        let Some(i) = key.as_int() else {
            return Err(self.error(at, format!("an index is an integer, not {}", key.describe())));
        };
        let resolved = if i < 0 { i + len as i64 } else { i };
        usize::try_from(resolved)
            .ok()
            .filter(|&i| i < len)
            .ok_or_else(|| self.error(at, format!("index {i} is out of range for {len} items")))
    }

    /// As Python's `str` shows it.
    pub(super) fn text(&self, value: &Value<'a>) -> String {
        match value {
            Value::Const(c) => c.to_string(),
            Value::DType(d) => d.to_string(),
            Value::Device(d) => d.to_string(),
            Value::Tuple(items) => {
                let items: Vec<String> = items.iter().take(64).map(|v| self.text(v)).collect();
                format!("({}{})", items.join(", "), if items.len() == 1 { "," } else { "" })
            }
            other => other.describe(),
        }
    }

    pub(super) fn expr(&mut self, e: &'a Expr) -> Result<Value<'a>> {
        self.step(e)?;
        self.nesting += 1;
        let value = self.expr_kind(e);
        self.nesting -= 1;
        if let Ok(Value::Tuple(t)) = &value
            && (t.depth > MAX_TUPLE_DEPTH || t.nodes > MAX_TUPLE_NODES)
        {
            return Err(self.error(e, "tuple is nested too deep or too large"));
        }
        value
    }

    fn expr_kind(&mut self, e: &'a Expr) -> Result<Value<'a>> {
        match e {
            Expr::NumberLiteral(n) => match &n.value {
                Number::Int(i) => i
                    .as_i64()
                    .map(Value::int)
                    .ok_or_else(|| self.error(e, "integer does not fit in 64 bits")),
                Number::Float(f) => Ok(Value::Const(Const::Float(*f))),
                Number::Complex { .. } => Err(self.outside(e, "no complex numbers in wrappers")),
            },
            Expr::BooleanLiteral(b) => Ok(Value::bool(b.value)),
            Expr::NoneLiteral(_) => Ok(Value::NONE),
            Expr::EllipsisLiteral(_) => Ok(Value::Ellipsis),
            Expr::StringLiteral(s) => Ok(Value::str(s.value.to_str())),
            Expr::FString(f) => self.fstring(f),
            Expr::Name(n) => self.name(e, n.id.as_str()),
            Expr::Attribute(a) => {
                let value = self.expr(&a.value)?;
                self.attribute(a, &value, a.attr.as_str())
            }
            Expr::Tuple(t) => Ok(Value::tuple(self.sequence_items(&t.elts)?)),
            Expr::List(l) => {
                let items = self.sequence_items(&l.elts)?;
                Ok(self.new_list(items))
            }
            Expr::Set(s) => {
                let items = self.sequence_items(&s.elts)?;
                Ok(self.new_list(items))
            }
            Expr::Dict(d) => {
                let mut items = Vec::new();
                for item in &d.items {
                    match &item.key {
                        Some(key) => items.push((self.expr(key)?, self.expr(&item.value)?)),
                        None => match self.expr(&item.value)? {
                            Value::Dict(id) => items.extend(self.dicts[id.0].clone()),
                            other => {
                                return Err(self.error(
                                    &item.value,
                                    format!("cannot unpack {}", other.describe()),
                                ));
                            }
                        },
                    }
                }
                let dict = self.new_dict(Vec::new());
                if let Value::Dict(id) = dict {
                    for (key, value) in items {
                        self.dict_set(id, key, value);
                    }
                }
                Ok(dict)
            }
            Expr::BinOp(b) => {
                let left = self.expr(&b.left)?;
                let right = self.expr(&b.right)?;
                self.binary(e, b.op, &left, &right)
            }
            Expr::UnaryOp(u) => {
                let value = self.expr(&u.operand)?;
                if u.op == UnaryOp::Not {
                    return Ok(Value::bool(!self.truthy(e, &value)?));
                }
                match &value {
                    Value::Const(c) => {
                        consts::unary(u.op, c).map(Value::Const).map_err(|m| self.error(e, m))
                    }
                    other => Err(self.arithmetic_error(e, other)),
                }
            }
            Expr::Compare(c) => {
                let mut left = self.expr(&c.left)?;
                for (op, right) in c.ops.iter().zip(&c.comparators) {
                    let right = self.expr(right)?;
                    if !self.compare(e, *op, &left, &right)? {
                        return Ok(Value::bool(false));
                    }
                    left = right;
                }
                Ok(Value::bool(true))
            }
            Expr::BoolOp(b) => {
                let mut last = Value::NONE;
                for value in &b.values {
                    last = self.expr(value)?;
                    if self.truthy(value, &last)? != (b.op == BoolOp::And) {
                        break;
                    }
                }
                Ok(last)
            }
            Expr::If(i) => {
                let test = self.expr(&i.test)?;
                if self.truthy(&*i.test, &test)? {
                    self.expr(&i.body)
                } else {
                    self.expr(&i.orelse)
                }
            }
            Expr::Lambda(l) => Ok(Value::Lambda(l, self.frame)),
            Expr::Named(n) => {
                let value = self.expr(&n.value)?;
                self.assign(&n.target, value.clone())?;
                Ok(value)
            }
            Expr::Subscript(s) => {
                let value = self.expr(&s.value)?;
                let key = self.expr(&s.slice)?;
                self.subscript(e, &value, key)
            }
            Expr::Slice(s) => {
                let mut part = |p: &'a Option<Box<Expr>>| match p {
                    Some(p) => self.expr(p),
                    None => Ok(Value::NONE),
                };
                Ok(Value::Slice(Rc::new([part(&s.lower)?, part(&s.upper)?, part(&s.step)?])))
            }
            Expr::Call(c) => self.call(c),
            Expr::ListComp(c) => {
                let mut out = Vec::new();
                self.comprehension(&c.generators, &mut |this| {
                    let value = this.expr(&c.elt)?;
                    out.push(value);
                    Ok(())
                })?;
                Ok(self.new_list(out))
            }
            Expr::SetComp(c) => {
                let mut out = Vec::new();
                self.comprehension(&c.generators, &mut |this| {
                    let value = this.expr(&c.elt)?;
                    out.push(value);
                    Ok(())
                })?;
                Ok(self.new_list(out))
            }
            Expr::Generator(c) => {
                let mut out = Vec::new();
                self.comprehension(&c.generators, &mut |this| {
                    let value = this.expr(&c.elt)?;
                    out.push(value);
                    Ok(())
                })?;
                Ok(Value::tuple(out))
            }
            Expr::DictComp(c) => {
                let dict = self.new_dict(Vec::new());
                let Value::Dict(id) = dict else { return Ok(dict) };
                let Some(key) = &c.key else {
                    return Err(self.outside(e, "no `**` in a dict comprehension"));
                };
                self.comprehension(&c.generators, &mut |this| {
                    let key = this.expr(key)?;
                    let value = this.expr(&c.value)?;
                    this.dict_set(id, key, value);
                    Ok(())
                })?;
                Ok(dict)
            }
            other => Err(self.outside(other, "this expression is not allowed in a wrapper")),
        }
    }

    fn sequence_items(&mut self, items: &'a [Expr]) -> Result<Vec<Value<'a>>> {
        let mut out = Vec::new();
        for item in items {
            match item {
                Expr::Starred(s) => {
                    let value = self.expr(&s.value)?;
                    out.extend(self.iterate(item, &value)?);
                }
                other => out.push(self.expr(other)?),
            }
        }
        Ok(out)
    }

    fn comprehension(
        &mut self,
        generators: &'a [Comprehension],
        emit: &mut dyn FnMut(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let Some((first, rest)) = generators.split_first() else { return emit(self) };
        let iter = self.expr(&first.iter)?;
        for item in self.iterate(&first.iter, &iter)? {
            self.step(&first.target)?;
            self.assign(&first.target, item)?;
            let mut keep = true;
            for condition in &first.ifs {
                let value = self.expr(condition)?;
                keep &= self.truthy(condition, &value)?;
            }
            if keep {
                self.comprehension(rest, emit)?;
            }
        }
        Ok(())
    }

    fn fstring(&mut self, f: &'a passnet_graph::syntax::ast::ExprFString) -> Result<Value<'a>> {
        use passnet_graph::syntax::ast::{FStringPart, InterpolatedStringElement};
        let mut out = String::new();
        for part in f.value.iter() {
            match part {
                FStringPart::Literal(s) => out.push_str(s.as_str()),
                FStringPart::FString(f) => {
                    for element in f.elements.iter() {
                        match element {
                            InterpolatedStringElement::Literal(l) => out.push_str(&l.value),
                            InterpolatedStringElement::Interpolation(i) => {
                                let value = self.expr(&i.expression)?;
                                out.push_str(&self.text(&value));
                            }
                        }
                    }
                }
            }
            if out.len() > 1 << 16 {
                return Err(self.error(f, "string is too long"));
            }
        }
        Ok(Value::str(out))
    }

    fn name(&mut self, at: &'a Expr, name: &str) -> Result<Value<'a>> {
        let mut frame = Some(self.frame);
        while let Some(id) = frame {
            if let Some(value) = self.frames[id.0].names.get(name) {
                return Ok(value.clone());
            }
            frame = self.frames[id.0].parent;
        }
        self.global(at, self.module(), name)
    }

    /// A name at the top level of a module, evaluated once.
    pub(super) fn global(
        &mut self,
        at: &impl Ranged,
        module: usize,
        name: &str,
    ) -> Result<Value<'a>> {
        match self.modules.lookup(module, name) {
            Some(Binding::Function(f)) if f.is_kernel() => Ok(Value::Kernel(f)),
            Some(Binding::Function(f)) => Ok(Value::Function(f, None)),
            Some(Binding::External(path)) => Ok(external(&path)),
            Some(Binding::Module(index)) => Ok(Value::Module(index)),
            Some(Binding::Assigned(owner, value)) => {
                let key = (module, name.to_string());
                if let Some(known) = self.globals.get(&key) {
                    return Ok(known.clone());
                }
                let frame = self.new_frame(None, owner);
                let outer = std::mem::replace(&mut self.frame, frame);
                let result = self.expr(value);
                self.frame = outer;
                let result = result?;
                self.globals.insert(key, result.clone());
                Ok(result)
            }
            None if super::builtins::is_builtin(name) => {
                Ok(Value::Path(format!("builtins.{name}").into()))
            }
            None => Err(self.error(at, format!("`{name}` is not defined"))),
        }
    }

    pub(super) fn arithmetic_error(&self, at: &impl Ranged, value: &Value<'a>) -> Diagnostic {
        match value {
            Value::Tensor(_) => {
                self.outside(at, "a wrapper cannot compute with tensors; a kernel can")
            }
            other => self.error(at, format!("cannot compute with {}", other.describe())),
        }
    }

    pub(super) fn binary(
        &mut self,
        at: &impl Ranged,
        op: Operator,
        a: &Value<'a>,
        b: &Value<'a>,
    ) -> Result<Value<'a>> {
        match (a, b) {
            (Value::Const(x), Value::Const(y)) => {
                consts::binary(op, x, y).map(Value::Const).map_err(|m| self.error(at, m))
            }
            (Value::Tensor(_), _) | (_, Value::Tensor(_)) => {
                Err(self.outside(at, "a wrapper cannot compute with tensors; a kernel can"))
            }
            (Value::Tuple(_), Value::Tuple(_)) | (Value::List(_), Value::List(_))
                if op == Operator::Add =>
            {
                let mut items = self.iterate(at, a)?;
                items.extend(self.iterate(at, b)?);
                Ok(if matches!(a, Value::Tuple(_)) {
                    Value::tuple(items)
                } else {
                    self.new_list(items)
                })
            }
            (Value::Tuple(_) | Value::List(_), Value::Const(Const::Int(n)))
            | (Value::Const(Const::Int(n)), Value::Tuple(_) | Value::List(_))
                if op == Operator::Mult =>
            {
                let sequence = if matches!(a, Value::Const(_)) { b } else { a };
                let items = self.iterate(at, sequence)?;
                let n = usize::try_from(*n).unwrap_or(0);
                if items.len().saturating_mul(n) > 1 << 16 {
                    return Err(self.error(at, "sequence is too long"));
                }
                let repeated: Vec<Value<'a>> =
                    items.iter().cycle().take(items.len() * n).cloned().collect();
                Ok(if matches!(sequence, Value::Tuple(_)) {
                    Value::tuple(repeated)
                } else {
                    self.new_list(repeated)
                })
            }
            _ => {
                let culprit = if matches!(a, Value::Const(_)) { b } else { a };
                Err(self.arithmetic_error(at, culprit))
            }
        }
    }

    fn compare(
        &mut self,
        at: &impl Ranged,
        op: CmpOp,
        a: &Value<'a>,
        b: &Value<'a>,
    ) -> Result<bool> {
        match op {
            CmpOp::Is | CmpOp::IsNot => {
                let same = match (a, b) {
                    (Value::Const(x), Value::Const(y)) => {
                        x.type_name() == y.type_name() && consts::equal(x, y)
                    }
                    (Value::List(x), Value::List(y)) => x == y,
                    _ => self.deep_equal(at, a, b)?,
                };
                Ok(same == (op == CmpOp::Is))
            }
            CmpOp::Eq | CmpOp::NotEq => {
                if matches!(a, Value::Tensor(_)) || matches!(b, Value::Tensor(_)) {
                    return Err(self
                        .outside(at, "a wrapper cannot compare tensor data: it sees shapes only"));
                }
                Ok(self.deep_equal(at, a, b)? == (op == CmpOp::Eq))
            }
            CmpOp::In | CmpOp::NotIn => {
                let found = match (a, b) {
                    (Value::Const(x), Value::Const(y @ Const::Str(_))) => {
                        consts::compare(CmpOp::In, x, y).map_err(|m| self.error(at, m))?
                    }
                    _ => {
                        let items = self.iterate(at, b)?;
                        let mut found = false;
                        for item in &items {
                            found |= self.deep_equal(at, a, item)?;
                        }
                        found
                    }
                };
                Ok(found == (op == CmpOp::In))
            }
            _ => {
                match (a, b) {
                    (Value::Const(x), Value::Const(y)) => {
                        consts::compare(op, x, y).map_err(|m| self.error(at, m))
                    }
                    (Value::Tensor(_), _) | (_, Value::Tensor(_)) => Err(self
                        .outside(at, "a wrapper cannot compare tensor data: it sees shapes only")),
                    _ => Err(self
                        .error(at, format!("cannot order {} and {}", a.describe(), b.describe()))),
                }
            }
        }
    }

    /// Equality that looks into sequences.
    fn deep_equal(&mut self, at: &impl Ranged, a: &Value<'a>, b: &Value<'a>) -> Result<bool> {
        self.step(at)?;
        let sequences = |v: &Value<'a>| matches!(v, Value::Tuple(_) | Value::List(_));
        if !(sequences(a) && sequences(b)) {
            return Ok(self.equal(a, b));
        }
        let (x, y) = (self.iterate(at, a)?, self.iterate(at, b)?);
        if x.len() != y.len() {
            return Ok(false);
        }
        self.nesting += 1;
        let mut same = true;
        for (x, y) in x.iter().zip(&y) {
            same &= self.deep_equal(at, x, y)?;
        }
        self.nesting -= 1;
        Ok(same)
    }

    fn subscript(&mut self, at: &Expr, value: &Value<'a>, key: Value<'a>) -> Result<Value<'a>> {
        match value {
            Value::Kernel(f) => Ok(Value::Launcher(*f, Rc::new(key))),
            Value::Tensor(t) => {
                let t = Rc::clone(t);
                self.tensor_index(at, &t, &key)
            }
            Value::Tuple(_) | Value::List(_) | Value::Const(Const::Str(_)) => {
                let items = self.iterate(at, value)?;
                if let Value::Slice(parts) = &key {
                    let picked = self.slice(at, &items, parts)?;
                    return Ok(match value {
                        Value::List(_) => self.new_list(picked),
                        Value::Tuple(_) => Value::tuple(picked),
                        _ => Value::str(picked.iter().map(|v| self.text(v)).collect::<String>()),
                    });
                }
                let index = self.index(at, &key, items.len())?;
                Ok(items[index].clone())
            }
            Value::Dict(id) => {
                let found = self.dicts[id.0].iter().position(|(k, _)| self.equal(k, &key));
                let found = match found {
                    Some(i) => Some(i),
                    None => {
                        let keys: Vec<Value<'a>> =
                            self.dicts[id.0].iter().map(|(k, _)| k.clone()).collect();
                        let mut hit = None;
                        for (i, k) in keys.iter().enumerate() {
                            if self.deep_equal(at, k, &key)? {
                                hit = Some(i);
                            }
                        }
                        hit
                    }
                };
                match found {
                    Some(i) => Ok(self.dicts[id.0][i].1.clone()),
                    None => Err(self.error(at, format!("no key {} in the dict", self.text(&key)))),
                }
            }
            // `typing.Tuple[int]` and the like.
            Value::Path(p) => Ok(Value::Path(Rc::clone(p))),
            other => Err(self.error(at, format!("{} cannot be indexed", other.describe()))),
        }
    }

    pub(super) fn slice(
        &self,
        at: &impl Ranged,
        items: &[Value<'a>],
        parts: &[Value<'a>; 3],
    ) -> Result<Vec<Value<'a>>> {
        let len = items.len() as i64;
        let step = if parts[2].is_none() { 1 } else { parts[2].as_int().unwrap_or(0) };
        if step == 0 {
            return Err(self.error(at, "slice step cannot be zero"));
        }
        let clamp = |v: &Value<'a>, default: i64, low: i64, high: i64| match v.as_int() {
            Some(i) if !v.is_none() => {
                (if i < 0 { i.saturating_add(len) } else { i }).clamp(low, high)
            }
            _ => default,
        };
        let mut out = Vec::new();
        if step > 0 {
            let (mut i, end) = (clamp(&parts[0], 0, 0, len), clamp(&parts[1], len, 0, len));
            while i < end {
                out.push(items[i as usize].clone());
                i = i.saturating_add(step);
            }
        } else {
            let (mut i, end) =
                (clamp(&parts[0], len - 1, -1, len - 1), clamp(&parts[1], -1, -1, len - 1));
            while i > end {
                out.push(items[i as usize].clone());
                i = i.saturating_add(step);
            }
        }
        Ok(out)
    }

    /// Calls a function of the pass.
    pub(super) fn enter_call(&mut self, at: TextRange) -> Result<()> {
        self.nesting += 4;
        self.step(&at)
    }

    pub(super) fn leave_call(&mut self) {
        self.nesting -= 4;
    }
}

/// A path outside the pass; dtypes and constants are recognised at once.
pub(super) fn external<'a>(path: &str) -> Value<'a> {
    if let Some(elem) =
        path.strip_prefix("triton.language.").and_then(crate::types::Elem::from_language_name)
    {
        return Value::Const(Const::Elem(elem));
    }
    if let Some(dtype) = path.strip_prefix("torch.").and_then(DType::from_name) {
        return Value::DType(dtype);
    }
    match path {
        "math.pi" => Value::Const(Const::Float(std::f64::consts::PI)),
        "math.e" => Value::Const(Const::Float(std::f64::consts::E)),
        "math.inf" | "torch.inf" => Value::Const(Const::Float(f64::INFINITY)),
        "math.nan" | "torch.nan" => Value::Const(Const::Float(f64::NAN)),
        _ => Value::Path(path.into()),
    }
}
