//! The loops of a kernel made as few as possible: neighbours that every address walks through in step become one.

use super::body::{Body, Code, Guard};
use super::index::{Atom, AxisId, Index};
use super::{Refusal, Size};
use std::collections::BTreeSet;
use std::rc::Rc;

/// Which loops a kernel has, outermost first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Space {
    pub kept: Vec<AxisId>,
    pub reduced: Vec<AxisId>,
}

impl Space {
    /// Whether memory holds something of the tiles, which rows and columns are the innermost loops of, column by column.
    pub fn runs_across(&self, body: &Body) -> bool {
        let is_one = |step: Option<&Size>| step.is_some_and(|step| step.is(1));
        self.steps(body, |row, column| is_one(row) && column.is_some() && !is_one(column))
    }

    /// Whether memory holds something of them row by row.
    pub fn runs_along(&self, body: &Body) -> bool {
        let is_one = |step: Option<&Size>| step.is_some_and(|step| step.is(1));
        self.steps(body, |row, column| is_one(column) && row.is_some() && !is_one(row))
    }

    /// Whether something is read or written in such steps from row to row and from column to column.
    fn steps(&self, body: &Body, are_so: impl Fn(Option<&Size>, Option<&Size>) -> bool) -> bool {
        let mut loops = self.kept.iter().chain(&self.reduced).rev();
        let column = loops.next();
        let row = if self.reduced.is_empty() { loops.next() } else { self.kept.last() };
        let (Some(row), Some(column)) = (row, column) else { return false };
        let mut found = false;
        body.for_each_index(&mut |index| {
            let step = |axis: &AxisId| {
                let is_own = |atom: &Atom| matches!(atom, Atom::Axis(own) if own == axis);
                index.terms.iter().find(|(atom, _)| is_own(atom)).map(|(_, step)| step)
            };
            found |= are_so(step(row), step(column));
        });
        found
    }
}

/// Merges what can be merged.
pub fn coalesce(body: &mut Body) -> Result<Space, Refusal> {
    let reduced: BTreeSet<AxisId> = body.reduced.iter().copied().collect();
    let mut kept: Vec<AxisId> = body
        .axis_ids()
        .filter(|axis| !reduced.contains(axis) && body.axes[*axis].constant() != Some(1))
        .collect();
    let mut reduced: Vec<AxisId> = reduced.into_iter().collect();
    merge_neighbours(body, &mut kept)?;
    merge_neighbours(body, &mut reduced)?;
    body.reduced.clone_from(&reduced);
    Ok(Space { kept, reduced })
}

fn merge_neighbours(body: &mut Body, loops: &mut Vec<AxisId>) -> Result<(), Refusal> {
    let mut at = loops.len();
    while at > 1 {
        at -= 1;
        let (outer, inner) = (loops[at - 1], loops[at]);
        if in_step(body, outer, inner)? {
            let size = body.axes[outer].times(&body.axes[inner])?;
            body.axes[inner] = size;
            rewrite(body, outer, inner);
            loops.remove(at - 1);
        }
    }
    Ok(())
}

/// Whether every index walks through both loops as through one.
fn in_step(body: &Body, outer: AxisId, inner: AxisId) -> Result<bool, Refusal> {
    let size = &body.axes[inner];
    let mut same = Ok(true);
    body.for_each_index(&mut |index| {
        if matches!(same, Ok(true)) {
            same = index_in_step(index, outer, inner, size);
        }
    });
    same
}

fn index_in_step(
    index: &Index,
    outer: AxisId,
    inner: AxisId,
    size: &Size,
) -> Result<bool, Refusal> {
    let factor = |axis: AxisId| {
        index.terms.iter().find_map(|(atom, factor)| match atom {
            Atom::Axis(own) if *own == axis => Some(factor),
            _ => None,
        })
    };
    for (atom, _) in &index.terms {
        if let Atom::Div(nested, _) | Atom::Mod(nested, _) = atom
            && !index_in_step(nested, outer, inner, size)?
        {
            return Ok(false);
        }
    }
    Ok(match (factor(outer), factor(inner)) {
        (None, None) => true,
        (Some(outer), Some(inner)) => outer.same(&inner.times(size)?),
        _ => false,
    })
}

/// Takes the outer loop out of everything; the inner one now stands for both.
fn rewrite(body: &mut Body, outer: AxisId, inner: AxisId) {
    let index = |index: &mut Index| remove(index, outer);
    let guards = |guards: &mut Vec<Guard>| {
        guards.iter_mut().for_each(|guard| remove(&mut guard.index, outer));
    };
    for var in &mut body.vars {
        if var.axes.remove(&outer) {
            var.axes.insert(inner);
        }
        match &mut var.code {
            Code::Load { address, guards: own, .. } => {
                index(address);
                guards(own);
            }
            Code::Place(place) => index(place),
            Code::Inside(own) => guards(own),
            _ => {}
        }
    }
    for store in &mut body.stores {
        index(&mut store.address);
        guards(&mut store.guards);
    }
}

fn remove(index: &mut Index, axis: AxisId) {
    index.terms.retain(|(atom, _)| !matches!(atom, Atom::Axis(own) if *own == axis));
    for (atom, _) in &mut index.terms {
        if let Atom::Div(nested, _) | Atom::Mod(nested, _) = atom {
            let mut inner = (**nested).clone();
            remove(&mut inner, axis);
            *nested = Rc::new(inner);
        }
    }
}
