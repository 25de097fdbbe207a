//! Results of workers on their way into the run of the driver.

use crate::error::CommandError;
use passnet_bench::bench::{Judged, NotJudged};
use passnet_bench::run::merge::{MergeError, difference, read_objects};
use passnet_bench::run::{Event, GraphEvent, GraphId, RunStore, Start, read_sealed};
use passnet_bench::sample::Sample;
use passnet_bench::stop;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// A run that is written from results of others.
#[derive(Debug)]
pub(super) struct Results {
    store: RunStore,
    /// What all results have in common; the largest noise of any worker is that of the run.
    start: Option<Start>,
    waiting: Vec<Event>,
    /// Texts of the results that wait.
    texts: Vec<Vec<u8>>,
}

impl Results {
    pub(super) fn open(folder: &Path, retry_failed: bool) -> Result<Results, CommandError> {
        let mut store = RunStore::open(folder)?;
        if retry_failed {
            store.forget_failures();
        }
        Ok(Results { store, start: None, waiting: Vec::new(), texts: Vec::new() })
    }

    /// Takes what a worker found about a sample. The inner error says why it is no result.
    pub(super) fn take(
        &mut self,
        found: &Path,
        sample: &Sample,
    ) -> Result<Result<(), String>, CommandError> {
        let (start, graphs) = match read(found, sample) {
            Ok(read) => read,
            Err(reason) => return Ok(Err(reason)),
        };
        if let Some(reason) = self.begin(start) {
            return Ok(Err(reason));
        }
        let floor = self.start.as_ref().map_or(0.0, |start| start.options.noise_floor);
        let (mut taken, mut texts) = (Vec::new(), Vec::new());
        for mut graph in graphs {
            match read_objects(found, &graph) {
                Ok(read) => texts.extend(read),
                Err(MergeError::Log(error)) => return Err(error.into()),
                Err(MergeError::Unlike(reason)) => return Ok(Err(reason)),
            }
            graph.folder = sample.path.display().to_string();
            // A unit may be done a second time, after a driver's death; the first result stays.
            if !self.store.is_latest(&graph) {
                taken.push(Event::Graph(Box::new(graph.under(floor))));
            }
        }
        self.waiting.extend(taken);
        self.texts.extend(texts);
        Ok(Ok(()))
    }

    /// Goes on under the conditions of a worker, or says why they are others. Times are those of the driver's clock.
    fn begin(&mut self, mut start: Start) -> Option<String> {
        let floor = self.start.as_ref().map(|before| before.options.noise_floor);
        if let Some(before) = &self.start
            && let Some(found) = difference(before, &start)
        {
            return Some(found);
        }
        if floor.is_none_or(|floor| start.options.noise_floor > floor) {
            start.time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
            self.waiting.push(Event::Start(Box::new(start.clone())));
            self.start = Some(start);
        }
        None
    }

    /// Writes what was taken; texts first, so that no event names one that is not there.
    pub(super) fn commit(&mut self) -> Result<(), CommandError> {
        for text in self.texts.drain(..) {
            self.store.keep(&text)?;
        }
        if !self.waiting.is_empty() {
            self.store.append_all(&self.waiting)?;
            self.waiting.clear();
        }
        Ok(())
    }

    /// The results of all samples, in their order; `aside` says why a sample has none.
    pub(super) fn judged(
        &self,
        samples: &[(Sample, String)],
        aside: &BTreeMap<String, String>,
    ) -> Judged {
        let mut judged = Judged::default();
        for (sample, label) in samples {
            let mut found = Judged::default();
            for graph in &sample.graphs {
                let place = GraphId {
                    sample: sample.name.clone(),
                    folder: sample.path.display().to_string(),
                    graph: graph.clone(),
                };
                match self.store.latest(&place) {
                    Some(event) => found.events.push(event.clone()),
                    None => found.not_judged.push(NotJudged {
                        sample: sample.name.clone(),
                        graph: graph.clone(),
                        reason: aside.get(label).map_or(stop::REASON, |reason| reason).into(),
                    }),
                }
            }
            judged.extend(found.named(label));
        }
        judged
    }

    /// Writes the end, where all is judged, and gives what all results have in common.
    pub(super) fn finish(
        mut self,
        judged: &Judged,
        folder: &Path,
    ) -> Result<Option<Start>, CommandError> {
        if judged.not_judged.is_empty() {
            self.store.append(&Event::End { graphs: judged.events.len() })?;
        }
        drop(self.store);
        if self.start.is_some() {
            return Ok(self.start);
        }
        let starts = passnet_bench::run::read(folder)?.into_iter().rev();
        Ok(starts
            .filter_map(|event| if let Event::Start(start) = event { Some(*start) } else { None })
            .next())
    }
}

/// The conditions and results of a worker's run.
fn read(found: &Path, sample: &Sample) -> Result<(Start, Vec<GraphEvent>), String> {
    let (events, seal) = read_sealed(found).map_err(|error| error.to_string())?;
    if !seal.is_whole() {
        return Err("its results were changed on their way".into());
    }
    let (mut start, mut graphs) = (None, Vec::new());
    for (_, event) in events {
        match event {
            Event::Start(begun) => start = Some(*begun),
            Event::Graph(graph) => graphs.push(*graph),
            Event::End { .. } => {}
        }
    }
    let names = graphs.iter().map(|graph: &GraphEvent| &graph.evaluation.judged.graph);
    match start {
        Some(start) if names.eq(&sample.graphs) => Ok((start, graphs)),
        _ => Err("its results are not those of the task".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use passnet_bench::evaluate::EvaluateOptions;
    use passnet_bench::run::{FORMAT, Machine};

    fn start(noise_floor: f64, time: u64) -> Start {
        Start {
            format: FORMAT,
            version: "1".into(),
            engine: "native".into(),
            compiler: "pass".into(),
            options: EvaluateOptions { noise_floor, ..EvaluateOptions::default() },
            rules: Some(true),
            machine: Machine::this(),
            identity: None,
            time,
        }
    }

    /// A worker's clock may say anything: the run has the driver's, once for every floor that is higher.
    #[test]
    fn times_are_those_of_the_driver_and_the_noise_is_the_largest() {
        const NEVER: u64 = u64::MAX / 2;
        let folder = tempfile::tempdir().unwrap();
        let mut results = Results::open(folder.path(), false).unwrap();
        for (noise, time) in [(0.01, NEVER), (0.03, 0), (0.02, NEVER)] {
            assert_eq!(results.begin(start(noise, time)), None);
        }
        let other = Start { engine: "torch".into(), ..start(0.01, 0) };
        assert!(results.begin(other).unwrap().contains("native"), "both sides are named");
        results.commit().unwrap();
        let events = passnet_bench::run::read(folder.path()).unwrap();
        let starts: Vec<(f64, bool)> = events
            .iter()
            .filter_map(|event| match event {
                Event::Start(s) => Some((s.options.noise_floor, matches!(s.time, 0 | NEVER))),
                _ => None,
            })
            .collect();
        assert_eq!(starts, [(0.01, false), (0.03, false)]);
    }
}
