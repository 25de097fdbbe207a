//! Passes whose kernels share a launch, for a device on which a launch costs as much as a small kernel.

use crate::analysis::Piece;
use crate::analysis::groups::{Group, together};
use crate::emit::{self, Choice, Draft};
use crate::explain;
use crate::graph_family::GraphFamily;
use crate::select::Made;
use crate::solve::{Solver, Written, outline, outline_of};
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
        if self.engine.computes_on_host() && !self.options.for_gpu {
            return;
        }
        let outlines: Vec<String> = groups.iter().map(outline).collect();
        let kept: Vec<usize> =
            (0..groups.len()).filter(|at| self.choice(&outlines[*at]).is_some()).collect();
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
                    self.put_away(outline);
                }
            } else {
                self.bring_back(outline);
            }
        }
    }

    /// The choice with which a pass of this outline pays.
    fn choice(&self, outline: &String) -> Option<Choice> {
        let joined = self.joined.get(outline).map(|made| &made.written);
        let written = self.passes.iter().find(|pass| pass.outline == *outline).or(joined)?;
        (!written.text.is_passthrough() && !written.choice.by_argument).then_some(written.choice)
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
            let Some(choice) = self.choice(outline) else { return false };
            let Ok(draft) = Draft::new(group, format!("group_{}", drafts.len())) else {
                return false;
            };
            drafts.push((draft, choice));
        }
        let base = emit::stem(&piece.graph, false);
        let outline = match emit::together(piece, &drafts, "pass") {
            Ok(text) => outline_of(piece, Some(&text)),
            Err(reason) => {
                self.drop_pass(&base, &reason.0);
                return false;
            }
        };
        *self.places.entry((outline.clone(), number)).or_insert(0) += 1;
        if !self.outlines.insert(outline.clone()) {
            return true;
        }
        for ((draft, _), (group, _)) in drafts.iter_mut().zip(parts) {
            draft.stem = self.stem(format!("{}_part", emit::stem_of(group)));
        }
        let stem = self.stem(base);
        let Ok(text) = emit::together(piece, &drafts, &stem) else { return false };
        let members = parts.iter().flat_map(|(group, _)| group.members.iter().copied()).collect();
        let choice = drafts[0].1;
        let kind = format!("{} kernels behind one launch", parts.len());
        let explanation =
            explain::pass(&stem, family, (&members, piece), &kind, choice, self.rates);
        let operations = piece.graph.op_count();
        let written =
            Written { stem: stem.clone(), text, operations, outline, choice, last_resort: false };
        self.add(Made { written, explanation, measured: None });
        let outlines = parts.iter().map(|(_, outline)| (*outline).clone()).collect();
        self.parts.insert(stem, outlines);
        true
    }

    /// Takes a pass out whose kernel another one launches.
    fn put_away(&mut self, outline: &str) {
        let Some(at) = self.passes.iter().position(|pass| pass.outline == outline) else { return };
        let written = self.passes.remove(at);
        let explained = self.explanation.passes.iter().position(|pass| pass.name == written.stem);
        let Some(explained) = explained else { return };
        let explanation = self.explanation.passes.remove(explained);
        self.joined.insert(outline.to_string(), Made { written, explanation, measured: None });
    }

    fn bring_back(&mut self, outline: &str) {
        if let Some(made) = self.joined.remove(outline) {
            self.add(made);
        }
    }

    /// Brings the passes back whose kernels a pass launched that is gone.
    pub(crate) fn take_apart(&mut self, stem: &str) {
        for outline in self.parts.remove(stem).unwrap_or_default() {
            self.bring_back(&outline);
        }
        self.order();
    }
}
