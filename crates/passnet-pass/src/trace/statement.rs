//! Statements.

use super::interpreter::{Frame, Interpreter};
use super::value::{Callable, Code, MAX_ITEMS, Value};
use super::{Dialect, concrete};
use crate::load::Binding;
use passnet_graph::graph::{CalleeKind, Target};
use passnet_graph::read::python;
use passnet_graph::syntax::{Ranged, ast, sequence};
use passnet_graph::{Arg, Diagnostic};
use std::rc::Rc;

/// What follows a statement.
enum Flow<'a> {
    Next,
    Break,
    Continue,
    Return(Value<'a>),
}

impl<'a> Interpreter<'a> {
    /// Runs the body of a function.
    pub(super) fn body(
        &mut self,
        body: &'a [ast::Stmt],
        frame: &mut Frame<'a>,
    ) -> Result<Value<'a>, Diagnostic> {
        match self.block(body, frame)? {
            Flow::Return(value) => Ok(value),
            _ => Ok(Value::none()),
        }
    }

    fn block(
        &mut self,
        body: &'a [ast::Stmt],
        frame: &mut Frame<'a>,
    ) -> Result<Flow<'a>, Diagnostic> {
        for stmt in body {
            match self.statement(stmt, frame)? {
                Flow::Next => {}
                other => return Ok(other),
            }
        }
        Ok(Flow::Next)
    }

    fn statement(
        &mut self,
        stmt: &'a ast::Stmt,
        frame: &mut Frame<'a>,
    ) -> Result<Flow<'a>, Diagnostic> {
        self.step(frame.module, stmt.range())?;
        match stmt {
            ast::Stmt::Assign(assign) => {
                let value = self.expression(&assign.value, frame)?;
                for target in &assign.targets {
                    self.assign(target, value.clone(), frame)?;
                }
            }
            ast::Stmt::AnnAssign(assign) => {
                if let Some(value) = &assign.value {
                    let value = self.expression(value, frame)?;
                    self.assign(&assign.target, value, frame)?;
                }
            }
            ast::Stmt::AugAssign(assign) => self.augmented(assign, frame)?,
            ast::Stmt::Expr(expr) => {
                self.expression(&expr.value, frame)?;
            }
            ast::Stmt::Return(ret) => {
                return Ok(Flow::Return(match &ret.value {
                    Some(value) => self.expression(value, frame)?,
                    None => Value::none(),
                }));
            }
            ast::Stmt::If(block) => return self.branch(block, frame),
            ast::Stmt::For(block) => return self.for_loop(block, frame),
            ast::Stmt::While(block) => return self.while_loop(block, frame),
            ast::Stmt::Break(_) => return Ok(Flow::Break),
            ast::Stmt::Continue(_) => return Ok(Flow::Continue),
            ast::Stmt::Pass(_) => {}
            ast::Stmt::Assert(assert) => {
                let condition = self.expression(&assert.test, frame)?;
                if !self.truth(&condition, &assert.test, frame)? {
                    return Err(self.error(frame.module, assert.range(), "this assertion fails"));
                }
            }
            ast::Stmt::Delete(delete) => {
                for target in &delete.targets {
                    match target {
                        ast::Expr::Name(name) => frame.locals.remove(name.id.as_str()),
                        other => {
                            return Err(self.error(
                                frame.module,
                                other.range(),
                                "only names can be deleted here",
                            ));
                        }
                    };
                }
            }
            ast::Stmt::FunctionDef(def) => {
                let callable = Callable {
                    module: frame.module,
                    code: Code::Def(def),
                    captured: Some(self.capture(frame)),
                };
                frame.locals.insert(def.name.as_str(), Value::Function(callable));
            }
            ast::Stmt::Import(_) | ast::Stmt::ImportFrom(_) => {
                for (name, binding) in crate::load::imported_names(self.program, frame.module, stmt)
                {
                    let value = match binding {
                        Binding::Outside(path) => Value::Path(path),
                        Binding::Module(id) => Value::Module(id),
                        Binding::Member(home, member) => {
                            self.global(home, member, frame.module, stmt.range())?
                        }
                        _ => continue,
                    };
                    frame.locals.insert(name, value);
                }
            }
            other => {
                let (what, hint) = unsupported(other);
                return Err(self.error(frame.module, other.range(), what).with_hint(hint));
            }
        }
        Ok(Flow::Next)
    }

    /// The variables a nested function sees: those of the function around it, and what that one captured.
    pub(super) fn capture(&self, frame: &Frame<'a>) -> Rc<super::value::Locals<'a>> {
        let mut captured = frame.captured.as_deref().cloned().unwrap_or_default();
        captured.extend(frame.locals.clone());
        Rc::new(captured)
    }

    pub(super) fn assign(
        &mut self,
        target: &'a ast::Expr,
        value: Value<'a>,
        frame: &mut Frame<'a>,
    ) -> Result<(), Diagnostic> {
        match target {
            ast::Expr::Name(name) => {
                frame.locals.insert(name.id.as_str(), value);
                Ok(())
            }
            ast::Expr::Tuple(ast::ExprTuple { elts, .. })
            | ast::Expr::List(ast::ExprList { elts, .. }) => {
                let items = self.unpack(value, elts.len(), target, frame)?;
                elts.iter()
                    .zip(items)
                    .try_for_each(|(target, item)| self.assign(target, item, frame))
            }
            ast::Expr::Subscript(subscript) => self.subscript_write(subscript, value, frame),
            other => Err(self.error(
                frame.module,
                other.range(),
                "this cannot be assigned while tracing",
            )),
        }
    }

    fn unpack(
        &mut self,
        value: Value<'a>,
        count: usize,
        target: &'a ast::Expr,
        frame: &Frame<'a>,
    ) -> Result<Vec<Value<'a>>, Diagnostic> {
        match value {
            Value::Sequence { items, .. } if items.len() == count => Ok(items),
            Value::Sequence { items, .. } => Err(self.error(
                frame.module,
                target.range(),
                format!("{} values for {count} names", items.len()),
            )),
            Value::Arg(Arg::Node(id)) => (0..count)
                .map(|index| {
                    let args = vec![Arg::Node(id), Arg::Int(index as i64)];
                    let target_ = Target::resolve(CalleeKind::Operator, "getitem");
                    self.push(frame.module, target.range(), target_, args, Vec::new())
                })
                .collect(),
            other => Err(self.error(
                frame.module,
                target.range(),
                format!("{} cannot be unpacked", other.describe()),
            )),
        }
    }

    fn subscript_write(
        &mut self,
        subscript: &'a ast::ExprSubscript,
        value: Value<'a>,
        frame: &mut Frame<'a>,
    ) -> Result<(), Diagnostic> {
        let module = frame.module;
        let range = subscript.range();
        let receiver = self.expression(&subscript.value, frame)?;
        let index = self.expression(&subscript.slice, frame)?;
        if let Some(id) = receiver.as_node() {
            if self.dialect == Dialect::Fx {
                return Err(self.error(
                    module,
                    range,
                    "torch.fx cannot trace a subscript assignment",
                ));
            }
            let index = self.as_arg(&index, &subscript.slice, frame)?;
            let value = value.to_arg().map_err(|what| {
                self.error(module, range, format!("{what} cannot be written into a tensor"))
            })?;
            let target = Target::resolve(CalleeKind::Operator, "setitem");
            self.push(module, range, target, vec![Arg::Node(id), index, value], Vec::new())?;
            return Ok(());
        }
        let ast::Expr::Name(name) = &*subscript.value else {
            return Err(self.error(module, range, "only a named list or dict can be changed here"));
        };
        let updated = match (frame.locals.get_mut(name.id.as_str()), index) {
            (Some(Value::Sequence { items, is_list: true }), Value::Arg(Arg::Int(index))) => {
                sequence::position(index, items.len()).map(|index| items[index] = value).is_some()
            }
            (Some(Value::Dict(items)), key) => {
                items.retain(|(known, _)| !concrete::equal(known, &key));
                items.push((key, value));
                true
            }
            _ => false,
        };
        if updated {
            Ok(())
        } else {
            Err(self.error(module, range, "this cannot be assigned while tracing"))
        }
    }

    fn augmented(
        &mut self,
        assign: &'a ast::StmtAugAssign,
        frame: &mut Frame<'a>,
    ) -> Result<(), Diagnostic> {
        let (module, range) = (frame.module, assign.range());
        let old = self.expression(&assign.target, frame)?;
        let value = self.expression(&assign.value, frame)?;
        let in_place =
            python::augmented_operator(assign.op).filter(|_| self.dialect == Dialect::Plain);
        let new = match (old.as_node(), in_place) {
            (Some(id), Some(path)) => {
                let value = self.as_arg(&value, &assign.value, frame)?;
                let target = Target::resolve(CalleeKind::Operator, path);
                self.push(module, range, target, vec![Arg::Node(id), value], Vec::new())?
            }
            _ => self.binary(assign.op, old, value, range, frame)?,
        };
        self.assign(&assign.target, new, frame)
    }

    fn branch(
        &mut self,
        block: &'a ast::StmtIf,
        frame: &mut Frame<'a>,
    ) -> Result<Flow<'a>, Diagnostic> {
        let condition = self.expression(&block.test, frame)?;
        if self.truth(&condition, &block.test, frame)? {
            return self.block(&block.body, frame);
        }
        for clause in &block.elif_else_clauses {
            let taken = match &clause.test {
                None => true,
                Some(test) => {
                    let condition = self.expression(test, frame)?;
                    self.truth(&condition, test, frame)?
                }
            };
            if taken {
                return self.block(&clause.body, frame);
            }
        }
        Ok(Flow::Next)
    }

    fn for_loop(
        &mut self,
        block: &'a ast::StmtFor,
        frame: &mut Frame<'a>,
    ) -> Result<Flow<'a>, Diagnostic> {
        let iterable = self.expression(&block.iter, frame)?;
        for item in self.items(iterable, &block.iter, frame)? {
            self.step(frame.module, block.range())?;
            self.assign(&block.target, item, frame)?;
            match self.block(&block.body, frame)? {
                Flow::Break => return Ok(Flow::Next),
                Flow::Return(value) => return Ok(Flow::Return(value)),
                Flow::Next | Flow::Continue => {}
            }
        }
        self.block(&block.orelse, frame)
    }

    fn while_loop(
        &mut self,
        block: &'a ast::StmtWhile,
        frame: &mut Frame<'a>,
    ) -> Result<Flow<'a>, Diagnostic> {
        loop {
            self.step(frame.module, block.range())?;
            let condition = self.expression(&block.test, frame)?;
            if !self.truth(&condition, &block.test, frame)? {
                return self.block(&block.orelse, frame);
            }
            match self.block(&block.body, frame)? {
                Flow::Break => return Ok(Flow::Next),
                Flow::Return(value) => return Ok(Flow::Return(value)),
                Flow::Next | Flow::Continue => {}
            }
        }
    }

    /// The elements of something that is iterated over.
    pub(super) fn items(
        &mut self,
        value: Value<'a>,
        expr: &'a ast::Expr,
        frame: &Frame<'a>,
    ) -> Result<Vec<Value<'a>>, Diagnostic> {
        let items = match value {
            Value::Sequence { items, .. } => items,
            Value::Dict(items) => items.into_iter().map(|(key, _)| key).collect(),
            Value::Arg(Arg::Node(_)) => {
                return Err(self
                    .error(
                        frame.module,
                        expr.range(),
                        "a loop over a tensor has no fixed number of steps",
                    )
                    .with_hint("loop over `range` of a number written in the pass"));
            }
            other => {
                return Err(self.error(
                    frame.module,
                    expr.range(),
                    format!("{} cannot be iterated over", other.describe()),
                ));
            }
        };
        if items.len() > MAX_ITEMS {
            return Err(self.error(
                frame.module,
                expr.range(),
                format!("more than {MAX_ITEMS} elements"),
            ));
        }
        Ok(items)
    }

    pub(super) fn truth(
        &mut self,
        value: &Value<'a>,
        expr: &'a ast::Expr,
        frame: &Frame<'a>,
    ) -> Result<bool, Diagnostic> {
        concrete::truth(value).ok_or_else(|| {
            self.error(
                frame.module,
                expr.range(),
                "this condition depends on a tensor, which has no value while tracing",
            )
            .with_hint("write one pass for each case, without the condition")
        })
    }
}

fn unsupported(stmt: &ast::Stmt) -> (&'static str, &'static str) {
    match stmt {
        ast::Stmt::Try(_) => ("`try` cannot be traced", "a pattern only computes; it cannot fail"),
        ast::Stmt::With(_) => ("`with` cannot be traced", "write the operations without it"),
        ast::Stmt::ClassDef(_) => ("a class cannot be traced", "use functions"),
        ast::Stmt::Raise(_) => ("this raises an exception", "a pattern only computes"),
        ast::Stmt::Global(_) | ast::Stmt::Nonlocal(_) => {
            ("a traced function cannot change variables outside it", "return the value instead")
        }
        _ => ("this statement cannot be traced", "use assignments, calls and `return`"),
    }
}
