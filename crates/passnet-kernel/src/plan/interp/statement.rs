//! Statements: assignments, loops, branches, returns.

use super::{Flow, Interp, Result, external};
use crate::consts::Const;
use crate::plan::value::{DictId, Holder, Value};
use passnet_graph::syntax::Ranged;
use passnet_graph::syntax::ast::{
    Expr, Operator, Stmt, StmtAssert, StmtFor, StmtIf, StmtImport, StmtImportFrom, StmtRaise,
    StmtWhile, StmtWith,
};

impl<'a> Interp<'a> {
    pub(in crate::plan) fn block(&mut self, body: &'a [Stmt]) -> Result<Flow<'a>> {
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

    pub(super) fn statement(&mut self, stmt: &'a Stmt) -> Result<Flow<'a>> {
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
                    self.note_store(Holder::list(*list), s);
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
            Stmt::If(s) => return self.branch(s),
            Stmt::For(s) => return self.for_loop(stmt, s),
            Stmt::While(s) => return self.while_loop(stmt, s),
            Stmt::FunctionDef(def) => {
                let function = crate::modules::FunctionRef { module: self.module(), def };
                if function.is_kernel() {
                    return Err(self
                        .outside(&def.name, "kernels must be defined at the top level of a file"));
                }
                let value = Value::Function(function, Some(self.frame));
                self.set(def.name.as_str(), value);
            }
            Stmt::Assert(s) => self.assertion(s)?,
            Stmt::Raise(s) => return self.raise(s),
            Stmt::With(s) => return self.with_block(s),
            Stmt::Import(s) => self.import(s)?,
            Stmt::ImportFrom(s) => self.import_from(s)?,
            Stmt::Global(s) => {
                let names = s.names.iter().map(|name| name.as_str());
                self.frames[self.frame.0].globals.extend(names);
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
            other => {
                let what = statement_name(other);
                return Err(self.outside(other, format!("{what} is not allowed in a wrapper")));
            }
        }
        Ok(Flow::Next)
    }

    fn branch(&mut self, s: &'a StmtIf) -> Result<Flow<'a>> {
        let test = self.expr(&s.test)?;
        if self.truthy(&*s.test, &test)? {
            return self.block(&s.body);
        }
        for clause in &s.elif_else_clauses {
            let is_taken = match &clause.test {
                None => true,
                Some(test) => {
                    let value = self.expr(test)?;
                    self.truthy(test, &value)?
                }
            };
            if is_taken {
                return self.block(&clause.body);
            }
        }
        Ok(Flow::Next)
    }

    fn for_loop(&mut self, stmt: &'a Stmt, s: &'a StmtFor) -> Result<Flow<'a>> {
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
        self.block(&s.orelse)
    }

    fn while_loop(&mut self, stmt: &'a Stmt, s: &'a StmtWhile) -> Result<Flow<'a>> {
        loop {
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
        }
    }

    fn assertion(&mut self, s: &'a StmtAssert) -> Result<()> {
        let test = self.expr(&s.test)?;
        if self.truthy(&*s.test, &test)? {
            return Ok(());
        }
        let message = match &s.msg {
            Some(m) => {
                let value = self.expr(m)?;
                format!("assertion failed: {}", self.text(&value))
            }
            None => "assertion failed".into(),
        };
        Err(self.error(s, message))
    }

    fn with_block(&mut self, s: &'a StmtWith) -> Result<Flow<'a>> {
        const KNOWN: [&str; 4] =
            ["torch.cuda.device", "torch.no_grad", "torch.inference_mode", "torch.cuda.stream"];
        for item in &s.items {
            let text = self.modules.source(self.module()).slice(item.context_expr.range());
            if !KNOWN.iter().any(|k| text.starts_with(k)) || item.optional_vars.is_some() {
                return Err(self.outside(item, "this `with` is not allowed in a wrapper"));
            }
        }
        self.block(&s.body)
    }

    fn import(&mut self, s: &'a StmtImport) -> Result<()> {
        for alias in &s.names {
            let root = alias.name.as_str().split('.').next().unwrap_or("");
            let (name, path) = match &alias.asname {
                Some(asname) => (asname.as_str(), alias.name.as_str()),
                None => (root, root),
            };
            self.allowed_import(s, path)?;
            self.set(name, Value::Path(path.into()));
        }
        Ok(())
    }

    fn import_from(&mut self, s: &'a StmtImportFrom) -> Result<()> {
        let module = s.module.as_ref().map_or("", |m| m.as_str());
        self.allowed_import(s, module)?;
        for alias in &s.names {
            let name = alias.asname.as_ref().unwrap_or(&alias.name);
            let value = external(&format!("{module}.{}", alias.name));
            self.set(name.as_str(), value);
        }
        Ok(())
    }

    fn raise(&mut self, s: &'a StmtRaise) -> Result<Flow<'a>> {
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
        Err(self.error(s, format!("the wrapper raises: {message}")))
    }

    pub(super) fn allowed_import(&self, at: &impl Ranged, path: &str) -> Result<()> {
        let root = path.split('.').next().unwrap_or(path);
        if matches!(root, "torch" | "triton" | "math" | "typing") {
            Ok(())
        } else {
            Err(self.outside(at, format!("`{path}` cannot be imported inside a wrapper")))
        }
    }

    pub(in crate::plan) fn assign(&mut self, target: &'a Expr, value: Value<'a>) -> Result<()> {
        match target {
            Expr::Name(n) => {
                let name = n.id.as_str();
                if self.is_global(name) {
                    self.note_store(Holder::Global(self.module(), name.to_string()), n);
                }
                self.set(name, value);
                Ok(())
            }
            Expr::Attribute(a) => {
                let owner = self.expr(&a.value)?;
                if let Value::Descriptor(descriptor) = &owner {
                    return self.set_descriptor_block(target, descriptor, a.attr.as_str(), &value);
                }
                self.set_attribute(target, &owner, a.attr.as_str(), value)
            }
            Expr::Tuple(t) => self.unpack(target, &t.elts, &value),
            Expr::List(l) => self.unpack(target, &l.elts, &value),
            Expr::Subscript(s) => {
                let container = self.expr(&s.value)?;
                let key = self.expr(&s.slice)?;
                match container {
                    Value::List(id) => {
                        let index = self.index(&*s.slice, &key, self.lists[id.0].len())?;
                        self.note_store(Holder::list(id), target);
                        self.lists[id.0][index] = value;
                        Ok(())
                    }
                    Value::Dict(id) => {
                        self.note_store(Holder::dict(id), target);
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

    pub(in crate::plan) fn dict_set(&mut self, id: DictId, key: Value<'a>, value: Value<'a>) {
        let found = self.dicts[id.0].iter().position(|(k, _)| self.equal(k, &key));
        match found {
            Some(i) => self.dicts[id.0][i].1 = value,
            None => {
                self.count_items(1);
                self.dicts[id.0].push((key, value));
            }
        }
    }

    pub(super) fn unpack(
        &mut self,
        at: &'a Expr,
        targets: &'a [Expr],
        value: &Value<'a>,
    ) -> Result<()> {
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
    pub(in crate::plan) fn iterate(
        &mut self,
        at: &impl Ranged,
        value: &Value<'a>,
    ) -> Result<Vec<Value<'a>>> {
        let items = match value {
            Value::Tuple(items) => items.to_vec(),
            Value::List(id) => self.lists[id.0].clone(),
            Value::Dict(id) => self.dicts[id.0].iter().map(|(k, _)| k.clone()).collect(),
            Value::Const(Const::Str(s)) => s.chars().map(Value::str).collect(),
            Value::Class(id) if self.is_enum(*id) => self.class_members(*id),
            Value::Tensor(_) => {
                return Err(self.outside(at, "a wrapper cannot loop over a tensor"));
            }
            Value::Object(id) => match self.tuple_items(*id) {
                Some(items) => items,
                None => return Err(self.error(at, "cannot loop over an object")),
            },
            other => return Err(self.error(at, format!("cannot loop over {}", other.describe()))),
        };
        self.count_items(items.len());
        self.step(at)?;
        Ok(items)
    }
}

/// What a statement is called in Python.
fn statement_name(stmt: &Stmt) -> &'static str {
    match stmt {
        Stmt::Try(_) => "`try`",
        Stmt::ClassDef(_) => "a class that is defined inside a function",
        Stmt::Nonlocal(_) => "`nonlocal`",
        Stmt::Match(_) => "`match`",
        Stmt::TypeAlias(_) => "`type`",
        _ => "this statement",
    }
}
