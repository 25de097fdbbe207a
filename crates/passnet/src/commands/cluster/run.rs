//! Results of workers on their way into the run of the driver.

use crate::error::CommandError;
use passnet_bench::bench::{Judged, NotJudged};
use passnet_bench::run::merge::{MergeError, copy_objects, difference};
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
}

impl Results {
    pub(super) fn open(folder: &Path, retry_failed: bool) -> Result<Results, CommandError> {
        let mut store = RunStore::open(folder)?;
        if retry_failed {
            store.forget_failures();
        }
        Ok(Results { store, start: None, waiting: Vec::new() })
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
        let mut taken = Vec::new();
        for mut graph in graphs {
            match copy_objects(found, &graph, &self.store) {
                Ok(()) => {}
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

    pub(super) fn commit(&mut self) -> Result<(), CommandError> {
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
