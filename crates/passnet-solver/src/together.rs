//! Passes whose kernels share a launch, for a device on which a launch costs as much as a small kernel.

use crate::analysis::Piece;
use crate::analysis::groups::{Group, together};
use crate::emit::{self, Draft};
use crate::explain;
use crate::graph_family::GraphFamily;
use crate::portfolio::{Pass, outline, outline_of};
use crate::solver::Solver;
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
        let is_alone = self.engine.computes_on_host() && !self.options.for_gpu;
        if is_alone || self.options.most_operations.is_some() {
            return;
        }
        let outlines: Vec<String> = groups.iter().map(outline).collect();
        let kept: Vec<usize> = (0..groups.len())
            .filter(|at| self.portfolio.choice(&outlines[*at]).is_some())
            .collect();
        let candidates: Vec<&Group> = kept.iter().map(|at| &groups[*at]).collect();
        let mut served: BTreeSet<&String> = BTreeSet::new();
        for (members, piece) in together(family, &candidates) {
            let members: Vec<usize> = members.into_iter().map(|at| kept[at]).collect();
            let of = |at: &usize| (&groups[*at], &outlines[*at]);
            let parts: Vec<(&Group, &String)> = members.iter().map(of).collect();
            if self.write_together(number, family, &piece, &parts) {
                served.extend(parts.iter().map(|(_, outline)| *outline));
            }
        }
        let unread =
            groups.iter().zip(&outlines).filter(|(group, _)| group.is_unread(family.graph()));
        let unread: BTreeSet<&String> = unread.map(|(_, outline)| outline).collect();
        for outline in &outlines {
            if served.contains(outline) || unread.contains(outline) {
                if new.contains(outline) {
                    self.portfolio.put_away(outline);
                }
            } else {
                self.portfolio.bring_back(outline);
            }
        }
    }

    /// Writes a pass for several groups; whether there is one now.
    fn write_together(
        &mut self,
        number: usize,
        family: &GraphFamily,
        piece: &Piece,
        parts: &[(&Group, &String)],
    ) -> bool {
        let mut drafts = Vec::new();
        for (group, outline) in parts {
            let Some(choice) = self.portfolio.choice(outline) else { return false };
            let Ok(draft) = Draft::new(group, format!("group_{}", drafts.len())) else {
                return false;
            };
            drafts.push((draft, choice));
        }
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
        for ((draft, _), (group, _)) in drafts.iter_mut().zip(parts) {
            draft.stem = self.portfolio.new_stem(format!("{}_part", emit::stem_of(group)));
        }
        let stem = self.portfolio.new_stem(base);
        let Ok(text) = emit::together(piece, &drafts, &stem) else { return false };
        let members = parts.iter().flat_map(|(group, _)| group.members.iter().copied()).collect();
        let choice = drafts[0].1;
        let kind = format!("{} kernels behind one launch", parts.len());
        let explanation =
            explain::pass(&stem, family, (&members, piece), &kind, choice, self.rates);
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
