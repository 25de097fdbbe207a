//! Which pieces of a family become passes: those that pay, whole or in parts. The others are put aside.

use crate::analysis::groups::Group;
use crate::analysis::parts::parts;
use crate::emit::{Choice, Draft, stem_of};
use crate::explain;
use crate::graph_family::GraphFamily;
use crate::solve::{SolveError, Solver, Written, outline};
use crate::tune::{self, Measured};
use std::collections::BTreeSet;

/// A piece pays from this speed-up on: what is nearer to 1 may be noise.
const PAYS: f64 = 1.02;

/// Loads that find their place lane by lane, in a kernel that is tried on the host. Each of their lanes costs as much there as
/// a whole register elsewhere, so with more of them no kernel has been seen to win.
const MOST_LOOKUPS: usize = 2;

/// A pass that is written, with how it did alone.
pub(crate) struct Made {
    pub(crate) written: Written,
    pub(crate) explanation: explain::PassExplanation,
    pub(crate) measured: Option<Measured>,
}

impl Made {
    /// Seconds that a call loses; below zero where it wins.
    pub(crate) fn loss(&self) -> f64 {
        self.measured.map_or(0.0, |measured| measured.seconds - measured.eager_seconds)
    }

    /// What was not measured is believed.
    fn pays(&self) -> bool {
        self.measured.is_none_or(|measured| measured.speedup >= PAYS)
    }
}

impl Solver<'_> {
    pub(crate) fn select(
        &mut self,
        number: usize,
        family: &GraphFamily,
        groups: &[Group],
    ) -> Result<(), SolveError> {
        let mut losers: Vec<Made> = Vec::new();
        let mut new: BTreeSet<String> = BTreeSet::new();
        for group in groups {
            let outline = outline(group);
            if !self.outlines.insert(outline.clone()) {
                // Written before.
                continue;
            }
            match self.make(family, group)? {
                Some(made) if made.pays() => {
                    self.add(made);
                    new.insert(outline);
                    continue;
                }
                Some(made) => losers.push(made),
                None => {}
            }
            self.keep_parts(number, family, parts(family, group), &mut losers)?;
        }
        self.put_together(number, family, groups, &new);
        losers.sort_by(|a, b| a.loss().total_cmp(&b.loss()));
        for made in losers {
            self.drop_pass(&made.written.stem, "slower than eager");
            self.spares.push(made);
        }
        Ok(())
    }

    /// Keeps the pieces that pay, those first that save most; none that overlaps one that is kept.
    fn keep_parts(
        &mut self,
        number: usize,
        family: &GraphFamily,
        parts: Vec<Group>,
        losers: &mut Vec<Made>,
    ) -> Result<(), SolveError> {
        let mut tried = Vec::new();
        for part in parts {
            let outline = outline(&part);
            if self.outlines.insert(outline.clone())
                && let Some(made) = self.make(family, &part)?
            {
                *self.places.entry((outline, number)).or_insert(0) += 1;
                tried.push((part.members, made));
            }
        }
        tried.sort_by(|(_, a), (_, b)| a.loss().total_cmp(&b.loss()));
        let mut taken = BTreeSet::new();
        for (members, made) in tried {
            if made.pays() && taken.is_disjoint(&members) {
                taken.extend(members);
                self.add(made);
            } else {
                losers.push(made);
            }
        }
        Ok(())
    }

    pub(crate) fn add(&mut self, made: Made) {
        self.passes.push(made.written);
        self.explanation.passes.push(made.explanation);
    }

    /// Writes and measures a group; nothing where that does not work, with the reason noted.
    pub(crate) fn make(
        &mut self,
        family: &GraphFamily,
        group: &Group,
    ) -> Result<Option<Made>, SolveError> {
        let stem = self.stem(stem_of(group));
        let draft = match Draft::new(group, stem.clone()) {
            Ok(draft) => draft,
            Err(reason) => {
                self.drop_pass(&stem, &reason.0);
                return Ok(None);
            }
        };
        let on_host = self.engine.computes_on_host();
        if self.options.tune && on_host && draft.lookups() > MOST_LOOKUPS {
            self.drop_pass(
                &stem,
                "not tried on the host: it looks up more than two elements for each result",
            );
            return Ok(None);
        }
        let measured = match self.options.tune {
            true => match tune::tune(
                self.engine,
                family,
                &group.piece,
                &draft,
                self.folder,
                self.options.seconds,
            )? {
                Ok(measured) => measured,
                Err(reason) => {
                    self.drop_pass(&stem, &reason);
                    return Ok(None);
                }
            },
            false => None,
        };
        let choice = measured.map_or(Choice::default(), |measured| measured.choice);
        let text = match draft.write(choice) {
            Ok(text) => text,
            Err(reason) => {
                self.drop_pass(&stem, &reason.0);
                return Ok(None);
            }
        };
        let explanation = self.explain(family, group, &draft, choice, measured);
        let operations = group.piece.graph.op_count();
        let outline = outline(group);
        let written = Written { stem, text, operations, outline, choice, last_resort: false };
        Ok(Some(Made { written, explanation, measured }))
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
            let member =
                crate::piece_race::representatives(&group.piece).first().copied().unwrap_or(0);
            let moved = explain::moved_bytes(&group.piece, member);
            let reached = moved / measured.seconds.max(1e-9) / self.rates.bytes_per_second;
            explanation.roofline = Some(reached);
        }
        explanation
    }

    /// A file name that no other pass has.
    pub(crate) fn stem(&mut self, base: String) -> String {
        let numbered = (2..).map(|number| format!("{base}_{number}"));
        let mut names = std::iter::once(base.clone()).chain(numbered);
        let stem = names.find(|name| !self.stems.contains(name)).unwrap_or(base);
        self.stems.insert(stem.clone());
        stem
    }
}
