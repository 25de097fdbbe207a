//! Values of a kernel: how they are added, and changed into other kinds of numbers.

use super::super::body::{Code, Kind, Var, VarId};
use super::super::index::{AxisId, Index};
use super::Lower;
use crate::expression::{A, Expr, Formula, Literal, Type};
use std::collections::BTreeSet;

impl Lower<'_> {
    pub(super) fn axes_of(&self, index: &Index) -> BTreeSet<AxisId> {
        let mut axes = BTreeSet::new();
        index.for_each_axis(&mut |axis| {
            axes.insert(axis);
        });
        index.for_each_value(&mut |var| axes.extend(&self.body.vars[var].axes));
        axes
    }

    pub(super) fn add(
        &mut self,
        name: Option<String>,
        kind: Kind,
        code: Code,
        axes: BTreeSet<AxisId>,
    ) -> VarId {
        self.body.vars.push(Var { name, kind, code, axes });
        VarId::new(self.body.vars.len() - 1)
    }

    /// Arithmetic over values, which the formula knows by their numbers.
    pub(super) fn compute(&mut self, kind: Kind, formula: Formula, operands: &[VarId]) -> VarId {
        let axes = operands.iter().flat_map(|v| self.body.vars[*v].axes.clone()).collect();
        let code = Code::Compute { formula, operands: operands.to_vec() };
        self.add(None, kind, code, axes)
    }

    /// A number that is written as it is.
    pub(super) fn number(&mut self, kind: Kind, literal: Literal) -> VarId {
        self.compute(kind, Expr::Literal(literal), &[])
    }

    pub(super) fn kind(&self, var: VarId) -> Kind {
        self.body.vars[var].kind
    }

    /// The value as another kind of number.
    pub(super) fn cast(&mut self, var: VarId, kind: Kind) -> VarId {
        if let Some(literal) = self.literal_as(var, kind) {
            return self.number(kind, literal);
        }
        match (self.kind(var), kind) {
            (from, to) if from == to => var,
            (_, Kind::Float) => self.compute(kind, A.to(Type::Float32), &[var]),
            (_, Kind::Int) => self.compute(kind, A.to(Type::Int64), &[var]),
            (_, Kind::Bool) => self.compute(kind, A.differs(Expr::int(0)), &[var]),
        }
    }

    /// A literal written as another kind of number.
    pub(super) fn literal_as(&self, var: VarId, kind: Kind) -> Option<Literal> {
        let known = &self.body.vars[var];
        let literal = known.code.as_literal().filter(|_| known.kind < kind)?;
        match (kind, literal) {
            (Kind::Float, _) => literal.as_f64().map(Literal::Float),
            (_, Literal::Bool(value)) => Some(Literal::Int(i64::from(value))),
            _ => None,
        }
    }
}
