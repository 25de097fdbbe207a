//! Passes whose kernels share a launch, for a device on which a launch costs as much as a small kernel.

use crate::analysis::groups::{Group, Together, together};
use crate::analysis::piece::Piece;
use crate::emit::{self, Choice, Draft, PassText};
use crate::explain;
use crate::graph_family::GraphFamily;
use crate::portfolio::{Pass, outline, outline_of};
use crate::solver::{Solver, load};
use passnet_graph::graph::{Call, Target};
use std::collections::BTreeSet;

impl Solver<'_> {
    /// Puts kernels of a family that do not wait for each other behind one launch. `new` are the outlines of the passes that
    /// this family brought: no other family needs them by themselves.
    pub(crate) fn put_together(
        &mut self,
        number: usize,
        family: &GraphFamily,
        groups: &[Group],
        new: &BTreeSet<String>,
    ) {
        if self.multiprocessors().is_none() || self.options.most_operations.is_some() {
            return;
        }
        let outlines: Vec<String> = groups.iter().map(outline).collect();
        let kept: Vec<usize> = (0..groups.len())
            .filter(|at| self.portfolio.choice(&outlines[*at]).is_some())
            .collect();
        let candidates: Vec<&Group> = kept.iter().map(|at| &groups[*at]).collect();
        let mut served: BTreeSet<&String> = BTreeSet::new();
        for set in together(family, &candidates) {
            let of = |at: &usize| (&groups[kept[*at]], &outlines[kept[*at]]);
            let parts: Vec<(&Group, &String)> = set.numbers.iter().map(of).collect();
            if self.write_together(number, family, &set, &parts) {
                served.extend(parts.iter().map(|(_, outline)| *outline));
            }
        }
        for outline in &outlines {
            if served.contains(outline) {
                if new.contains(outline) {
                    self.portfolio.put_away(outline);
                }
            } else {
                self.portfolio.bring_back(outline);
            }
        }
    }

    /// What is launched for a set, under the names of what it computes.
    fn drafts<'g>(
        &self,
        set: &'g Together,
        parts: &[(&'g Group, &String)],
    ) -> Option<Vec<(Draft<'g>, Choice)>> {
        let draft = |group: &'g Group, of: &Group| Draft::new(group, emit::stem_of(of)).ok();
        if set.again.is_empty() {
            let part = |(group, outline): &(&'g Group, &String)| {
                Some((draft(group, group)?, self.portfolio.choice(outline)?))
            };
            return parts.iter().map(part).collect();
        }
        let multiprocessors = self.multiprocessors()?;
        let part = |(number, group): &'g (usize, Group)| {
            let at = set.numbers.iter().position(|own| own == number)?;
            let draft = draft(group, parts[at].0)?;
            let choice = draft.for_gpu(multiprocessors);
            Some((draft, choice))
        };
        set.again.iter().map(part).collect()
    }

    /// Writes a pass for several groups; whether there is one now.
    fn write_together(
        &mut self,
        number: usize,
        family: &GraphFamily,
        set: &Together,
        parts: &[(&Group, &String)],
    ) -> bool {
        let piece = &set.piece;
        let Some(mut drafts) = self.drafts(set, parts) else { return false };
        let base = emit::stem(&piece.graph, false);
        let outline = match emit::together(piece, &drafts, "pass") {
            Ok(text) => outline_of(piece, Some(&text)),
            Err(reason) => {
                self.portfolio.note_dropped(&base, &reason.0);
                return false;
            }
        };
        self.portfolio.count_place(&outline, number);
        if !self.portfolio.is_new(&outline) {
            return true;
        }
        for (draft, _) in &mut drafts {
            draft.stem = self.portfolio.new_stem(format!("{}_part", draft.stem));
        }
        let stem = self.portfolio.new_stem(base);
        let Ok(text) = emit::together(piece, &drafts, &stem) else { return false };
        if !binds_as_written(family, piece, &text) {
            self.portfolio.note_dropped(
                &stem,
                "its parts are alike, and each would be given the other's tensors",
            );
            return false;
        }
        let members = &set.members;
        let choice = drafts[0].1;
        let kind = match &drafts[..] {
            [(only, choice)] => only.kind(*choice).to_string(),
            several => format!("{} kernels behind one launch", several.len()),
        };
        let explanation = explain::pass(&stem, family, (members, piece), &kind, choice, self.rates);
        let pass = Pass {
            text,
            operations: piece.graph.op_count(),
            outline,
            choice,
            last_resort: false,
            explanation,
            measured: None,
        };
        let outlines = parts.iter().map(|(_, outline)| (*outline).clone()).collect();
        self.portfolio.add_joined(pass, outlines);
        true
    }
}

/// Whether a pass is given the tensors that it was written for: where two of its parts compute the same from other sizes, the
/// matcher may as well bind each part to the other's, for which its kernel is not made.
fn binds_as_written(family: &GraphFamily, piece: &Piece, text: &PassText) -> bool {
    let rewritten = load(&[text]).and_then(|candidate| candidate.rewrite(family.graph()));
    let Ok(rewritten) = rewritten else { return false };
    let is_as_written = |call: &Call| {
        let given = call.args.iter().zip(piece.graph.placeholders());
        given.filter_map(|(arg, wanted)| Some((arg.as_node()?, wanted))).all(|(node, wanted)| {
            let name = &rewritten.graph.node(node).name;
            *name == wanted.name || family.graph().nodes().iter().all(|own| own.name != wanted.name)
        })
    };
    let mut calls = rewritten.graph.calls().map(|(_, call)| call);
    calls.all(|call| !matches!(call.target, Target::Replacement(_)) || is_as_written(call))
}
