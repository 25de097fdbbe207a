//! Which pieces of a family become passes: those that pay, whole or in parts. The others are put aside.

use crate::analysis::groups::Group;
use crate::analysis::parts::parts;
use crate::emit::{Choice, Draft, stem_of};
use crate::explain;
use crate::graph_family::GraphFamily;
use crate::portfolio::{Pass, outline};
use crate::solver::Solver;
use crate::tune::{self, Measured};
use std::collections::BTreeSet;

/// A piece pays from this speed-up on: what is nearer to 1 may be noise.
const PAYS: f64 = 1.02;

/// The most loads at computed places for which a kernel is tried on the host. Each lane of such a load costs as much there as
/// a whole register of any other, and no kernel with more of them was faster than eager.
const MOST_LOOKUPS: usize = 2;

/// What a pass is called where a small model is to learn from it: one name less to copy.
const SHORT_NAME: &str = "fused";

/// A pass that was not measured counts as one that pays.
fn pays(pass: &Pass) -> bool {
    pass.measured.is_none_or(|measured| measured.speedup >= PAYS)
}

impl Solver<'_> {
    /// Writes the groups of a family that pay, and keeps the others in reserve.
    pub(crate) fn select(&mut self, number: usize, family: &GraphFamily, groups: &[Group]) {
        let mut losers: Vec<Pass> = Vec::new();
        let mut new: BTreeSet<String> = BTreeSet::new();
        let mut in_order: Vec<&Group> = groups.iter().collect();
        if self.options.most_operations.is_some() {
            // What is simplest comes first and is kept first: a small model gets it right.
            let operations = |group: &Group| group.piece.graph.op_count();
            in_order.sort_by_cached_key(|group| (operations(group) < 2, outline(group).len()));
        }
        for group in in_order {
            let outline = outline(group);
            if !self.portfolio.is_new(&outline) {
                continue;
            }
            match self.make(family, group) {
                Some(pass) if pays(&pass) => {
                    self.portfolio.add(pass);
                    new.insert(outline);
                    continue;
                }
                made => losers.extend(made),
            }
            losers.extend(self.keep_parts(number, family, parts(family, group)));
        }
        self.put_together(number, family, groups, &new);
        losers.sort_by(|a, b| a.loss().total_cmp(&b.loss()));
        for pass in losers {
            self.portfolio.add_spare(pass, "slower than eager");
        }
    }

    /// Keeps the pieces that pay, those first that save most; none that overlaps one that is kept. Gives the others.
    fn keep_parts(&mut self, number: usize, family: &GraphFamily, parts: Vec<Group>) -> Vec<Pass> {
        let mut tried = Vec::new();
        for part in parts {
            let outline = outline(&part);
            if self.portfolio.is_new(&outline)
                && let Some(pass) = self.make(family, &part)
            {
                self.portfolio.count_place(&outline, number);
                tried.push((part.members, pass));
            }
        }
        tried.sort_by(|(_, a), (_, b)| a.loss().total_cmp(&b.loss()));
        let mut taken = BTreeSet::new();
        let mut losers = Vec::new();
        for (members, pass) in tried {
            if pays(&pass) && taken.is_disjoint(&members) {
                taken.extend(members);
                self.portfolio.add(pass);
            } else {
                losers.push(pass);
            }
        }
        losers
    }

    /// Writes and measures a group; nothing where that does not work, with the reason noted.
    pub(crate) fn make(&mut self, family: &GraphFamily, group: &Group) -> Option<Pass> {
        let base = match self.options.most_operations {
            Some(_) => SHORT_NAME.to_string(),
            None => stem_of(group),
        };
        let stem = self.portfolio.new_stem(base);
        let made = self.try_to_make(family, group, stem.clone());
        made.map_err(|reason| self.portfolio.note_dropped(&stem, &reason)).ok()
    }

    fn try_to_make(
        &self,
        family: &GraphFamily,
        group: &Group,
        stem: String,
    ) -> Result<Pass, String> {
        let draft = Draft::new(group, stem).map_err(|reason| reason.0)?;
        let (engine, options) = (self.engine, self.options);
        if options.tune && engine.computes_on_host() && draft.lookups() > MOST_LOOKUPS {
            return Err(
                "not tried on the host: it looks up more than two elements for each result".into(),
            );
        }
        let measured = match options.tune && !self.measuring.is_over() {
            true => {
                let choices = draft.choices(self.multiprocessors());
                tune::tune(engine, family, (&group.piece, &draft), &choices, self.measuring)?
            }
            false => None,
        };
        let unmeasured =
            self.multiprocessors().map_or(Choice::default(), |count| draft.for_gpu(count));
        let choice = measured.map_or(unmeasured, |measured| measured.choice);
        Ok(Pass {
            text: draft.write(choice).map_err(|reason| reason.0)?,
            operations: group.piece.graph.op_count(),
            outline: outline(group),
            choice,
            last_resort: false,
            explanation: self.explain(family, group, &draft, choice, measured),
            measured,
        })
    }

    fn explain(
        &self,
        family: &GraphFamily,
        group: &Group,
        draft: &Draft<'_>,
        choice: Choice,
        measured: Option<Measured>,
    ) -> explain::PassExplanation {
        let mut explanation = explain::pass(
            &draft.stem,
            family,
            (&group.members, &group.piece),
            draft.kind(choice),
            choice,
            self.rates,
        );
        if let Some(measured) = measured {
            explanation.measured_speedup = Some(measured.speedup);
            let member = crate::piece_race::representatives(family, &group.piece)
                .first()
                .copied()
                .unwrap_or(0);
            let moved = group.piece.moved_bytes(member);
            let reached = moved / measured.seconds.max(1e-9) / self.rates.bytes_per_second;
            explanation.roofline = Some(reached);
        }
        explanation
    }
}
