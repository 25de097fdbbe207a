//! Models as units: `passnet extract --cluster` and `passnet dataset build --cluster`.

use super::shared::{Order, Shared};
use super::unit_worker::UnitWorker;
use super::{ClusterArgs, Kind};
use crate::commands::extract::listing::{Entry, entries};
use crate::commands::extract::python::Server;
use crate::commands::extract::{CaptureArgs, Chosen, RESULTS, Record, SAMPLES, records};
use crate::error::CommandError;
use crate::interrupt;
use passnet_cluster::bundle::{Packer, unpack};
use passnet_cluster::{Answer, Aside, End, Hello, Input, Job, News};
use passnet_engine::Identity;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Source of a model that the user's own file makes.
const FILE: &str = "file";
const FACTORY: &str = "factory";
/// Python files beside the user's own that travel with it, in bytes.
const MAX_OWN_BYTES: u64 = 16 << 20;

/// Captures models on the nodes of a cluster. What was done is in `results.jsonl`, as from one machine.
pub fn capture(chosen: Chosen<'_>, out: &Path, args: &CaptureArgs) -> Result<(), CommandError> {
    let cluster: &ClusterArgs = &args.cluster;
    let entries = entries(chosen, args)?;
    interrupt::finish_first("the same command goes on: what is captured stays captured");
    let settings = format!("{:?}", args.choices());
    let device = cluster.cluster_device.as_deref();
    let mut job = ExtractJob {
        shared: Shared::open(out, "extract", settings, device, false)?,
        known: records(out)?,
        order: Order::of(entries.len()),
        entries,
        out: out.to_path_buf(),
        retry_failed: args.retry_failed,
        lines: Vec::new(),
    };
    let driven = cluster.drive(Kind::Free, &mut job)?;
    let aside = job.shared.aside;
    match (aside.is_empty(), driven.end) {
        (true, _) | (_, End::Stopped) => Ok(()),
        (false, _) => Err(CommandError::Lacking {
            message: format!("{} models were set aside (see above)", aside.len()),
            hint: "the others are there; the same command tries these again".into(),
        }),
    }
}

struct ExtractJob {
    shared: Shared,
    known: BTreeMap<String, Record>,
    entries: Vec<Entry>,
    out: PathBuf,
    order: Order,
    retry_failed: bool,
    /// Records that are not on the disk yet.
    lines: Vec<u8>,
}

impl ExtractJob {
    fn is_done(&self, entry: &Entry) -> bool {
        let record = self.known.get(&entry.id());
        record.is_some_and(|record| record.is_captured() || !self.retry_failed)
    }

    /// Takes a model's folder and record.
    fn take(&mut self, id: &str, files: &[u8]) -> Result<Result<(), String>, CommandError> {
        let folder = tempfile::tempdir_in(&self.out)?;
        if let Err(error) = unpack(files, folder.path()) {
            return Ok(Err(error.to_string()));
        }
        let line = std::fs::read(folder.path().join(RESULTS)).unwrap_or_default();
        let record = serde_json::from_slice::<Record>(&line).ok().filter(|record| record.id == id);
        let Some(record) = record else { return Ok(Err("it gave no record of the model".into())) };
        let (found, place) =
            (folder.path().join(SAMPLES).join(id), self.out.join(SAMPLES).join(id));
        if record.is_captured() != found.is_dir() {
            return Ok(Err("its record and its graphs do not fit".into()));
        }
        // Left by a driver that died before it wrote the record.
        if place.exists() {
            std::fs::remove_dir_all(&place)?;
        }
        if record.is_captured() {
            if let Some(above) = place.parent() {
                std::fs::create_dir_all(above)?;
            }
            std::fs::rename(&found, &place)?;
        }
        self.lines.extend(line);
        Ok(Ok(()))
    }
}

impl Job for ExtractJob {
    type Unit = usize;
    type Error = CommandError;

    fn next(&mut self) -> Option<usize> {
        let mut order = self.order;
        let found = order.next(|place| self.is_done(&self.entries[place]));
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
        let mut entry = self.entries[*unit].clone();
        let mut packer = Packer::default();
        if entry.source == FILE
            && let Some((path, factory)) =
                entry.options.get(FACTORY).and_then(Value::as_str).and_then(|s| s.rsplit_once(':'))
        {
            let name = pack_own(&mut packer, Path::new(path))?;
            let factory = format!("{name}:{factory}");
            entry.options.insert(FACTORY.into(), factory.into());
        }
        Ok(Input::new(packer.finish()?, json!({ "entry": entry })))
    }

    fn admit(&mut self, hello: &Hello) -> Result<(), String> {
        self.shared.admit(hello)
    }

    fn accept(
        &mut self,
        unit: &usize,
        answer: &Answer<'_>,
    ) -> Result<Result<(), String>, CommandError> {
        let id = self.entries[*unit].id();
        let taken = self.take(&id, answer.files)?;
        if taken.is_ok() {
            self.shared.done(&id, answer);
        }
        Ok(taken)
    }

    fn commit(&mut self) -> Result<(), CommandError> {
        if !self.lines.is_empty() {
            let path = self.out.join(RESULTS);
            let mut file = OpenOptions::new().create(true).append(true).open(path)?;
            file.write_all(&self.lines).and_then(|()| file.sync_data())?;
            self.lines.clear();
        }
        Ok(self.shared.journal.commit()?)
    }

    fn set_aside(&mut self, aside: Aside<usize>) -> Result<(), CommandError> {
        let unit = self.entries[aside.unit].id();
        self.shared.set_aside(Aside { unit, reasons: aside.reasons })
    }

    fn is_stopped(&self) -> bool {
        self.shared.is_stopped()
    }

    fn news(&mut self, news: News<'_>) {
        self.shared.news(news);
    }
}

/// The user's file and the Python files beside it, which it may import; gives its name in the input.
fn pack_own(packer: &mut Packer, path: &Path) -> Result<String, CommandError> {
    let named = |error: std::io::Error| CommandError::input(format!("{}: {error}", path.display()));
    let own = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_string();
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut left = MAX_OWN_BYTES;
    let items = std::fs::read_dir(folder.unwrap_or(Path::new("."))).map_err(named)?;
    let mut items = items.collect::<std::io::Result<Vec<_>>>().map_err(named)?;
    items.sort_by_key(std::fs::DirEntry::file_name);
    for item in items {
        let name = item.file_name().to_string_lossy().into_owned();
        let size = item.metadata().map_or(0, |about| about.len());
        let is_wanted = name == own || size <= left;
        if name.ends_with(".py") && item.path().is_file() && is_wanted {
            left = left.saturating_sub(size);
            packer.file(&name, &std::fs::read(item.path()).map_err(named)?).map_err(named)?;
        }
    }
    Ok(own)
}

/// Captures models for a driver elsewhere.
struct ExtractWorker {
    server: Server,
    torch: String,
}

pub(super) fn worker(args: &CaptureArgs) -> Result<Box<dyn UnitWorker>, CommandError> {
    let (server, torch) = Server::start(args)?;
    Ok(Box::new(ExtractWorker { server, torch }))
}

impl UnitWorker for ExtractWorker {
    /// Graphs do not depend on the processor.
    fn identity(&self) -> Identity {
        let here = Identity::here("extractor");
        Identity {
            torch: Some(self.torch.clone()),
            processor: "any".into(),
            cores: 1,
            device: Default::default(),
            ..here
        }
    }

    fn perform(&mut self, words: &Value, input: &Path, out: &Path) -> Result<Value, String> {
        let mut entry = words["entry"].clone();
        if entry["source"] == FILE
            && let Some(factory) = entry["options"][FACTORY].as_str()
        {
            // The extractor is a process that is elsewhere.
            let input = std::path::absolute(input).map_err(|error| error.to_string())?;
            entry["options"][FACTORY] = format!("{}/{factory}", input.display()).into();
        }
        self.server.capture(&entry, out)?;
        Ok(Value::Null)
    }
}
