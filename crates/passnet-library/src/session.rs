//! Questions of a process with PyTorch in it, and their answers: which regions of a graph passes replace, and the launch
//! plans of the replaced ones.
//!
//! The process asks through a pipe and never sees a pass: it gets names of its own nodes, and plans. That keeps the parser,
//! the matcher and whatever a hostile pass could do to them out of the program that holds the model, one resident process
//! serves all graphs of a program with one library in memory, and the way is the one that PassBench's worker goes.

use crate::entry::Standing;
use crate::folder::Library;
use crate::judge::judge;
use crate::page::page;
use crate::shelf::{Rewritten, Shelf, Site, Trust, Wanted, is_item};
use passnet_bench::evaluate::EvaluateOptions;
use passnet_engine::Engine;
use passnet_engine::Identity;
use passnet_engine::identity::DeviceIdentity;
use passnet_engine::sandbox::Sandbox;
use passnet_engine::torch::PlanMaker;
use passnet_engine::torch::compile::Compiler;
use passnet_engine::torch::frames::Frame;
use passnet_graph::graph::effects::Effects;
use passnet_graph::read::read_model;
use passnet_graph::syntax::Source;
use passnet_graph::{Arg, Graph};
use serde_json::{Map, Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// Changes whenever the meaning of a message does.
pub const VERSION: u32 = 1;
/// Graphs that are answered for at a time; those that were asked about first go.
const MAX_GRAPHS: usize = 4096;

/// Starts the engine that judges on a kind of device.
pub type StartEngine = dyn Fn(&str) -> Result<Box<dyn Engine>, String>;

/// What a session works with.
pub struct SessionOptions {
    /// A Python with Triton, which compiles kernels.
    pub python: PathBuf,
    /// Where compiled kernels are kept.
    pub cache: PathBuf,
    /// The native library that replays plans.
    pub runner: Option<PathBuf>,
    /// For passes that are judged while the program waits.
    pub start_engine: Box<StartEngine>,
}

impl fmt::Debug for SessionOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionOptions").field("python", &self.python).finish_non_exhaustive()
    }
}

/// The answers to one process.
#[derive(Debug)]
pub struct Session {
    options: SessionOptions,
    shelves: BTreeMap<PathBuf, (Option<SystemTime>, Shelf)>,
    compilers: BTreeMap<[u32; 2], Arc<Compiler>>,
    engines: BTreeMap<String, Box<dyn Engine>>,
    graphs: BTreeMap<u64, PlanMaker>,
    next: u64,
}

impl Session {
    /// Libraries are read when a question first names them.
    pub fn new(options: SessionOptions) -> Session {
        Session {
            options,
            shelves: BTreeMap::new(),
            compilers: BTreeMap::new(),
            engines: BTreeMap::new(),
            graphs: BTreeMap::new(),
            next: 0,
        }
    }

    /// The message and the raw bytes that answer a question.
    pub fn answer(&mut self, question: &Frame) -> (Json, Vec<Vec<u8>>) {
        if let Some(wanted) = question.message.get("plan") {
            let maker = wanted.get("graph").and_then(Json::as_u64);
            return match maker.and_then(|id| self.graphs.get_mut(&id)) {
                Some(maker) => maker.answer(question),
                None => (json!({ "error": "there is no such graph", "kind": "error" }), Vec::new()),
            };
        }
        let answer = match question.message.get("call").and_then(Json::as_str) {
            Some("hello") => Ok(self.hello()),
            Some("match") => self.find(&question.message),
            Some("drop") => Ok(self.drop_graph(&question.message)),
            Some("page") => drawn(&question.message),
            other => Err(format!("there is no call {other:?}")),
        };
        let mut answer = answer.unwrap_or_else(|message| json!({ "error": message }));
        answer["id"] = question.message.get("id").cloned().unwrap_or_default();
        (answer, Vec::new())
    }

    fn hello(&self) -> Json {
        let runner = self.options.runner.as_ref().map(|path| path.display().to_string());
        json!({ "version": VERSION, "runner": runner, "identity": Identity::here("torch") })
    }

    fn drop_graph(&mut self, message: &Map<String, Json>) -> Json {
        let id = message.get("graph").and_then(Json::as_u64);
        json!({ "dropped": id.and_then(|id| self.graphs.remove(&id)).is_some() })
    }

    fn find(&mut self, message: &Map<String, Json>) -> Result<Json, String> {
        let text = |key: &str| {
            message.get(key).and_then(Json::as_str).ok_or_else(|| format!("`{key}` is missing"))
        };
        let source = Source::new("graph", text("text")?);
        let graph = read_model(&source).map_err(|error| error.to_string())?;
        let trust = text("trust")?;
        let trust = Trust::from_name(trust)
            .ok_or_else(|| format!("there is no trust `{trust}`: {}", Trust::NAMES.join(", ")))?;
        let device = device_of(message.get("device"))?;
        let names = message.get("without").and_then(Json::as_array);
        let names = names.into_iter().flatten().filter_map(|name| Some(name.as_str()?.to_string()));
        let without: BTreeSet<String> = names.collect();
        let wanted = Wanted { trust, device: &device, without: &without };
        let folder = PathBuf::from(text("library")?);
        self.open(&folder)?;
        let mut notes = Vec::new();
        if trust == Trust::Judged {
            notes = self.judge_unknown(&folder, &graph, &wanted);
        }
        let shelf = self.shelf(&folder)?;
        let rewritten = shelf.rewrite(&graph, &wanted);
        notes.extend(shelf.damaged.iter().cloned());
        let (entries, id) = (shelf.len(), self.next);
        self.next += 1;
        let replaced: Vec<_> =
            rewritten.sites.iter().map(|site| site.replacement.clone()).collect();
        let compiler = match (replaced.is_empty(), device.capability) {
            (false, Some(capability)) => Some(self.compiler(capability)?),
            _ => None,
        };
        let maker = PlanMaker::of_plans(&replaced, &rewritten.wrappers, compiler)
            .map_err(|error| error.to_string())?;
        if !replaced.is_empty() {
            self.graphs.insert(id, maker);
            while self.graphs.len() > MAX_GRAPHS {
                self.graphs.pop_first();
            }
        }
        let passed_over = rewritten.passed_over.iter();
        let passed_over = passed_over.map(|(pass, why)| json!({ "pass": pass, "reason": why }));
        Ok(json!({
            "graph": id,
            "sites": rewritten.sites.iter().map(described).collect::<Vec<_>>(),
            "order": order_of(&rewritten),
            "passed_over": passed_over.collect::<Vec<_>>(),
            "writes_inputs": Effects::of(&graph).write_inputs(&graph),
            "searched": rewritten.searched,
            "entries": entries,
            "notes": notes,
        }))
    }

    /// Reads the library, or reads it again where entries came or went.
    fn open(&mut self, folder: &Path) -> Result<(), String> {
        let changed = std::fs::metadata(folder).and_then(|about| about.modified()).ok();
        if self.shelves.get(folder).is_some_and(|(known, _)| *known == changed && known.is_some()) {
            return Ok(());
        }
        let shelf = Shelf::open(Library::at(folder)).map_err(|error| error.to_string())?;
        self.shelves.insert(folder.to_path_buf(), (changed, shelf));
        Ok(())
    }

    fn shelf(&mut self, folder: &Path) -> Result<&mut Shelf, String> {
        let shelf = self.shelves.get_mut(folder).map(|(_, shelf)| shelf);
        shelf.ok_or_else(|| format!("{}: the library is not open", folder.display()))
    }

    /// Judges the passes that match and of which nothing is known on the device; says what became of them.
    fn judge_unknown(&mut self, folder: &Path, graph: &Graph, wanted: &Wanted<'_>) -> Vec<String> {
        let unknown = match self.shelf(folder) {
            Ok(shelf) => shelf.unjudged(graph, wanted),
            Err(error) => return vec![error],
        };
        let mut notes = Vec::new();
        for name in unknown {
            match self.judge_one(folder, &name, wanted.device) {
                Ok(standing) => notes.push(format!("{name}: judged before first use: {standing}")),
                Err(error) => notes.push(format!("{name}: not used: {error}")),
            }
        }
        notes
    }

    fn judge_one(
        &mut self,
        folder: &Path,
        name: &str,
        device: &DeviceIdentity,
    ) -> Result<String, String> {
        let library = Library::at(folder);
        if library.graphs(name).is_none() {
            let text = "nothing is known of it on this device, and no graphs are kept with it to judge it on";
            return Err(text.into());
        }
        if !self.engines.contains_key(&device.kind) {
            let engine = (self.options.start_engine)(&device.kind)?;
            self.engines.insert(device.kind.clone(), engine);
        }
        let engine = self.engines.get(&device.kind).ok_or("there is no engine")?;
        let evidence = judge(&library, name, &**engine, &EvaluateOptions::default())?;
        let entry = library.learn(name, &evidence)?;
        let standing = match entry.standing(device) {
            Standing::Correct { speedup: Some(speedup) } => format!("correct, {speedup:.2}x"),
            Standing::Correct { speedup: None } => "correct".into(),
            Standing::Unknown => "nothing was found out".into(),
            Standing::Wrong { graph, verdict } => format!("{verdict} on {graph}"),
        };
        self.shelf(folder)?.learned(name, entry);
        Ok(standing)
    }

    fn compiler(&mut self, [major, minor]: [u32; 2]) -> Result<Arc<Compiler>, String> {
        if let Some(known) = self.compilers.get(&[major, minor]) {
            return Ok(known.clone());
        }
        let sandbox = Sandbox::strongest()
            .map_err(|refusal| format!("kernels are compiled in a sandbox only: {refusal}"))?;
        let SessionOptions { python, cache, .. } = &self.options;
        let compiler = Compiler::new(python.clone(), cache.clone(), sandbox);
        let compiler = Arc::new(compiler.with_capability(major, minor));
        self.compilers.insert([major, minor], compiler.clone());
        Ok(compiler)
    }
}

/// What the process reports, as a page.
fn drawn(message: &Map<String, Json>) -> Result<Json, String> {
    let title = message.get("title").and_then(Json::as_str).unwrap_or("PassNet");
    let report = message.get("report").ok_or("`report` is missing")?;
    Ok(json!({ "page": page(title, report)? }))
}

/// Where the process computes. Of its processor we know more than it does.
fn device_of(described: Option<&Json>) -> Result<DeviceIdentity, String> {
    let text = |key: &str| {
        let text = described.and_then(|device| device.get(key)).and_then(Json::as_str);
        text.map(str::to_string).ok_or_else(|| format!("`device` has no `{key}`"))
    };
    let kind = text("kind")?;
    if kind == "cpu" {
        return Ok(Identity::here("torch").device);
    }
    let capability = described.and_then(|device| device.get("capability"));
    let capability = capability.cloned().map(serde_json::from_value::<[u32; 2]>);
    let capability = capability.transpose().map_err(|error| format!("`capability`: {error}"))?;
    let capability = Some(capability.ok_or("`device` has no `capability`")?);
    Ok(DeviceIdentity { kind, name: text("name")?, driver: None, capability })
}

fn described(site: &Site) -> Json {
    json!({
        "pass": site.pass,
        "removed": site.removed,
        "outputs": site.outputs,
        "writes": site.replacement.writes,
        "dead": site.replacement.dead,
        "gives_tuple": site.replacement.gives_tuple,
        "speedup": site.speedup,
    })
}

/// The calls of the rewritten graph in order: nodes of the program by name, replaced regions with their arguments, and
/// the single values of those that give several.
fn order_of(rewritten: &Rewritten) -> Vec<Json> {
    let Rewritten { graph, sites, .. } = rewritten;
    let site_of = |name: &str| sites.iter().position(|site| site.node == name);
    let mut order = Vec::new();
    for (id, call) in graph.calls() {
        let name = &graph.node(id).name;
        let own_item = is_item(graph, call).and_then(|(from, index)| {
            let site = site_of(&graph.node(from).name)?;
            let outputs = &sites[site].outputs;
            let is_own = outputs.len() > 1 && outputs.get(index).is_some_and(|it| **it == **name);
            is_own.then_some((site, index))
        });
        order.push(match (call.target.replacement(), own_item) {
            (Some(_), _) => {
                let args: Vec<Json> = call.args.iter().map(|arg| argument(graph, arg)).collect();
                json!({ "site": site_of(name), "args": args })
            }
            (None, Some((site, index))) => json!({ "item": [site, index] }),
            (None, None) => json!({ "node": name }),
        });
    }
    order
}

/// An argument of a wrapper; [`Shelf`] lets no other kind through.
fn argument(graph: &Graph, arg: &Arg) -> Json {
    match arg {
        Arg::Node(id) => json!({ "node": graph.node(*id).name }),
        Arg::Bool(value) => json!({ "value": value }),
        Arg::Int(value) => json!({ "value": value }),
        // JSON has no word for what is not finite.
        Arg::Float(value) => json!({ "float": format!("{value:?}") }),
        Arg::Str(text) => json!({ "value": text }),
        Arg::Tuple(items) | Arg::List(items) => {
            json!({ "items": items.iter().map(|item| argument(graph, item)).collect::<Vec<_>>() })
        }
        _ => json!({ "value": null }),
    }
}
