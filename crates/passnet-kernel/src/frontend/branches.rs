//! Branches: decided while compiling where the test is known, else both sides run and their values are merged.

use super::control::{Flow, Rest, rebuild};
use super::value::Value;
use super::{Compiler, Result};
use crate::consts::Const;
use crate::ir::{Block, Inst, Op, ValueId};
use crate::types::Elem;
use passnet_graph::syntax::Ranged;
use passnet_graph::syntax::ast::{ElifElseClause, Expr, Stmt, StmtIf};
use std::collections::BTreeSet;

/// What is left of an `if` when the conditions known while compiling have been looked at.
pub(super) enum Taken<'a> {
    Body(&'a [Stmt]),
    /// A condition that is only known at run time, what it guards, and the clauses after it.
    Open {
        test: &'a Expr,
        value: Value<'a>,
        body: &'a [Stmt],
        clauses: &'a [ElifElseClause],
    },
}

impl<'a> Compiler<'a> {
    /// The part of a branch that runs, as far as its conditions are known.
    pub(super) fn static_branch(
        &mut self,
        branch: &'a StmtIf,
        test: Value<'a>,
    ) -> Result<Taken<'a>> {
        let clauses = &branch.elif_else_clauses[..];
        match self.known_truth(&test) {
            Some(true) => Ok(Taken::Body(&branch.body)),
            Some(false) => self.static_clauses(clauses),
            None => {
                Ok(Taken::Open { test: &branch.test, value: test, body: &branch.body, clauses })
            }
        }
    }

    /// The same for the clauses after a condition that is false.
    fn static_clauses(&mut self, clauses: &'a [ElifElseClause]) -> Result<Taken<'a>> {
        for (index, clause) in clauses.iter().enumerate() {
            let Some(test) = &clause.test else { return Ok(Taken::Body(&clause.body)) };
            let value = self.expr(test)?;
            match self.known_truth(&value) {
                Some(true) => return Ok(Taken::Body(&clause.body)),
                Some(false) => {}
                None => {
                    let clauses = &clauses[index + 1..];
                    return Ok(Taken::Open { test, value, body: &clause.body, clauses });
                }
            }
        }
        Ok(Taken::Body(&[]))
    }

    /// Whether a value is a pointer, which is never null here.
    pub(super) fn is_address(&self, value: ValueId) -> bool {
        let ty = self.b.ty(value);
        ty.is_ptr() && ty.is_scalar()
    }

    pub(super) fn known_truth(&self, value: &Value<'a>) -> Option<bool> {
        match value {
            Value::Tensor(v) => self.is_address(*v).then_some(true),
            Value::BlockPtr(_) => None,
            Value::Tuple(items) => Some(!items.is_empty()),
            Value::Const(c) => Some(c.truthy()),
            _ => Some(true),
        }
    }

    pub(super) fn condition(&mut self, at: &impl Ranged, test: &Value<'a>) -> Result<ValueId> {
        let test = self.tensor(at, test)?;
        if !self.ty(test).is_scalar() || self.ty(test).is_ptr() {
            let ty = self.ty(test);
            return Err(self
                .error(at, format!("a branch needs a scalar condition, not {ty}"))
                .with_hint("use `tl.where` for blocks"));
        }
        Ok(self.cast(test, Elem::I1))
    }

    /// Runs the statements after a run-time `if` inside whichever branch falls through.
    pub(super) fn branch_with_return(
        &mut self,
        test: &'a Expr,
        value: &Value<'a>,
        body: &'a [Stmt],
        clauses: &'a [ElifElseClause],
        rest: &Rest<'a>,
    ) -> Result<Flow<'a>> {
        self.enter(test)?;
        let condition = self.condition(test, value)?;
        let before = self.scope.clone();
        self.b.open();
        let mut then_rest = rest.clone();
        then_rest.push(body);
        let then_flow = self.statements(then_rest)?;
        let then_insts = self.b.close();
        self.scope = before.clone();
        self.b.open();
        let else_flow = match self.static_clauses(clauses)? {
            Taken::Body(body) => {
                let mut else_rest = rest.clone();
                else_rest.push(body);
                self.statements(else_rest)?
            }
            Taken::Open { test, value, body, clauses } => {
                self.branch_with_return(test, &value, body, clauses, rest)?
            }
        };
        let else_insts = self.b.close();
        self.scope = before;
        self.depth -= 1;
        let value = |flow: Flow<'a>| match flow {
            Flow::Returned(v) => v,
            Flow::Next => Value::NONE,
        };
        let merged = self.merge(
            test,
            condition,
            (then_insts, vec![("the returned value".into(), value(then_flow))]),
            (else_insts, vec![("the returned value".into(), value(else_flow))]),
        )?;
        Ok(Flow::Returned(merged.into_iter().next().unwrap_or(Value::NONE)))
    }

    /// Guards the host stack against hostile nesting.
    pub(super) fn enter(&mut self, at: &impl Ranged) -> Result<()> {
        self.depth += 1;
        if self.depth > super::MAX_CALL_DEPTH * 2 {
            return Err(self.error(at, "too many nested branches that return"));
        }
        Ok(())
    }

    pub(super) fn dynamic_clauses(
        &mut self,
        at: &'a Expr,
        test: &Value<'a>,
        body: &'a [Stmt],
        clauses: &'a [ElifElseClause],
    ) -> Result<()> {
        self.locate(at);
        let condition = self.condition(at, test)?;
        let before = self.scope.clone();
        self.b.open();
        self.statements(vec![body])?;
        let then_insts = self.b.close();
        let then_scope = std::mem::replace(&mut self.scope, before.clone());
        self.b.open();
        match self.static_clauses(clauses)? {
            Taken::Body(body) => drop(self.statements(vec![body])?),
            Taken::Open { test, value, body, clauses } => {
                self.dynamic_clauses(test, &value, body, clauses)?;
            }
        }
        let else_insts = self.b.close();
        let else_scope = std::mem::replace(&mut self.scope, before);
        let mut names = Vec::new();
        let (mut then_values, mut else_values) = (Vec::new(), Vec::new());
        let all: BTreeSet<String> =
            then_scope.names().into_iter().chain(else_scope.names()).collect();
        for name in all {
            match (then_scope.get(&name), else_scope.get(&name)) {
                (Some(a), Some(b)) if a.same(b) => self.scope.set(&name, a.clone()),
                (Some(a), Some(b)) => {
                    then_values.push((name.clone(), a.clone()));
                    else_values.push((name.clone(), b.clone()));
                    names.push(name);
                }
                // Defined on one side only: not usable afterwards.
                _ => self.scope.remove(&name),
            }
        }
        let merged =
            self.merge(at, condition, (then_insts, then_values), (else_insts, else_values))?;
        for (name, value) in names.iter().zip(merged) {
            self.scope.set(name, value);
        }
        Ok(())
    }

    /// Emits the `if` and gives the values that differ between its branches.
    pub(super) fn merge(
        &mut self,
        at: &impl Ranged,
        condition: ValueId,
        (then_insts, then_values): (Vec<Inst>, Vec<(String, Value<'a>)>),
        (else_insts, else_values): (Vec<Inst>, Vec<(String, Value<'a>)>),
    ) -> Result<Vec<Value<'a>>> {
        let mut flat = Vec::new();
        self.b.open();
        for (name, value) in &then_values {
            flat.push(self.flatten(at, name, value)?);
        }
        let then_extra = self.b.close();
        let mut other = Vec::new();
        self.b.open();
        for (name, value) in &else_values {
            other.push(self.flatten(at, name, value)?);
        }
        let else_extra = self.b.close();
        let mut results = Vec::new();
        let mut merged = Vec::new();
        for (((name, value), a), b) in then_values.iter().zip(&flat).zip(&other) {
            let types_agree =
                a.len() == b.len() && a.iter().zip(b).all(|(x, y)| self.ty(*x) == self.ty(*y));
            if !types_agree {
                let show = |this: &Self, v: &[ValueId]| {
                    v.iter().map(|x| this.ty(*x).to_string()).collect::<Vec<_>>().join(", ")
                };
                let (x, y) = (show(self, a), show(self, b));
                return Err(self
                    .error(at, format!("{name} is {x} in one branch and {y} in the other"))
                    .with_hint("cast both to one type"));
            }
            let fresh: Vec<ValueId> =
                a.iter().map(|v| self.b.fresh(self.b.ty(*v).clone())).collect();
            merged.push(rebuild(value, &mut fresh.iter().copied()));
            results.extend(fresh);
        }
        let region = |mut insts: Vec<Inst>, extra: Vec<Inst>, yields: Vec<Vec<ValueId>>| {
            insts.extend(extra);
            Block { params: Vec::new(), insts, yields: yields.concat() }
        };
        let regions =
            vec![region(then_insts, then_extra, flat), region(else_insts, else_extra, other)];
        let loc = self.b.loc;
        self.b.push(Inst { op: Op::If, args: vec![condition], results, regions, loc });
        Ok(merged)
    }

    /// The run-time values inside a value; compile-time numbers become constants.
    pub(super) fn flatten(
        &mut self,
        at: &impl Ranged,
        name: &str,
        value: &Value<'a>,
    ) -> Result<Vec<ValueId>> {
        match value {
            Value::Tensor(v) => Ok(vec![*v]),
            Value::Const(Const::Bool(_) | Const::Int(_) | Const::Float(_)) => {
                Ok(vec![self.tensor(at, value)?])
            }
            Value::Const(Const::None) => Ok(Vec::new()),
            Value::Tuple(items) => {
                let mut all = Vec::new();
                for item in items {
                    all.extend(self.flatten(at, name, item)?);
                }
                Ok(all)
            }
            Value::BlockPtr(p) => {
                let mut all = vec![p.base];
                all.extend(p.shape.iter().chain(&p.strides).chain(&p.offsets));
                Ok(all)
            }
            other => Err(self.error(
                at,
                format!("{name} cannot change at run time: it is {}", other.describe()),
            )),
        }
    }
}
