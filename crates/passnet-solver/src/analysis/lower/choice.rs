//! Choices between values. Where both are one function of different values, as in a join of sines, the function is computed of
//! what is chosen, once for an element instead of once for every part.

use super::super::body::{Code, Guard, Kind, VarId, functions_of};
use super::Lower;
use crate::expression::{A, B, C, Expr, Formula};
use std::collections::BTreeMap;

impl Lower<'_> {
    /// `where(condition, a, b)`, of one kind.
    pub(super) fn chosen(&mut self, condition: VarId, a: VarId, b: VarId) -> VarId {
        let costly = self.costly();
        self.chosen_of(condition, [a, b], &costly, &mut BTreeMap::new())
    }

    fn chosen_of(
        &mut self,
        condition: VarId,
        pair: [VarId; 2],
        costly: &[bool],
        known: &mut BTreeMap<[VarId; 2], VarId>,
    ) -> VarId {
        let [a, b] = pair;
        if self.is_same(a, b) {
            return a;
        }
        if let Some(found) = known.get(&pair) {
            return *found;
        }
        let kind = self.kind(a);
        let common = if costly[a.index()] { self.common(a, b) } else { None };
        let found = match common {
            Some((formula, pairs)) => {
                let operands: Vec<VarId> = pairs
                    .into_iter()
                    .map(|pair| self.chosen_of(condition, pair, costly, known))
                    .collect();
                self.compute(kind, formula, &operands)
            }
            None => self.compute(kind, Expr::select(A, B, C), &[condition, a, b]),
        };
        known.insert(pair, found);
        found
    }

    /// The function that both values are, and what of.
    fn common(&self, a: VarId, b: VarId) -> Option<(Formula, Vec<[VarId; 2]>)> {
        let (a, b) = (&self.body.vars[a], &self.body.vars[b]);
        let (
            Code::Compute { formula, operands },
            Code::Compute { formula: other, operands: others },
        ) = (&a.code, &b.code)
        else {
            return None;
        };
        let pairs: Vec<[VarId; 2]> =
            operands.iter().zip(others).map(|(one, other)| [*one, *other]).collect();
        let is_choice = |[one, other]: &[VarId; 2]| {
            let kind = self.kind(*one);
            self.is_same(*one, *other) || (kind == self.kind(*other) && kind != Kind::Bool)
        };
        let is_common = a.kind == b.kind
            && formula == other
            && operands.len() == others.len()
            && pairs.iter().all(is_choice);
        is_common.then(|| (formula.clone(), pairs))
    }

    /// Whether two values are the same wherever they are asked for.
    fn is_same(&self, a: VarId, b: VarId) -> bool {
        let keys = |guards: &[Guard]| guards.iter().map(Guard::key).collect::<Vec<_>>();
        a == b
            || match (&self.body.vars[a].code, &self.body.vars[b].code) {
                (Code::Inside(one), Code::Inside(other)) => keys(one) == keys(other),
                (Code::Place(one), Code::Place(other)) => one.key() == other.key(),
                (one, other) => {
                    let literal = one.as_literal();
                    literal.is_some() && literal == other.as_literal()
                }
            }
    }

    /// For every value whether a function is computed for it.
    fn costly(&self) -> Vec<bool> {
        let mut costly: Vec<bool> = Vec::new();
        for var in &self.body.vars {
            let Code::Compute { formula, operands } = &var.code else {
                costly.push(false);
                continue;
            };
            let own = functions_of(formula) > 0 || operands.iter().any(|of| costly[of.index()]);
            costly.push(own);
        }
        costly
    }
}
