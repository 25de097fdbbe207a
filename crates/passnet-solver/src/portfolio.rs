//! The passes of a task while it is worked on: those that are kept, those in reserve, and what is said of each.

use crate::analysis::Piece;
use crate::analysis::groups::Group;
use crate::emit::{Choice, Draft, PassText};
use crate::explain::{Dropped, PassExplanation};
use crate::tune::Measured;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// A pass that is written, with how it did alone.
#[derive(Clone)]
pub(crate) struct Pass {
    pub(crate) text: PassText,
    pub(crate) operations: usize,
    /// Its pattern and kernel without names; empty where they were not compared.
    pub(crate) outline: String,
    pub(crate) choice: Choice,
    /// Whether it is slower than eager, and there because the graph would be left without a pass.
    pub(crate) last_resort: bool,
    pub(crate) explanation: PassExplanation,
    pub(crate) measured: Option<Measured>,
}

impl Pass {
    pub(crate) fn stem(&self) -> &str {
        &self.text.stem
    }

    /// Seconds that a call loses; below zero where it wins.
    pub(crate) fn loss(&self) -> f64 {
        self.measured.map_or(0.0, |measured| measured.seconds - measured.eager_seconds)
    }
}

/// All passes of a task.
#[derive(Default)]
pub(crate) struct Portfolio {
    /// Those that are kept, in the order in which they apply.
    pub(crate) passes: Vec<Pass>,
    /// Those that do not pay.
    pub(crate) spares: Vec<Pass>,
    /// Passes that were tried and not kept, with the reason.
    pub(crate) dropped: Vec<Dropped>,
    /// Passes whose kernels share a launch in another pass, by outline; and the outlines of each such pass, by its name.
    joined: BTreeMap<String, Pass>,
    parts: BTreeMap<String, Vec<String>>,
    stems: BTreeSet<String>,
    /// Outlines of what is written already.
    outlines: BTreeSet<String>,
    /// In how many places of each graph family a pattern was found to fit, by outline and family.
    places: BTreeMap<(String, usize), usize>,
}

impl Portfolio {
    pub(crate) fn add(&mut self, pass: Pass) {
        self.passes.push(pass);
    }

    /// Larger patterns first, so that no smaller one takes a part of them.
    pub(crate) fn order(&mut self) {
        self.passes.sort_by_key(|pass| Reverse(pass.operations));
    }

    /// As many passes as have so many characters together, the first ones first; where there is room for none, the first or the
    /// shortest.
    pub(crate) fn keep_what_fits(&mut self, most_chars: usize, at_least_the_first: bool) {
        let size = |pass: &Pass| pass.text.alone().len();
        let mut sizes = self.passes.iter().map(size);
        let least = if at_least_the_first { sizes.next() } else { sizes.min() };
        let mut room = most_chars.max(least.unwrap_or(0));
        let (mut kept, mut left) = (Vec::new(), Vec::new());
        for pass in std::mem::take(&mut self.passes) {
            match room.checked_sub(size(&pass)) {
                Some(rest) => {
                    room = rest;
                    kept.push(pass);
                }
                None => left.push(pass),
            }
        }
        self.passes = kept;
        for pass in left {
            self.note_dropped(pass.stem(), "there is no room for it");
        }
    }

    pub(crate) fn texts(&self) -> Vec<&PassText> {
        self.passes.iter().map(|pass| &pass.text).collect()
    }

    /// The names of passes with a kernel, other than those that are there because nothing else is.
    pub(crate) fn kernels(&self) -> BTreeSet<String> {
        let is_kernel = |pass: &&Pass| !pass.text.is_passthrough() && !pass.last_resort;
        self.passes.iter().filter(is_kernel).map(|pass| pass.stem().to_string()).collect()
    }

    /// A file name that no other pass has.
    pub(crate) fn new_stem(&mut self, base: String) -> String {
        let numbered = (2..).map(|number| format!("{base}_{number}"));
        let mut names = std::iter::once(base.clone()).chain(numbered);
        let stem = names.find(|name| !self.stems.contains(name)).unwrap_or(base);
        self.stems.insert(stem.clone());
        stem
    }

    /// The name of a pass that came to nothing.
    pub(crate) fn free_stem(&mut self, stem: &str) {
        self.stems.remove(stem);
    }

    /// Whether nothing with this outline was written before.
    pub(crate) fn is_new(&mut self, outline: &str) -> bool {
        self.outlines.insert(outline.to_string())
    }

    /// A pattern fits once more in a graph family.
    pub(crate) fn count_place(&mut self, outline: &str, family: usize) {
        *self.places.entry((outline.to_string(), family)).or_insert(0) += 1;
    }

    /// In how many places of a graph family a pass was made for.
    pub(crate) fn places_of(&self, stem: &str, family: usize) -> usize {
        let pass = self.passes.iter().find(|pass| pass.stem() == stem);
        pass.and_then(|pass| self.places.get(&(pass.outline.clone(), family))).copied().unwrap_or(0)
    }

    /// Notes why something was not kept.
    pub(crate) fn note_dropped(&mut self, name: &str, reason: &str) {
        self.dropped.push(Dropped { name: name.to_string(), reason: reason.to_string() });
    }

    /// Takes a pass out for good. Passes whose kernels it launched come back.
    pub(crate) fn drop_pass(&mut self, stem: &str, reason: &str) {
        self.passes.retain(|pass| pass.stem() != stem);
        self.note_dropped(stem, reason);
        for outline in self.parts.remove(stem).unwrap_or_default() {
            self.bring_back(&outline);
        }
        self.order();
    }

    /// Takes a pass out; where a graph has no view to hand back, it may come in again.
    pub(crate) fn set_aside(&mut self, stem: &str, reason: &str) {
        if let Some(at) = self.passes.iter().position(|pass| pass.stem() == stem) {
            let pass = self.passes.remove(at);
            self.add_spare(Pass { measured: None, ..pass }, reason);
        }
    }

    /// Keeps a pass in reserve that is not worth having.
    pub(crate) fn add_spare(&mut self, pass: Pass, reason: &str) {
        self.note_dropped(pass.stem(), reason);
        self.spares.push(pass);
    }

    /// Brings a spare in because nothing else serves a graph.
    pub(crate) fn use_spare(&mut self, spare: usize) {
        let pass = Pass { last_resort: true, ..self.spares.remove(spare) };
        self.dropped.retain(|dropped| dropped.name != pass.stem());
        self.add(pass);
    }

    /// The choice with which a pass of this outline pays.
    pub(crate) fn choice(&self, outline: &str) -> Option<Choice> {
        let kept = self.passes.iter().find(|pass| pass.outline == outline);
        let pass = kept.or_else(|| self.joined.get(outline))?;
        (!pass.text.is_passthrough() && !pass.choice.by_argument).then_some(pass.choice)
    }

    /// Adds a pass that launches the kernels of others.
    pub(crate) fn add_joined(&mut self, pass: Pass, parts: Vec<String>) {
        self.parts.insert(pass.stem().to_string(), parts);
        self.add(pass);
    }

    /// Takes a pass out whose kernel another one launches.
    pub(crate) fn put_away(&mut self, outline: &str) {
        if let Some(at) = self.passes.iter().position(|pass| pass.outline == outline) {
            let pass = Pass { measured: None, ..self.passes.remove(at) };
            self.joined.insert(outline.to_string(), pass);
        }
    }

    pub(crate) fn bring_back(&mut self, outline: &str) {
        self.passes.extend(self.joined.remove(outline));
    }
}

/// A pattern and its kernel without names: where one is right, an equal one is.
pub(crate) fn outline(group: &Group) -> String {
    let kernel = Draft::new(group, "pass".into()).and_then(|draft| draft.write(Choice::default()));
    outline_of(&group.piece, kernel.ok().as_ref())
}

pub(crate) fn outline_of(piece: &Piece, kernel: Option<&PassText>) -> String {
    let graph = &piece.graph;
    let mut text = format!("{}:{:?}", graph.placeholder_count(), graph.outputs);
    for (_, call) in graph.calls() {
        text.push_str(&format!("|{} {:?} {:?}", call.target, call.args, call.kwargs));
    }
    text + &kernel.map_or(String::new(), |kernel| kernel.without_names(piece))
}
