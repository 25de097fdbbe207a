//! Statements: assignments, loops, branches, returns.

use super::branches::Taken;
use super::value::Value;
use super::{Compiler, Result};
use crate::consts::Const;
use crate::ir::{Op, ValueId};
use crate::types::Elem;
use passnet_graph::Diagnostic;
use passnet_graph::syntax::ast::{Expr, Stmt};
use std::collections::BTreeSet;
use std::rc::Rc;

/// How a sequence of statements ended.
pub(super) enum Flow<'a> {
    Next,
    Returned(Value<'a>),
}

/// Statements still to run, the outer ones last: `if c: return` moves the rest into the other branch.
pub(super) type Rest<'a> = Vec<&'a [Stmt]>;

impl<'a> Compiler<'a> {
    pub(super) fn function_body(&mut self, body: &'a [Stmt]) -> Result<Value<'a>> {
        match self.statements(vec![body])? {
            Flow::Returned(value) => Ok(value),
            Flow::Next => Ok(Value::NONE),
        }
    }

    pub(super) fn statements(&mut self, rest: Rest<'a>) -> Result<Flow<'a>> {
        self.nesting += 1;
        let flow = self.run_statements(rest);
        self.nesting -= 1;
        flow
    }

    pub(super) fn run_statements(&mut self, mut rest: Rest<'a>) -> Result<Flow<'a>> {
        while let Some(block) = rest.pop() {
            let Some((stmt, later)) = block.split_first() else { continue };
            rest.push(later);
            self.step(stmt)?;
            if let Stmt::If(branch) = stmt {
                let test = self.expr(&branch.test)?;
                match self.static_branch(branch, test)? {
                    Taken::Body(body) => rest.push(body),
                    Taken::Open { test, value, body, clauses }
                        if returns(body) || clauses.iter().any(|c| returns(&c.body)) =>
                    {
                        return self.branch_with_return(test, &value, body, clauses, &rest);
                    }
                    Taken::Open { test, value, body, clauses } => {
                        self.dynamic_clauses(test, &value, body, clauses)?;
                    }
                }
                continue;
            }
            if let Flow::Returned(value) = self.statement(stmt)? {
                return Ok(Flow::Returned(value));
            }
        }
        Ok(Flow::Next)
    }

    pub(super) fn statement(&mut self, stmt: &'a Stmt) -> Result<Flow<'a>> {
        self.locate(stmt);
        match stmt {
            Stmt::Expr(s) => {
                if !s.value.is_string_literal_expr() {
                    self.expr(&s.value)?;
                }
            }
            Stmt::Assign(s) => {
                let value = self.expr(&s.value)?;
                for target in &s.targets {
                    self.assign(target, value.clone())?;
                }
            }
            Stmt::AnnAssign(s) => {
                if let Some(value) = &s.value {
                    // Triton lets `name: tl.constexpr` be a value of run time, too.
                    let value = self.expr(value)?;
                    self.assign(&s.target, value)?;
                }
            }
            Stmt::AugAssign(s) => {
                let current = self.expr(&s.target)?;
                let value = self.expr(&s.value)?;
                let result = self.binary_operator(s, s.op, &current, &value)?;
                self.assign(&s.target, result)?;
            }
            Stmt::For(s) if self.host => return self.host_for(s),
            Stmt::While(s) if self.host => return self.host_while(s),
            Stmt::For(s) => self.for_loop(s)?,
            Stmt::While(s) => self.while_loop(s)?,
            Stmt::Return(s) => {
                let value = match &s.value {
                    Some(value) => self.expr(value)?,
                    None => Value::NONE,
                };
                return Ok(Flow::Returned(value));
            }
            Stmt::Pass(_) => {}
            Stmt::Assert(s) => {
                let test = self.expr(&s.test)?;
                if let Some(c) = test.to_const()
                    && !c.truthy()
                {
                    // Triton asserts when a program runs.
                    let never = self.b.int(0, Elem::I1);
                    self.b.emit_effect(Op::Assert("assertion is false".into()), &[never]);
                }
            }
            Stmt::Break(_) | Stmt::Continue(_) => {
                return Err(self
                    .error(stmt, "Triton has no `break` and no `continue`")
                    .with_hint("use a mask, an `if` around the body, or a `while` condition"));
            }
            other => return Err(self.foreign_statement(other)),
        }
        Ok(Flow::Next)
    }

    /// What a statement that no kernel has is called, and what to write instead.
    fn foreign_statement(&self, stmt: &Stmt) -> Diagnostic {
        let (what, instead) = match stmt {
            Stmt::FunctionDef(_) => (
                "a kernel cannot define a function",
                "write it at the top level of the file, with `@triton.jit`",
            ),
            Stmt::ClassDef(_) => {
                ("a kernel cannot define a class", "pass the values as arguments, or as a tuple")
            }
            Stmt::Import(_) | Stmt::ImportFrom(_) => {
                ("a kernel cannot import", "import at the top level of the file")
            }
            Stmt::Raise(_) | Stmt::Try(_) => {
                ("a kernel cannot raise or catch", "use `tl.static_assert` or `tl.device_assert`")
            }
            Stmt::With(_) => ("a kernel has no `with`", "write its body without it"),
            Stmt::Match(_) => ("a kernel has no `match`", "write it as `if` and `elif`"),
            Stmt::Delete(_) | Stmt::Global(_) | Stmt::Nonlocal(_) => {
                ("a kernel has local names only", "leave this statement out")
            }
            _ => (
                "this statement is not part of the Triton language",
                "kernels may use assignments, `if`, `for`, `while`, `return` and calls",
            ),
        };
        self.error(stmt, what).with_hint(instead)
    }

    pub(super) fn assign(&mut self, target: &'a Expr, value: Value<'a>) -> Result<()> {
        match target {
            Expr::Name(n) => {
                self.scope.set(n.id.as_str(), value);
                Ok(())
            }
            Expr::Tuple(t) => self.unpack(target, &t.elts, value),
            Expr::List(l) => self.unpack(target, &l.elts, value),
            other => Err(self.error(other, "kernels assign to names only")),
        }
    }

    pub(super) fn unpack(
        &mut self,
        at: &'a Expr,
        targets: &'a [Expr],
        value: Value<'a>,
    ) -> Result<()> {
        let Value::Tuple(items) = value else {
            return Err(self.error(at, format!("cannot unpack {}", value.describe())));
        };
        let starred = targets.iter().position(Expr::is_starred_expr);
        if let Some(place) = starred
            && items.len() + 1 >= targets.len()
        {
            let after = targets.len() - place - 1;
            let mut items = items;
            let tail = items.split_off(items.len() - after);
            let middle = items.split_off(place);
            items.push(Value::Tuple(middle));
            items.extend(tail);
            for (target, item) in targets.iter().zip(items) {
                let target = match target {
                    Expr::Starred(starred) => &starred.value,
                    other => other,
                };
                self.assign(target, item)?;
            }
            return Ok(());
        }
        if items.len() != targets.len() {
            let message = format!("{} values for {} names", items.len(), targets.len());
            return Err(self.error(at, message));
        }
        for (target, item) in targets.iter().zip(items) {
            self.assign(target, item)?;
        }
        Ok(())
    }
}

/// The same structure with other run-time values inside.
pub(super) fn rebuild<'a>(value: &Value<'a>, next: &mut dyn Iterator<Item = ValueId>) -> Value<'a> {
    match value {
        Value::Tuple(items) => Value::Tuple(items.iter().map(|i| rebuild(i, next)).collect()),
        Value::BlockPtr(p) => {
            let mut copy = (**p).clone();
            let slots = std::iter::once(&mut copy.base)
                .chain(&mut copy.shape)
                .chain(&mut copy.strides)
                .chain(&mut copy.offsets);
            for slot in slots {
                if let Some(v) = next.next() {
                    *slot = v;
                }
            }
            Value::BlockPtr(Rc::new(copy))
        }
        Value::Const(Const::None) => Value::NONE,
        other => next.next().map_or_else(|| other.clone(), Value::Tensor),
    }
}

pub(super) fn returns(body: &[Stmt]) -> bool {
    body.iter().any(|s| match s {
        Stmt::Return(_) => true,
        Stmt::If(i) => returns(&i.body) || i.elif_else_clauses.iter().any(|c| returns(&c.body)),
        _ => false,
    })
}

pub(super) fn assigned_names<'a>(body: &'a [Stmt], names: &mut BTreeSet<&'a str>) {
    fn target<'a>(e: &'a Expr, names: &mut BTreeSet<&'a str>) {
        match e {
            Expr::Name(n) => {
                names.insert(n.id.as_str());
            }
            Expr::Tuple(t) => t.elts.iter().for_each(|e| target(e, names)),
            Expr::List(l) => l.elts.iter().for_each(|e| target(e, names)),
            _ => {}
        }
    }
    for stmt in body {
        match stmt {
            Stmt::Assign(s) => s.targets.iter().for_each(|t| target(t, names)),
            Stmt::AugAssign(s) => target(&s.target, names),
            Stmt::AnnAssign(s) => target(&s.target, names),
            Stmt::For(s) => {
                target(&s.target, names);
                assigned_names(&s.body, names);
            }
            Stmt::While(s) => assigned_names(&s.body, names),
            Stmt::If(s) => {
                assigned_names(&s.body, names);
                s.elif_else_clauses.iter().for_each(|c| assigned_names(&c.body, names));
            }
            _ => {}
        }
    }
}
