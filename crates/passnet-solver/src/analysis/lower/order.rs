//! Sorted rows: every element becomes a key, a whole number that says its value, and its place where that is asked for, and
//! keys are sorted.

use super::super::body::{Code, Kind, VarId};
use super::super::index::Index;
use super::super::{Refusal, refuse};
use super::{Lower, Wanted};
use crate::expression::{A, B, Binary, Expr, Formula, Type};
use passnet_graph::ops::Bound;

/// A row up to this long is sorted in one block: exchanges between lanes grow faster than what a library does.
const LONGEST_SORTED: i64 = 512;
/// The places that a key has room for.
const PLACES: i64 = 1 << 32;
/// Of a float's bits all but the sign.
const WITHOUT_SIGN: i64 = 0x7fff_ffff;

/// What is asked of a sorted dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sorted {
    Values,
    /// Where they stood before.
    Places,
}

impl Lower<'_> {
    pub(super) fn sorted(
        &mut self,
        wanted: Wanted<'_, '_>,
        what: Sorted,
    ) -> Result<VarId, Refusal> {
        let Wanted { node, bound, .. } = wanted;
        let with_places = bound.flag("stable");
        if what == Sorted::Places && !with_places {
            refuse!("torch does not say in which order it leaves equal elements");
        }
        let mut order = self.sorted_keys(wanted, with_places)?;
        if with_places {
            let place = Expr::binary(Binary::And, A, Expr::int(PLACES - 1));
            let place = self.compute(Kind::Int, place, &[order]);
            if what == Sorted::Places {
                return Ok(place);
            }
            let formula = Expr::binary(Binary::FloorOver, A - B, Expr::int(PLACES));
            order = self.compute(Kind::Int, formula, &[order, place]);
        }
        let source = self.input_node(node, bound, "input")?;
        let kind = self.piece.kind(source)?;
        let order_of = in_direction(bound);
        if kind != Kind::Float {
            let value = self.compute(Kind::Int, order_of, &[order]);
            return Ok(self.cast(value, kind));
        }
        let bits = self.compute(Kind::Int, order_of.to(Type::Int32), &[order]);
        Ok(self.compute(Kind::Float, turned().to(Type::FloatOfBits), &[bits]))
    }

    /// The keys of a dimension in rising order, which both results are read from.
    fn sorted_keys(&mut self, wanted: Wanted<'_, '_>, with_places: bool) -> Result<VarId, Refusal> {
        let Wanted { node, bound, index } = wanted;
        let parts: Vec<String> = index.iter().map(Index::key).collect();
        let known = format!("keys {}|{}", node.index(), parts.join("|"));
        if let Some(keys) = self.memo.get(&known) {
            return Ok(*keys);
        }
        let source = self.input_node(node, bound, "input")?;
        let from = self.piece.shape(source)?;
        if from.is_empty() || !self.guards.is_empty() || !self.hidden.is_empty() {
            return Err(self.unsupported(bound));
        }
        let dim = self.dim(bound.arg("dim"), from.len())?;
        if from[dim].largest() > LONGEST_SORTED {
            refuse!("a sorted row too long for one block");
        }
        if with_places && self.piece.dtypes(source).iter().any(|dtype| dtype.size() > 4) {
            refuse!("numbers of 64 bits leave no room for their places");
        }
        let x = self.pull(source, index)?;
        if !self.is_exact(x) {
            refuse!("the order of what is computed before it hangs on the last bit");
        }
        self.fold_dims(index, &from, &[dim])?;
        let axes = self.body.vars[x].axes.clone();
        if self.reduced.iter().flatten().all(|axis| !axes.contains(axis)) {
            refuse!("a sorted row of values that are all the same");
        }
        let order = match self.kind(x) {
            Kind::Float => {
                // What is no number comes last, whatever its sign, and zeros are equal.
                let zero = Expr::select(A.equals(Expr::float(0.0)), Expr::float(0.0), A);
                let number = Expr::select(A.differs(A), Expr::float(f64::NAN), zero);
                let bits = self.compute(Kind::Int, number.to(Type::BitsOfFloat), &[x]);
                self.compute(Kind::Int, turned(), &[bits])
            }
            _ => self.cast(x, Kind::Int),
        };
        let order_of = in_direction(bound);
        let key = match with_places {
            true => {
                let place = self.place(&index[dim]);
                let key = order_of.to(Type::Int64) * Expr::int(PLACES) + B;
                self.compute(Kind::Int, key, &[order, place])
            }
            false => self.compute(Kind::Int, order_of, &[order]),
        };
        let is_narrow = !with_places && self.kind(x) == Kind::Float;
        let axes = self.body.vars[key].axes.clone();
        let code = Code::Sort { value: key, is_narrow };
        let keys = self.add(None, Kind::Int, code, axes);
        self.memo.insert(known, keys);
        Ok(keys)
    }
}

/// An order turned round where a row falls, and back.
fn in_direction(bound: &Bound<'_>) -> Formula {
    if bound.flag("descending") { Expr::int(-1) - A } else { A }
}

/// The bits of a float as a whole number in the order of floats, and back: those of negative numbers fall where the numbers rise.
fn turned() -> Formula {
    let fallen = Expr::binary(Binary::Xor, A, Expr::int(WITHOUT_SIGN));
    Expr::select(A.below(Expr::int(0)), fallen, A)
}
