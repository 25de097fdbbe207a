//! A last look: the whole graph with its passes, against eager.
//!
//! Pieces are timed alone, on plain inputs. In the graph a piece may read what is laid out differently, or leave caches
//! in another state, so what paid alone may cost here. Then fewer passes are tried, and others.

use crate::emit::PassText;
use crate::form::{Form, TypedGraph};
use crate::solve::{SolveError, Solver, write_folder};
use crate::tune::quick;
use passnet_bench::candidate::Candidate;
use passnet_bench::evaluate::evaluate;
use passnet_bench::verdict::VerdictKind;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Below this speed-up something else is tried.
const SLOWER: f64 = 0.98;
/// What is tried must be this much better.
const BETTER: f64 = 1.02;
/// After so long nothing more is tried.
const PATIENCE: Duration = Duration::from_millis(1500);
/// Elements of a graph that is timed by preference.
const WANTED_ELEMENTS: f64 = (1 << 18) as f64;

/// One other way to serve a graph.
enum Change {
    /// Without one of its passes.
    Without(String),
    /// With one that was put aside, by number, instead of all of its own.
    Instead(usize),
}

impl Solver<'_> {
    /// A form whose own pieces were tried for another one, and did not pay there, may be left without a pass: then it
    /// gets the best of them, for a graph that no pass applies to scores nothing.
    pub(crate) fn serve_the_rest(&mut self, forms: &[Form]) -> Result<(), SolveError> {
        let mut added = false;
        for form in forms {
            if self.serve_all(std::slice::from_ref(form), &self.texts())? {
                continue;
            }
            for spare in 0..self.spares.len() {
                let text = &self.spares[spare].1.written.text;
                if self.serve_all(std::slice::from_ref(form), &[text])? {
                    self.make_change(Change::Instead(spare), &BTreeSet::new())?;
                    self.explanation.wins = Some(self.explanation.wins.unwrap_or(false));
                    added = true;
                    break;
                }
            }
        }
        if added { self.check(forms) } else { Ok(()) }
    }

    /// Times a graph of every form with all passes; where it is slower than eager, looks for better ones.
    pub(crate) fn look_at_whole_graphs(&mut self, forms: &[Form]) -> Result<(), SolveError> {
        let started = Instant::now();
        let (mut changed, mut timed, mut slower) = (false, 0, 0);
        for (number, form) in forms.iter().enumerate() {
            let member = representative(form);
            let Some(mut best) = self.whole(member, &self.texts())? else { continue };
            while best < SLOWER && started.elapsed() < PATIENCE {
                let own = self.own(form)?;
                let mut found: Option<(f64, Change)> = None;
                for change in self.changes(number, &own) {
                    if started.elapsed() > PATIENCE {
                        break;
                    }
                    let passes = self.changed(&change, &own);
                    if !self.serve_all(forms, &passes)? {
                        continue;
                    }
                    let speedup = self.whole(member, &passes)?.unwrap_or(0.0);
                    if speedup > best * BETTER && found.as_ref().is_none_or(|(f, _)| speedup > *f) {
                        found = Some((speedup, change));
                    }
                }
                let Some((speedup, change)) = found else { break };
                self.make_change(change, &own)?;
                (best, changed) = (speedup, true);
            }
            timed += 1;
            slower += usize::from(best < SLOWER);
        }
        if timed > 0 && slower == timed {
            self.explanation.wins = Some(false);
        }
        if changed { self.check(forms) } else { Ok(()) }
    }

    fn texts(&self) -> Vec<&PassText> {
        self.passes.iter().map(|pass| &pass.text).collect()
    }

    /// The speed-up of a graph with these passes, zero where they are not right; nothing where eager itself does not run.
    fn whole(&self, member: &TypedGraph, passes: &[&PassText]) -> Result<Option<f64>, SolveError> {
        let Ok(files) = self.sample.graph_files(&member.path) else { return Ok(None) };
        let Some(candidate) = self.candidate(passes)? else { return Ok(None) };
        let options = quick(self.options.seconds);
        let evaluation = evaluate(self.engine, &files, Some(&candidate), &options);
        Ok(match evaluation.judged.verdict.kind {
            VerdictKind::Correct => evaluation.judged.speedup,
            VerdictKind::ReferenceFail => None,
            _ => Some(0.0),
        })
    }

    fn candidate(&self, passes: &[&PassText]) -> Result<Option<Candidate>, SolveError> {
        if passes.is_empty() {
            return Ok(None);
        }
        write_folder(self.folder, passes)?;
        Ok(Candidate::load(self.folder, None, true).ok())
    }

    /// The passes that apply to a form.
    fn own(&self, form: &Form) -> Result<BTreeSet<String>, SolveError> {
        let Some(candidate) = self.candidate(&self.texts())? else { return Ok(BTreeSet::new()) };
        let rewritten = form.members.iter().filter_map(|m| candidate.rewrite(&m.graph).ok());
        let applied = rewritten.flat_map(|rewritten| rewritten.rewrites);
        Ok(applied.filter(|rewrites| rewrites.count > 0).map(|rewrites| rewrites.pass).collect())
    }

    fn changes(&self, form: usize, own: &BTreeSet<String>) -> Vec<Change> {
        let fewer = own.iter().filter(|_| own.len() > 1).cloned().map(Change::Without);
        let spares = self.spares.iter().enumerate().filter(|(_, (of, _))| *of == form);
        fewer.chain(spares.map(|(spare, _)| Change::Instead(spare))).collect()
    }

    fn changed(&self, change: &Change, own: &BTreeSet<String>) -> Vec<&PassText> {
        let kept = self.passes.iter().filter(|pass| match change {
            Change::Without(stem) => pass.stem != *stem,
            Change::Instead(_) => !own.contains(&pass.stem),
        });
        let kept = kept.map(|pass| &pass.text);
        match change {
            Change::Without(_) => kept.collect(),
            Change::Instead(spare) => kept.chain([&self.spares[*spare].1.written.text]).collect(),
        }
    }

    /// Whether some pass applies to every graph.
    fn serve_all(&self, forms: &[Form], passes: &[&PassText]) -> Result<bool, SolveError> {
        let Some(candidate) = self.candidate(passes)? else { return Ok(false) };
        let served = |member: &TypedGraph| {
            candidate
                .rewrite(&member.graph)
                .is_ok_and(|rewritten| rewritten.rewrites.iter().any(|r| r.count > 0))
        };
        Ok(forms.iter().flat_map(|form| &form.members).all(served))
    }

    fn make_change(&mut self, change: Change, own: &BTreeSet<String>) -> Result<(), SolveError> {
        let gone: Vec<String> = match &change {
            Change::Without(stem) => vec![stem.clone()],
            Change::Instead(_) => own.iter().cloned().collect(),
        };
        for stem in gone {
            self.passes.retain(|pass| pass.stem != stem);
            self.drop_written(&stem, "the whole graph is slower with it")?;
        }
        if let Change::Instead(spare) = change {
            let (_, made) = self.spares.remove(spare);
            self.explanation.dropped.retain(|dropped| dropped.name != made.written.stem);
            self.add(made);
        }
        Ok(())
    }
}

/// The graph of a form that is neither too small to time nor too large to repeat.
fn representative(form: &Form) -> &TypedGraph {
    let distance = |member: &&TypedGraph| {
        let elements = |meta: &passnet_graph::TensorMeta| meta.shape.iter().product::<i64>();
        let most = member.metas.iter().map(elements).max().unwrap_or(0).max(1);
        ((most as f64 / WANTED_ELEMENTS).ln().abs() * 1e6) as i64
    };
    form.members.iter().min_by_key(distance).unwrap_or(&form.members[0])
}
