//! Where results lie in the loops, and what must hold before they are stored.

use super::super::body::{Code, Guard, Target};
use super::super::index::{Atom, AxisId, Index};
use super::super::{Refusal, Size, refuse};
use super::Lower;
use passnet_graph::NodeId;
use std::collections::BTreeSet;

/// Steps of all loops up to which a fold that is computed again and again costs less than a launch.
const MOST_REPEATED: i64 = 1 << 18;

impl Lower<'_> {
    /// An updated tensor may be read only where it is about to be written.
    pub(super) fn check_updates(&self) -> Result<(), Refusal> {
        for store in &self.body.stores {
            let Target::Param(updated) = store.target else { continue };
            for var in &self.body.vars {
                if let Code::Load { param, address, .. } = &var.code
                    && *param == updated
                    && address.key() != store.address.key()
                {
                    refuse!(
                        "`{}` is updated where others still read it",
                        self.piece.graph.nodes()[updated].name
                    );
                }
            }
        }
        Ok(())
    }

    /// What is read without a condition must have elements wherever anything is computed.
    pub(super) fn check_has_elements(&self, param: NodeId) -> Result<(), Refusal> {
        for (graph, value) in self.piece.values(param).iter().enumerate() {
            let is_empty = value.as_tensor().is_some_and(|tensor| tensor.elements() == 0);
            if is_empty && self.body.axes.iter().all(|size| size.values()[graph] != 0) {
                refuse!("`{}` has no elements in some graph", self.piece.name(param));
            }
        }
        Ok(())
    }

    /// Where a loop has no step in some graph, the wrapper returns before the launch: that is right only if nothing has
    /// elements there, and if no fold starts from nothing.
    pub(super) fn check_idle_loops(&self) -> Result<(), Refusal> {
        for (axis, size) in self.body.axis_ids().zip(&self.body.axes) {
            if !size.values().contains(&0) {
                continue;
            }
            if self.body.reduced.contains(&axis) {
                refuse!("a fold over nothing in some graph");
            }
            for store in &self.body.stores {
                let mut varies = false;
                store.address.for_each_axis(&mut |own| varies |= own == axis);
                if !varies {
                    refuse!("only some of the results have no elements in some graph");
                }
            }
        }
        Ok(())
    }

    /// A reduction that does not vary with an outer loop would be computed again for each step of it.
    pub(super) fn check_reductions(&mut self) -> Result<(), Refusal> {
        let reduced = &self.body.reduced;
        let steps = self.elements(&self.body.axes)?;
        let may_repeat = self.liberty.may_repeat && steps.largest() <= MOST_REPEATED;
        for var in &self.body.vars {
            let (Code::Reduce { value, .. } | Code::Scan { value } | Code::Sort { value, .. }) =
                &var.code
            else {
                continue;
            };
            let axes = &self.body.vars[*value].axes;
            let missing = self
                .body
                .axis_ids()
                .filter(|axis| !reduced.contains(axis) && !axes.contains(axis))
                .any(|axis| self.body.axes[axis].largest() > 1);
            if missing && !may_repeat {
                refuse!("a reduction would be repeated for every element it is spread over");
            }
            if !reduced.iter().any(|axis| axes.contains(axis)) {
                refuse!("a reduction folds values that are all the same");
            }
        }
        let row_store = self.body.stores.iter().any(|store| {
            let mut own = BTreeSet::new();
            store.address.for_each_axis(&mut |axis| {
                own.insert(axis);
            });
            let varies = &self.body.vars[store.value].axes;
            varies.iter().any(|axis| !own.contains(axis))
        });
        if row_store {
            refuse!("a result varies with loops that its place does not");
        }
        self.store_once()
    }

    /// What is stored must be stored once: every loop that is not folded moves the place, or nothing is stored but in its first
    /// step, where nothing is read for all the other steps.
    fn store_once(&mut self) -> Result<(), Refusal> {
        let reads = self.body.vars.iter().any(|var| matches!(var.code, Code::Load { .. }));
        for number in 0..self.body.stores.len() {
            let mut own = BTreeSet::new();
            self.body.stores[number].address.for_each_axis(&mut |axis| {
                own.insert(axis);
            });
            let still: Vec<AxisId> = self
                .body
                .axis_ids()
                .filter(|axis| {
                    !self.body.reduced.contains(axis)
                        && !own.contains(axis)
                        && self.body.axes[*axis].largest() > 1
                })
                .collect();
            if (reads || !self.body.reduced.is_empty()) && !still.is_empty() {
                refuse!("a smaller result would be stored again and again");
            }
            for axis in still {
                let index = Index::atom(Atom::Axis(axis), self.piece.graphs);
                let (none, one) = (self.fixed(0), self.fixed(1));
                let store = &mut self.body.stores[number];
                // Triton asks for an address in every lane that the condition is asked in.
                store.address.terms.push((Atom::Axis(axis), none));
                store.guards.push(Guard { index, low: None, high: Some(one) });
            }
        }
        Ok(())
    }

    /// The index at which another output lies in the loops.
    pub(super) fn place_of(&mut self, node: NodeId) -> Result<Vec<Index>, Refusal> {
        let shape = self.piece.shape(node)?;
        if let Some(index) = self.reached.get(&node)
            && self.covers(index, &shape)
        {
            return Ok(index.clone());
        }
        let sizes: Vec<Size> = self.main_sizes()?;
        // In step with the main output even where a dimension is one, so that both read the same elements.
        let is_alike = |(size, own): (&Size, &Size)| size.same(own);
        if shape.len() == sizes.len() && shape.iter().zip(&sizes).all(is_alike) {
            return Ok(self.main.clone());
        }
        let mut dims = self.main.iter();
        let mut found = Vec::with_capacity(shape.len());
        let mut at = 0;
        for size in &shape {
            if size.is(1) {
                // The same dimension of the main output, where it has that: it need not be one where the pass is used.
                let ahead = sizes[at..].iter().position(|main| is_one_dimension(main, size));
                found.push(match ahead.and_then(|ahead| dims.nth(ahead).zip(Some(ahead + 1))) {
                    Some((index, passed)) => {
                        at += passed;
                        index.clone()
                    }
                    None => Index::fixed(0, self.piece.graphs),
                });
                continue;
            }
            loop {
                let Some(index) = dims.next() else {
                    refuse!("`{}` has another shape than the other results", self.piece.name(node))
                };
                at += 1;
                if sizes[at - 1].same(size) {
                    found.push(index.clone());
                    break;
                }
            }
        }
        Ok(found)
    }

    pub(super) fn main_sizes(&self) -> Result<Vec<Size>, Refusal> {
        self.main
            .iter()
            .map(|index| {
                let mut size = Size::fixed(1, self.piece.graphs);
                for (atom, _) in &index.terms {
                    if let Atom::Axis(axis) = atom {
                        size = size.times(&self.body.axes[*axis])?;
                    }
                }
                Ok(size)
            })
            .collect()
    }

    /// Whether an index reaches every element of a shape exactly once as the loops go round.
    fn covers(&self, index: &[Index], shape: &[Size]) -> bool {
        let mut used = BTreeSet::new();
        for (index, size) in index.iter().zip(shape) {
            if !index.constant.is(0) {
                return false;
            }
            let mut terms: Vec<(AxisId, &Size)> = Vec::new();
            for (atom, factor) in &index.terms {
                let Atom::Axis(axis) = atom else { return false };
                if !used.insert(*axis) {
                    return false;
                }
                terms.push((*axis, factor));
            }
            terms.sort_by_key(|(_, factor)| factor.values().to_vec());
            let mut reach = Size::fixed(1, self.piece.graphs);
            for (axis, factor) in terms {
                if !factor.same(&reach) {
                    return false;
                }
                match reach.times(&self.body.axes[axis]) {
                    Ok(next) => reach = next,
                    Err(_) => return false,
                }
            }
            if !reach.same(size) {
                return false;
            }
        }
        let all = self
            .body
            .axis_ids()
            .filter(|axis| !self.reduced.as_ref().is_some_and(|reduced| reduced.contains(axis)));
        let mut all = all.filter(|axis| self.body.axes[*axis].largest() > 1);
        all.all(|axis| used.contains(&axis))
    }
}

/// Whether two sizes are one in every graph and follow from the same dimensions of what the wrapper takes.
fn is_one_dimension(main: &Size, size: &Size) -> bool {
    main.is(1) && main.constant().is_none() && main.formula() == size.formula()
}
