//! `passnet reference test-compiler`

use super::config::Config;
use super::custom;
use crate::commands::bench::has_compiler;
use crate::commands::engine::{self, EngineArgs};
use crate::error::{CommandError, Outcome};
use crate::output::{Output, warn, warn_located};
use clap::Args;
use passnet_bench::bench::Bench;
use passnet_bench::evaluate::EvaluateOptions;
use passnet_bench::log::GraphList;
use passnet_bench::reference_format::graph_lines;
use passnet_bench::run::{Event, GraphEvent, Start};
use passnet_bench::sample::Sample;
use passnet_bench::subject::Subject;
use passnet_bench::timing::TimingOptions;
use passnet_engine::{Engine, EngineChoice, EngineName, GraphCompiler, InductorMode};
use passnet_graph::{Diagnostic, FileName};
use passnet_pass::load::{LoadOptions, load};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// What lines of the log begin with.
const PROMPT: &str = "graph-net-test-compiler-log";
/// Folders are searched for graphs this deep.
const MAX_DEPTH: usize = 32;

#[derive(Debug, Args)]
pub struct TestCompilerArgs {
    /// A graph folder, or a tree of them: every folder with `graph_net.json` and `model.py`
    #[arg(long, value_name = "DIR", required_unless_present = "model_path_prefix")]
    model_path: Option<PathBuf>,

    /// The folder that the paths of the list begin at
    #[arg(long, value_name = "DIR", requires = "allow_list")]
    model_path_prefix: Option<PathBuf>,

    /// The graphs to evaluate, one path a line
    #[arg(long, value_name = "FILE")]
    allow_list: Option<PathBuf>,

    /// What is compared with eager: `pass_mgr` (or `pass_mgr_direct`), `inductor`, `nope`
    #[arg(long, default_value = "inductor", value_parser = ["pass_mgr", "pass_mgr_direct", "inductor", "nope"])]
    compiler: String,

    /// Calls of each side before timing
    #[arg(long, default_value_t = 3, value_name = "N")]
    warmup: usize,

    /// Timed calls of each side; more where the result is not clear yet
    #[arg(long, default_value_t = 5, value_name = "N")]
    trials: usize,

    /// What lines of the log begin with
    #[arg(long, default_value = PROMPT, value_name = "TEXT")]
    log_prompt: String,

    /// A JSON object in base64: where passes are
    #[arg(long, value_name = "BASE64")]
    config: Option<String>,

    /// Seconds of timing for one graph, about
    #[arg(long, default_value_t = 0.4, value_name = "S")]
    seconds: f64,

    /// Only what the reference asks: no extreme inputs, no watched kernels
    #[arg(long)]
    quick: bool,

    #[command(flatten)]
    engine: EngineArgs,
}

impl TestCompilerArgs {
    fn subject(&self) -> Subject {
        match self.compiler.as_str() {
            "inductor" => Subject::Compiled(GraphCompiler::Inductor(InductorMode::default())),
            "nope" => Subject::Eager,
            _ => Subject::PASSES,
        }
    }

    /// What the reference means: PyTorch on a GPU, unless something else is said.
    fn choice(&self) -> EngineChoice {
        let said = |engine| {
            self.engine.over(&EngineChoice {
                engine,
                device: "cuda".into(),
                ..EngineChoice::default()
            })
        };
        let choice = said(EngineName::Torch);
        // On the CPU our own engine needs nothing that might be missing.
        match choice.device == "cuda" {
            true => choice,
            false => said(EngineName::Native),
        }
    }

    /// The graphs, and what their paths in the log begin with.
    fn sample(&self) -> Result<Sample, CommandError> {
        let list = match &self.allow_list {
            Some(path) => {
                let name = path.display().to_string();
                let bytes = std::fs::read(path)
                    .map_err(|error| Diagnostic::file(name.as_str(), error.to_string()))?;
                Some(GraphList::parse(&name, &bytes)?)
            }
            None => None,
        };
        if let (Some(prefix), Some(list)) = (&self.model_path_prefix, &list) {
            return Ok(Sample::of_graphs(prefix, list.paths().to_vec()));
        }
        let Some(root) = &self.model_path else {
            return Err(CommandError::input("`--model-path` or `--model-path-prefix` is needed"));
        };
        let mut graphs = Vec::new();
        find_graphs(root, Path::new(""), 0, &mut graphs)?;
        if let Some(list) = &list {
            graphs.retain(|graph| list.position(&root.join(graph).display().to_string()).is_some());
        }
        match graphs.is_empty() {
            false => Ok(Sample::of_graphs(root, graphs)),
            true => Err(Diagnostic::file(root.display().to_string(), "no graph found here")
                .with_hint("a graph is a folder with `graph_net.json` and `model.py`")
                .into()),
        }
    }
}

fn find_graphs(
    root: &Path,
    below: &Path,
    depth: usize,
    graphs: &mut Vec<String>,
) -> Result<(), CommandError> {
    let folder = root.join(below);
    let has = |name: FileName| folder.join(name.as_str()).is_file();
    if has(FileName::GraphNet) && has(FileName::Model) {
        graphs.push(if depth == 0 { ".".into() } else { below.display().to_string() });
        return Ok(());
    }
    let named =
        |error: std::io::Error| Diagnostic::file(folder.display().to_string(), error.to_string());
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&folder).map_err(named)? {
        let entry = entry.map_err(named)?;
        if entry.file_type().map_err(named)?.is_dir() && depth < MAX_DEPTH {
            names.push(entry.file_name());
        }
    }
    names.sort();
    names.iter().try_for_each(|name| find_graphs(root, &below.join(name), depth + 1, graphs))
}

pub fn run(args: TestCompilerArgs, out: &mut Output) -> Result<Outcome, CommandError> {
    let config = Config::parse(args.config.as_deref())?;
    let subject = args.subject();
    let mut sample = args.sample()?;
    let passes = Passes::of(&config, subject)?;
    sample.input_passes = passes.input.clone();
    passes.refused.iter().for_each(|line| warn(line));
    let (engine, choice) = start(args.choice())?;
    if let Subject::Compiled(compiler) = subject {
        has_compiler(&format!("--compiler {}", args.compiler), compiler, &choice)?;
    }
    if let Some(prefix) = &args.model_path_prefix {
        out.line(format!("model_path_prefix: {}", prefix.display()))?;
    }
    if subject.has_passes() {
        let names: Vec<String> = passes.names.iter().map(|name| format!("'{name}'")).collect();
        out.line(format!(
            "[PassMgrBackend] Loaded {} passes: [{}]",
            names.len(),
            names.join(", ")
        ))?;
    }
    let timing = TimingOptions {
        warmup: args.warmup,
        trials: args.trials,
        seconds: args.seconds,
        ..TimingOptions::default()
    };
    let options = EvaluateOptions {
        timing,
        thorough: !args.quick,
        tier: choice.tier,
        ..EvaluateOptions::default()
    };
    let mut benches = [Bench::new(&*engine, subject, options, true)];
    Bench::measure_noise_of_all(&mut benches, std::slice::from_ref(&sample));
    let start = match benches[0].start() {
        Event::Start(start) => Some(*start),
        _ => None,
    };
    let shown = Mutex::new(Shown { out, failed: None, any_match: false });
    let each = |event: &GraphEvent| {
        let mut shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
        shown.graph(start.as_ref(), &sample, event, &args.log_prompt);
    };
    let judged = Bench::samples(&benches, &[(&sample, &passes.folder)], None, &each)?;
    let shown = shown.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(error) = shown.failed {
        return Err(error);
    }
    shown.out.flush()?;
    if let Some(path) = &config.pass_match_result_file_path {
        let text = if shown.any_match { "True" } else { "False" };
        std::fs::write(path, text)
            .map_err(|error| Diagnostic::file(path.display().to_string(), error.to_string()))?;
    }
    let lost: Vec<_> = judged.iter().flat_map(|judged| &judged.not_judged).collect();
    for one in &lost {
        warn(&format!("not judged, because this machine failed: {}: {}", one.graph, one.reason));
    }
    // What the passes are worth is said by the log; the reference's status is that of having run.
    Ok(if lost.is_empty() { Outcome::Done } else { Outcome::NotJudged })
}

/// The log as it is printed.
struct Shown<'a> {
    out: &'a mut Output,
    failed: Option<CommandError>,
    any_match: bool,
}

impl Shown<'_> {
    fn graph(&mut self, start: Option<&Start>, sample: &Sample, event: &GraphEvent, prompt: &str) {
        self.any_match |= event.evaluation.rewrites.iter().any(|rewrites| rewrites.count > 0);
        let mut event = event.clone();
        let path = sample.folder.join(&event.evaluation.judged.graph);
        event.evaluation.judged.graph = path.display().to_string();
        let lines = graph_lines(start, &event);
        if let Err(error) = self.print(&String::from_utf8_lossy(&lines), prompt) {
            self.failed.get_or_insert(error);
        }
    }

    /// Whole graphs are printed at once: whoever reads along, or ends this, has those that are done.
    fn print(&mut self, lines: &str, prompt: &str) -> Result<(), CommandError> {
        for line in lines.lines() {
            match line.strip_prefix(PROMPT) {
                Some(rest) => self.out.line(format!("{prompt}{rest}"))?,
                None => self.out.line(line)?,
            }
        }
        self.out.flush()
    }
}

/// Starts the engine asked for. Where a GPU was asked for and none can be used, the CPU takes its place, and nobody shall
/// overlook it: such numbers say nothing about a GPU.
fn start(choice: EngineChoice) -> Result<(Box<dyn Engine>, EngineChoice), CommandError> {
    let first = |engines: Vec<Box<dyn Engine>>| {
        engines.into_iter().next().ok_or_else(|| CommandError::bug("no engine was started"))
    };
    if choice.device != "cuda" {
        return Ok((first(engine::start(&choice)?)?, choice));
    }
    let reason = match choice.engine {
        EngineName::Native => "`--engine native` runs on the CPU alone".to_string(),
        EngineName::Torch => match engine::start(&choice) {
            Ok(engines) => return Ok((first(engines)?, choice)),
            Err(CommandError::Lacking { message, .. }) => message,
            Err(other) => return Err(other),
        },
    };
    if std::env::var_os("PASSNET_REQUIRE_GPU")
        .is_some_and(|value| value != "0" && !value.is_empty())
    {
        return Err(CommandError::Lacking {
            message: format!("no GPU can be used: {reason}"),
            hint: "PASSNET_REQUIRE_GPU forbids measuring on the CPU instead; `passnet doctor` says what is missing".into(),
        });
    }
    let line = "*".repeat(100);
    warn(&format!(
        "{line}\n\
         ** NO GPU: `--device cuda` was asked for, and no GPU can be used here.\n\
         ** {reason}\n\
         ** Everything below is measured on the CPU by the native engine. These are NOT GPU results: do not publish\n\
         ** them as such. PASSNET_REQUIRE_GPU=1 makes this an error; `passnet doctor` says what is missing.\n\
         {line}"
    ));
    let choice = EngineChoice {
        engine: EngineName::Native,
        device: "cpu".into(),
        devices: Vec::new(),
        ..choice
    };
    Ok((first(engine::start(&choice)?)?, choice))
}

/// The passes of a configuration, without those that a custom checker refuses.
struct Passes {
    folder: PathBuf,
    input: Option<PathBuf>,
    names: Vec<String>,
    /// What to say about refused ones.
    refused: Vec<String>,
    /// Where what is left of the folders lies, if some were refused.
    _copy: Option<Copy>,
}

impl Passes {
    fn of(config: &Config, subject: Subject) -> Result<Self, CommandError> {
        let folder = match &config.output_pass_rule_dir {
            Some(folder) => folder.clone(),
            None if !subject.has_passes() => PathBuf::new(),
            None => {
                return Err(CommandError::input("`--compiler pass_mgr` needs a folder of passes")
                    .with_hint("`--config` names it as `output_pass_rule_dir`"));
            }
        };
        let input = config.input_pass_rule_dir.clone().filter(|folder| folder.is_dir());
        let mut passes =
            Self { folder, input, names: Vec::new(), refused: Vec::new(), _copy: None };
        if !subject.has_passes() {
            return Ok(passes);
        }
        let set = load(
            &passes.folder,
            &LoadOptions { input_dir: passes.input.clone(), ..LoadOptions::default() },
        );
        warn_located(&set.errors);
        let checkers = custom::checkers();
        let mut refused = Vec::new();
        for file in &set.passes {
            let source = set.program.module(file.module).source.text();
            match custom::violations(&checkers, source)? {
                found if found.is_empty() => passes.names.push(file.name.clone()),
                found => {
                    passes.refused.push(format!(
                        "[PassMgrBackend] Pass {} is refused by a custom checker and skipped: {}",
                        file.name,
                        found.join("; ")
                    ));
                    refused.push(file.name.as_str());
                }
            }
        }
        if !refused.is_empty() {
            let copy = Copy::new()?;
            passes.folder = copy.without(&passes.folder, "pass_dir", &refused)?;
            if let Some(input) = &passes.input {
                passes.input = Some(copy.without(input, "const_pass_dir", &refused)?);
            }
            passes._copy = Some(copy);
        }
        Ok(passes)
    }
}

/// A folder for copies of pass folders, gone with its value.
struct Copy(PathBuf);

impl Copy {
    fn new() -> Result<Self, CommandError> {
        let folder = std::env::temp_dir().join(format!("passnet-passes-{}", std::process::id()));
        std::fs::create_dir(&folder)
            .map_err(|error| Diagnostic::file(folder.display().to_string(), error.to_string()))?;
        Ok(Self(folder))
    }

    /// A folder of passes without some of them: all its files, and lists that do not name these.
    fn without(
        &self,
        folder: &Path,
        name: &str,
        refused: &[&str],
    ) -> Result<PathBuf, CommandError> {
        let copy = self.0.join(name);
        std::fs::create_dir(&copy)?;
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let (from, to) = (entry.path(), copy.join(entry.file_name()));
            if !from.is_file() {
                continue;
            }
            if from.extension().is_none_or(|ending| ending != "json") {
                std::fs::copy(&from, &to)?;
                continue;
            }
            let listed: Result<Vec<String>, _> = serde_json::from_slice(&std::fs::read(&from)?);
            let listed = listed
                .map_err(|error| Diagnostic::file(from.display().to_string(), error.to_string()))?;
            let left: Vec<String> =
                listed.into_iter().filter(|name| !refused.contains(&name.as_str())).collect();
            std::fs::write(&to, serde_json::to_vec(&left).unwrap_or_default())?;
        }
        Ok(copy)
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        // Nobody needs it, and the system clears such folders.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
