//! Tasks as units: `passnet bench --cluster` and `passnet solve --cluster`.

use super::input::pack_task;
use super::run::Results;
use super::scratch;
use super::shared::{Order, Shared};
use super::{ClusterArgs, Kind};
use crate::error::CommandError;
use passnet_bench::bench::Judged;
use passnet_bench::run::Start;
use passnet_bench::sample::Sample;
use passnet_bench::shard::copy_folder;
use passnet_cluster::bundle::unpack;
use passnet_cluster::{Answer, Aside, Hello, Input, Job, News, Status};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// In what a worker's folder holds the run and the passes of a task that was solved.
pub(super) const RUN: &str = "run";
pub(super) const PASSES: &str = "passes";

/// What is done with tasks, and where.
#[derive(Debug)]
pub struct Asked<'a> {
    pub command: &'static str,
    pub cluster: &'a ClusterArgs,
    pub kind: Kind,
    /// Of the journal.
    pub folder: &'a Path,
    /// Of the results; `None` where nothing is judged.
    pub run: Option<&'a Path>,
    /// Tasks as they are judged, with the names that tell them apart.
    pub tasks: Vec<(Sample, String)>,
    /// The same with all graphs, where workers need more than they judge.
    pub whole: Vec<Sample>,
    /// The passes of each; none where workers write them.
    pub passes: Vec<PathBuf>,
    /// Where passes go that workers write.
    pub solved: Option<PathBuf>,
    /// What results depend on besides tasks and passes.
    pub settings: String,
    pub retry_failed: bool,
    pub is_json: bool,
}

/// What came of it.
#[derive(Debug)]
pub struct Found {
    pub judged: Judged,
    /// What results have in common; missing where nothing was judged.
    pub start: Option<Start>,
    /// What workers said of tasks, by name.
    pub words: BTreeMap<String, Value>,
    pub aside: BTreeMap<String, String>,
    pub status: Status,
}

/// Works on tasks on the nodes of a cluster.
pub fn work(asked: Asked<'_>) -> Result<Found, CommandError> {
    let Asked { command, cluster, kind, folder, run, settings, retry_failed, .. } = asked;
    let device = cluster.cluster_device.as_deref();
    let mut job = TaskJob {
        shared: Shared::open(folder, command, settings, device, asked.is_json)?,
        results: run.map(|run| Results::open(run, retry_failed)).transpose()?,
        order: Order::of(asked.tasks.len()),
        tasks: asked.tasks,
        whole: asked.whole,
        passes: asked.passes,
        solved: asked.solved,
        retry_failed,
    };
    let driven = cluster.drive(kind, &mut job)?;
    let (mut judged, mut start) = (Judged::default(), None);
    if let Some((results, run)) = job.results.zip(run) {
        judged = results.judged(&job.tasks, &job.shared.aside);
        start = results.finish(&judged, run)?;
    }
    let Shared { journal, aside, .. } = job.shared;
    Ok(Found { judged, start, words: journal.into_words(), aside, status: driven.status })
}

struct TaskJob {
    shared: Shared,
    results: Option<Results>,
    tasks: Vec<(Sample, String)>,
    whole: Vec<Sample>,
    passes: Vec<PathBuf>,
    solved: Option<PathBuf>,
    order: Order,
    retry_failed: bool,
}

impl TaskJob {
    fn pack(&self, place: usize) -> Result<Input, CommandError> {
        let passes = self.passes.get(place).map(PathBuf::as_path);
        let sample = self.whole.get(place).unwrap_or(&self.tasks[place].0);
        Ok(Input::new(pack_task(sample, passes)?, Value::Null))
    }

    /// Whether the results of a task are there already.
    fn is_done(&self, place: usize) -> bool {
        if let (Some(results), true) = (&self.results, self.retry_failed) {
            let one = std::slice::from_ref(&self.tasks[place]);
            return results.judged(one, &self.shared.aside).not_judged.is_empty();
        }
        let Ok(input) = self.pack(place) else { return false };
        let key = self.shared.input_key(&input.digest);
        self.shared.journal.is_done(&self.tasks[place].1, &key)
    }

    /// Takes the files of a result; the inner error says why they are none.
    fn take(&mut self, place: usize, files: &[u8]) -> Result<Result<(), String>, CommandError> {
        let (sample, label) = &self.tasks[place];
        let folder = scratch::folder()?;
        if let Err(error) = unpack(files, folder.path()) {
            return Ok(Err(error.to_string()));
        }
        if let Some(results) = &mut self.results {
            let run = folder.path().join(RUN);
            if let Err(reason) = results.take(&run, sample)? {
                return Ok(Err(reason));
            }
        }
        let written = folder.path().join(PASSES);
        if let Some(solved) = self.solved.as_ref().filter(|_| written.is_dir()) {
            let (place, fresh) = (solved.join(label), solved.join(format!("{label}.partial")));
            for old in [&fresh, &place] {
                if old.exists() {
                    std::fs::remove_dir_all(old)?;
                }
            }
            copy_folder(&written, &fresh)?;
            std::fs::rename(&fresh, &place)?;
        }
        Ok(Ok(()))
    }
}

impl Job for TaskJob {
    type Unit = usize;
    type Error = CommandError;

    fn next(&mut self) -> Option<usize> {
        let mut order = self.order;
        let found = order.next(|place| self.is_done(place));
        self.order = order;
        found
    }

    fn is_over(&self) -> bool {
        self.order.is_over()
    }

    fn total(&self) -> (Option<u64>, u64) {
        self.order.total()
    }

    fn input(&mut self, unit: &usize) -> Result<Input, CommandError> {
        self.pack(*unit)
    }

    fn admit(&mut self, hello: &Hello) -> Result<(), String> {
        self.shared.admit(hello)
    }

    fn accept(
        &mut self,
        unit: &usize,
        answer: &Answer<'_>,
    ) -> Result<Result<(), String>, CommandError> {
        let taken = self.take(*unit, answer.files)?;
        if taken.is_ok() {
            self.shared.done(&self.tasks[*unit].1, answer);
        }
        Ok(taken)
    }

    fn commit(&mut self) -> Result<(), CommandError> {
        if let Some(results) = &mut self.results {
            results.commit()?;
        }
        Ok(self.shared.journal.commit()?)
    }

    fn set_aside(&mut self, aside: Aside<usize>) -> Result<(), CommandError> {
        let unit = self.tasks[aside.unit].1.clone();
        self.shared.set_aside(Aside { unit, reasons: aside.reasons })
    }

    fn is_stopped(&self) -> bool {
        self.shared.is_stopped()
    }

    fn news(&mut self, news: News<'_>) {
        self.shared.news(news);
    }
}
