//! Statements: assignments, loops, branches, returns.

use super::value::{RangeKind, Value};
use super::{Compiler, Result};
use crate::consts::Const;
use crate::ir::{Block, Inst, Op, ValueId};
use crate::types::Elem;
use passnet_graph::syntax::Ranged;
use passnet_graph::syntax::ast::{Expr, Stmt, StmtFor, StmtIf, StmtWhile};
use std::collections::BTreeSet;
use std::rc::Rc;

/// How a sequence of statements ended.
pub(super) enum Flow<'a> {
    Next,
    Returned(Value<'a>),
}

/// Statements still to run, the outer ones last: `if c: return` moves the rest into the other branch.
type Rest<'a> = Vec<&'a [Stmt]>;

impl<'a> Compiler<'a> {
    pub(super) fn function_body(&mut self, body: &'a [Stmt]) -> Result<Value<'a>> {
        match self.statements(vec![body])? {
            Flow::Returned(value) => Ok(value),
            Flow::Next => Ok(Value::NONE),
        }
    }

    fn statements(&mut self, rest: Rest<'a>) -> Result<Flow<'a>> {
        self.nesting += 1;
        let flow = self.run_statements(rest);
        self.nesting -= 1;
        flow
    }

    fn run_statements(&mut self, mut rest: Rest<'a>) -> Result<Flow<'a>> {
        while let Some(block) = rest.pop() {
            let Some((stmt, later)) = block.split_first() else { continue };
            rest.push(later);
            self.step(stmt)?;
            if let Stmt::If(branch) = stmt {
                let test = self.expr(&branch.test)?;
                if let Some(taken) = self.static_branch(branch, &test)? {
                    rest.push(taken);
                    continue;
                }
                if returns(&branch.body)
                    || branch.elif_else_clauses.iter().any(|c| returns(&c.body))
                {
                    return self.branch_with_return(branch, &test, &rest);
                }
                self.dynamic_branch(branch, &test)?;
                continue;
            }
            if let Flow::Returned(value) = self.statement(stmt)? {
                return Ok(Flow::Returned(value));
            }
        }
        Ok(Flow::Next)
    }

    fn statement(&mut self, stmt: &'a Stmt) -> Result<Flow<'a>> {
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
                    let value = self.expr(value)?;
                    let constexpr = matches!(&*s.annotation, Expr::Attribute(a) if a.attr.as_str() == "constexpr");
                    if constexpr && value.to_const().is_none() {
                        return Err(self.error(
                            &*s.target,
                            "a `tl.constexpr` variable needs a compile-time value",
                        ));
                    }
                    self.assign(&s.target, value)?;
                }
            }
            Stmt::AugAssign(s) => {
                let current = self.expr(&s.target)?;
                let value = self.expr(&s.value)?;
                let result = self.binary_operator(s, s.op, &current, &value)?;
                self.assign(&s.target, result)?;
            }
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
                    return Err(self.error(s, "assertion is false at compile time"));
                }
            }
            Stmt::Break(_) | Stmt::Continue(_) => {
                return Err(self
                    .error(stmt, "Triton has no `break` and no `continue`")
                    .with_hint("use a mask, an `if` around the body, or a `while` condition"));
            }
            other => {
                return Err(self
                    .error(other, "this statement is not part of the Triton language")
                    .with_hint(
                        "kernels may use assignments, `if`, `for`, `while`, `return` and calls",
                    ));
            }
        }
        Ok(Flow::Next)
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

    fn unpack(&mut self, at: &'a Expr, targets: &'a [Expr], value: Value<'a>) -> Result<()> {
        let Value::Tuple(items) = value else {
            return Err(self.error(at, format!("cannot unpack {}", value.describe())));
        };
        if items.len() != targets.len() {
            let message = format!("{} values for {} names", items.len(), targets.len());
            return Err(self.error(at, message));
        }
        for (target, item) in targets.iter().zip(items) {
            self.assign(target, item)?;
        }
        Ok(())
    }

    /// The body to run when the condition is known, `None` when it is not.
    fn static_branch(
        &mut self,
        branch: &'a StmtIf,
        test: &Value<'a>,
    ) -> Result<Option<&'a [Stmt]>> {
        let Some(known) = self.known_truth(test) else { return Ok(None) };
        if known {
            return Ok(Some(&branch.body));
        }
        for clause in &branch.elif_else_clauses {
            match &clause.test {
                None => return Ok(Some(&clause.body)),
                Some(test) => {
                    let value = self.expr(test)?;
                    match self.known_truth(&value) {
                        Some(true) => return Ok(Some(&clause.body)),
                        Some(false) => {}
                        None => {
                            return Err(self
                                .error(
                                    test,
                                    "a run-time `elif` after a compile-time `if` is not supported",
                                )
                                .with_hint("write the branches as nested `if`s"));
                        }
                    }
                }
            }
        }
        Ok(Some(&[]))
    }

    fn known_truth(&self, value: &Value<'a>) -> Option<bool> {
        match value {
            Value::Tensor(_) | Value::BlockPtr(_) => None,
            Value::Tuple(items) => Some(!items.is_empty()),
            Value::Const(c) => Some(c.truthy()),
            _ => Some(true),
        }
    }

    fn condition(&mut self, at: &impl Ranged, test: &Value<'a>) -> Result<ValueId> {
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
    fn branch_with_return(
        &mut self,
        branch: &'a StmtIf,
        test: &Value<'a>,
        rest: &Rest<'a>,
    ) -> Result<Flow<'a>> {
        self.enter(&*branch.test)?;
        let condition = self.condition(&*branch.test, test)?;
        let before = self.scope.clone();
        self.b.open();
        let mut then_rest = rest.clone();
        then_rest.push(&branch.body);
        let then_flow = self.statements(then_rest)?;
        let then_insts = self.b.close();
        self.scope = before.clone();
        self.b.open();
        let else_flow = match branch.elif_else_clauses.split_first() {
            None => self.statements(rest.clone())?,
            Some((clause, later)) => self.else_with_return(clause, later, rest)?,
        };
        let else_insts = self.b.close();
        self.scope = before;
        self.depth -= 1;
        let value = |flow: Flow<'a>| match flow {
            Flow::Returned(v) => v,
            Flow::Next => Value::NONE,
        };
        let merged = self.merge(
            &*branch.test,
            condition,
            (then_insts, vec![("the returned value".into(), value(then_flow))]),
            (else_insts, vec![("the returned value".into(), value(else_flow))]),
        )?;
        Ok(Flow::Returned(merged.into_iter().next().unwrap_or(Value::NONE)))
    }

    fn else_with_return(
        &mut self,
        clause: &'a passnet_graph::syntax::ast::ElifElseClause,
        later: &'a [passnet_graph::syntax::ast::ElifElseClause],
        rest: &Rest<'a>,
    ) -> Result<Flow<'a>> {
        let Some(test) = &clause.test else {
            let mut else_rest = rest.clone();
            else_rest.push(&clause.body);
            return self.statements(else_rest);
        };
        let value = self.expr(test)?;
        let mut then_rest = rest.clone();
        then_rest.push(&clause.body);
        match self.known_truth(&value) {
            Some(true) => return self.statements(then_rest),
            Some(false) => {
                return match later.split_first() {
                    None => self.statements(rest.clone()),
                    Some((clause, later)) => self.else_with_return(clause, later, rest),
                };
            }
            None => {}
        }
        let condition = self.condition(test, &value)?;
        let before = self.scope.clone();
        self.b.open();
        let then_flow = self.statements(then_rest)?;
        let then_insts = self.b.close();
        self.scope = before.clone();
        self.b.open();
        let else_flow = match later.split_first() {
            None => self.statements(rest.clone())?,
            Some((clause, later)) => self.else_with_return(clause, later, rest)?,
        };
        let else_insts = self.b.close();
        self.scope = before;
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
    fn enter(&mut self, at: &impl Ranged) -> Result<()> {
        self.depth += 1;
        if self.depth > super::MAX_CALL_DEPTH * 2 {
            return Err(self.error(at, "too many nested branches that return"));
        }
        Ok(())
    }

    fn dynamic_branch(&mut self, branch: &'a StmtIf, test: &Value<'a>) -> Result<()> {
        self.dynamic_clauses(&branch.test, test, &branch.body, &branch.elif_else_clauses)
    }

    fn dynamic_clauses(
        &mut self,
        at: &'a Expr,
        test: &Value<'a>,
        body: &'a [Stmt],
        clauses: &'a [passnet_graph::syntax::ast::ElifElseClause],
    ) -> Result<()> {
        self.locate(at);
        let condition = self.condition(at, test)?;
        let before = self.scope.clone();
        self.b.open();
        self.statements(vec![body])?;
        let then_insts = self.b.close();
        let then_scope = std::mem::replace(&mut self.scope, before.clone());
        self.b.open();
        if let Some((clause, later)) = clauses.split_first() {
            match &clause.test {
                None => {
                    self.statements(vec![&clause.body])?;
                }
                Some(test) => {
                    let value = self.expr(test)?;
                    match self.known_truth(&value) {
                        Some(true) => {
                            self.statements(vec![&clause.body])?;
                        }
                        Some(false) => match later.split_first() {
                            None => {}
                            Some((last, [])) if last.test.is_none() => {
                                self.statements(vec![&last.body])?;
                            }
                            Some(_) => {
                                return Err(
                                    self.error(test, "write these branches as nested `if`s")
                                );
                            }
                        },
                        None => self.dynamic_clauses(test, &value, &clause.body, later)?,
                    }
                }
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
    fn merge(
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
    fn flatten(&mut self, at: &impl Ranged, name: &str, value: &Value<'a>) -> Result<Vec<ValueId>> {
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

    fn for_loop(&mut self, s: &'a StmtFor) -> Result<()> {
        if let Some(extra) = s.orelse.first() {
            return Err(self.error(extra, "loops have no `else`"));
        }
        let iter = self.expr(&s.iter)?;
        let (kind, bounds) = match iter {
            Value::Range(kind, bounds) => (kind, bounds),
            Value::Tuple(items) => {
                for item in items {
                    self.step(s)?;
                    self.assign(&s.target, item)?;
                    self.loop_body(&s.body)?;
                }
                return Ok(());
            }
            other => {
                return Err(self
                    .error(&*s.iter, format!("cannot loop over {}", other.describe()))
                    .with_hint("use `range`, `tl.range` or `tl.static_range`"));
            }
        };
        let zero = Value::int(0);
        let one = Value::int(1);
        let (low, high, step) = match bounds.as_slice() {
            [high] => (&zero, high, &one),
            [low, high] => (low, high, &one),
            [low, high, step] => (low, high, step),
            _ => return Err(self.error(&*s.iter, "a range takes one to three numbers")),
        };
        match kind {
            RangeKind::Static => self.unroll(s, low, high, step),
            RangeKind::Dynamic => self.dynamic_for(s, low, high, step),
        }
    }

    fn loop_body(&mut self, body: &'a [Stmt]) -> Result<()> {
        match self.statements(vec![body])? {
            Flow::Next => Ok(()),
            Flow::Returned(_) => {
                let at = body.first().map_or_else(Default::default, Ranged::range);
                Err(self.error(&at, "`return` inside a loop is not part of the Triton language"))
            }
        }
    }

    fn unroll(
        &mut self,
        s: &'a StmtFor,
        low: &Value<'a>,
        high: &Value<'a>,
        step: &Value<'a>,
    ) -> Result<()> {
        let low = self.const_int(&*s.iter, low, "a bound of `tl.static_range`")?;
        let high = self.const_int(&*s.iter, high, "a bound of `tl.static_range`")?;
        let step = self.const_int(&*s.iter, step, "the step of `tl.static_range`")?;
        if step == 0 {
            return Err(self.error(&*s.iter, "the step of a range cannot be zero"));
        }
        let mut i = low;
        while if step > 0 { i < high } else { i > high } {
            self.step(s)?;
            self.assign(&s.target, Value::int(i))?;
            self.loop_body(&s.body)?;
            i = i.saturating_add(step);
        }
        Ok(())
    }

    fn dynamic_for(
        &mut self,
        s: &'a StmtFor,
        low: &Value<'a>,
        high: &Value<'a>,
        step: &Value<'a>,
    ) -> Result<()> {
        let Expr::Name(index) = &*s.target else {
            return Err(self.error(&*s.target, "a loop variable is one name"));
        };
        let mut bounds = Vec::new();
        for bound in [low, high, step] {
            let v = self.tensor(&*s.iter, bound)?;
            let ty = self.ty(v);
            if !ty.is_scalar() || ty.num().is_none_or(Elem::is_float) {
                return Err(
                    self.error(&*s.iter, format!("loop bounds are integer scalars, not {ty}"))
                );
            }
            bounds.push(v);
        }
        if step.to_const().and_then(|c| c.as_int()) == Some(0) {
            return Err(self.error(&*s.iter, "the step of a range cannot be zero"));
        }
        let wide = bounds.iter().any(|v| self.ty(*v).elem().bits() == 64);
        let elem = if wide { Elem::I64 } else { Elem::I32 };
        let bounds: Vec<ValueId> = bounds.into_iter().map(|v| self.cast(v, elem)).collect();
        let iv = self.b.fresh(crate::types::Type::scalar(elem));
        let carried = self.carried(s, &s.body)?;
        let before = self.scope.clone();
        let (mut inits, mut params) = (bounds, vec![iv]);
        self.bind_carried(s, &carried, &mut inits, &mut params)?;
        self.scope.set(index.id.as_str(), Value::Tensor(iv));
        self.b.open();
        self.loop_body(&s.body)?;
        let yields = self.yields(s, &carried, &params[1..])?;
        let insts = self.b.close();
        self.locate(s);
        self.finish_loop(
            Op::For,
            inits,
            vec![Block { params, insts, yields }],
            before,
            &carried,
            1,
        );
        Ok(())
    }

    fn while_loop(&mut self, s: &'a StmtWhile) -> Result<()> {
        let carried = self.carried(s, &s.body)?;
        let before = self.scope.clone();
        let (mut inits, mut params) = (Vec::new(), Vec::new());
        self.bind_carried(s, &carried, &mut inits, &mut params)?;
        self.b.open();
        let test = self.expr(&s.test)?;
        if test.to_const().is_some_and(|c| c.truthy()) {
            return Err(self.error(&*s.test, "this loop never ends"));
        }
        let condition = self.condition(&*s.test, &test)?;
        let condition_insts = self.b.close();
        let mut body_inits = Vec::new();
        let mut body_params = Vec::new();
        self.scope = before.clone();
        self.b.open();
        self.bind_carried(s, &carried, &mut body_inits, &mut body_params)?;
        self.b.close();
        self.b.open();
        self.loop_body(&s.body)?;
        let yields = self.yields(s, &carried, &body_params)?;
        let insts = self.b.close();
        self.locate(s);
        let regions = vec![
            Block { params, insts: condition_insts, yields: vec![condition] },
            Block { params: body_params, insts, yields },
        ];
        self.finish_loop(Op::While, inits, regions, before, &carried, 0);
        Ok(())
    }

    /// Names the body assigns that already have a value a loop can carry.
    fn carried(&mut self, at: &impl Ranged, body: &'a [Stmt]) -> Result<Vec<String>> {
        let mut assigned = BTreeSet::new();
        assigned_names(body, &mut assigned);
        let mut carried = Vec::new();
        for name in assigned {
            match self.scope.get(name) {
                None | Some(Value::Path(_) | Value::Function(_) | Value::Module(_)) => {}
                Some(Value::Const(
                    Const::Str(_) | Const::Elem(_) | Const::Pointer(_) | Const::None,
                )) => {}
                Some(value) => {
                    let value = value.clone();
                    self.b.open();
                    let flat = self.flatten(at, name, &value);
                    self.b.close();
                    flat?;
                    carried.push(name.to_string());
                }
            }
        }
        Ok(carried)
    }

    fn bind_carried(
        &mut self,
        at: &impl Ranged,
        carried: &[String],
        inits: &mut Vec<ValueId>,
        params: &mut Vec<ValueId>,
    ) -> Result<()> {
        for name in carried {
            let value = self.scope.get(name).cloned().unwrap_or(Value::NONE);
            let flat = self.flatten(at, name, &value)?;
            let fresh: Vec<ValueId> =
                flat.iter().map(|v| self.b.fresh(self.b.ty(*v).clone())).collect();
            self.scope.set(name, rebuild(&value, &mut fresh.iter().copied()));
            inits.extend(flat);
            params.extend(fresh);
        }
        Ok(())
    }

    fn yields(
        &mut self,
        at: &impl Ranged,
        carried: &[String],
        params: &[ValueId],
    ) -> Result<Vec<ValueId>> {
        let mut yields = Vec::new();
        for name in carried {
            let value = self.scope.get(name).cloned().unwrap_or(Value::NONE);
            let flat = self.flatten(at, name, &value)?;
            for v in flat {
                let expected = params.get(yields.len()).map(|p| self.ty(*p));
                let found = self.ty(v);
                if expected.as_ref() != Some(&found) {
                    let expected = expected.map_or_else(|| "nothing".into(), |t| t.to_string());
                    return Err(self
                        .error(
                            at,
                            format!("`{name}` enters the loop as {expected} and becomes {found}"),
                        )
                        .with_hint("give it its final type and shape before the loop"));
                }
                yields.push(v);
            }
        }
        if yields.len() != params.len() {
            return Err(self.error(at, "a loop-carried tuple changes its length"));
        }
        Ok(yields)
    }

    fn finish_loop(
        &mut self,
        op: Op,
        args: Vec<ValueId>,
        regions: Vec<Block>,
        before: super::value::Scope<'a>,
        carried: &[String],
        skip: usize,
    ) {
        let last = regions.len() - 1;
        let params: Vec<ValueId> = regions[last].params[skip..].to_vec();
        let results: Vec<ValueId> =
            params.iter().map(|v| self.b.fresh(self.b.ty(*v).clone())).collect();
        let loc = self.b.loc;
        self.b.push(Inst { op, args, results: results.clone(), regions, loc });
        self.scope = before;
        let mut next = results.into_iter();
        for name in carried {
            let value = self.scope.get(name).cloned().unwrap_or(Value::NONE);
            let rebuilt = rebuild(&value, &mut next);
            self.scope.set(name, rebuilt);
        }
    }
}

/// The same structure with other run-time values inside.
fn rebuild<'a>(value: &Value<'a>, next: &mut dyn Iterator<Item = ValueId>) -> Value<'a> {
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

fn returns(body: &[Stmt]) -> bool {
    body.iter().any(|s| match s {
        Stmt::Return(_) => true,
        Stmt::If(i) => returns(&i.body) || i.elif_else_clauses.iter().any(|c| returns(&c.body)),
        _ => false,
    })
}

fn assigned_names<'a>(body: &'a [Stmt], names: &mut BTreeSet<&'a str>) {
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
