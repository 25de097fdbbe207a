//! Loops: unrolled where the range is static, else compiled with the values they carry.

use super::control::{Flow, assigned_names, rebuild};
use super::value::{RangeKind, Value};
use super::{Compiler, Result};
use crate::consts::Const;
use crate::ir::{Block, Inst, Op, ValueId};
use crate::types::Elem;
use passnet_graph::syntax::Ranged;
use passnet_graph::syntax::ast::{Expr, Stmt, StmtFor, StmtWhile};
use std::collections::BTreeSet;

impl<'a> Compiler<'a> {
    pub(super) fn for_loop(&mut self, s: &'a StmtFor) -> Result<()> {
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

    /// A loop that Python itself runs, in a function that computes constants.
    pub(super) fn host_for(&mut self, s: &'a StmtFor) -> Result<Flow<'a>> {
        let items = match self.expr(&s.iter)? {
            Value::Tuple(items) => items,
            Value::Range(_, bounds) => {
                let mut numbers = Vec::new();
                for bound in &bounds {
                    numbers.push(self.const_int(&*s.iter, bound, "a bound of this range")?);
                }
                self.range_numbers(&s.iter, &numbers)?
            }
            other => {
                let text = format!("cannot loop over {}", other.describe());
                return Err(self.error(&*s.iter, text));
            }
        };
        for item in items {
            self.step(s)?;
            self.assign(&s.target, item)?;
            if let Flow::Returned(value) = self.statements(vec![&s.body])? {
                return Ok(Flow::Returned(value));
            }
        }
        Ok(Flow::Next)
    }

    pub(super) fn host_while(&mut self, s: &'a StmtWhile) -> Result<Flow<'a>> {
        loop {
            self.step(s)?;
            let test = self.expr(&s.test)?;
            if !self.const_of(&*s.test, &test, "this condition")?.truthy() {
                return Ok(Flow::Next);
            }
            if let Flow::Returned(value) = self.statements(vec![&s.body])? {
                return Ok(Flow::Returned(value));
            }
        }
    }

    pub(super) fn loop_body(&mut self, body: &'a [Stmt]) -> Result<()> {
        match self.statements(vec![body])? {
            Flow::Next => Ok(()),
            Flow::Returned(_) => {
                let at = body.first().map_or_else(Default::default, Ranged::range);
                Err(self.error(&at, "`return` inside a loop is not part of the Triton language"))
            }
        }
    }

    pub(super) fn unroll(
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

    pub(super) fn dynamic_for(
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

    pub(super) fn while_loop(&mut self, s: &'a StmtWhile) -> Result<()> {
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
    pub(super) fn carried(&mut self, at: &impl Ranged, body: &'a [Stmt]) -> Result<Vec<String>> {
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

    pub(super) fn bind_carried(
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

    pub(super) fn yields(
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

    pub(super) fn finish_loop(
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
