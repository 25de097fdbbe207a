//! Tasks made from text, solved into temporary folders.

use passnet_bench::candidate::Candidate;
use passnet_bench::evaluate::{EvaluateOptions, Evaluation, evaluate};
use passnet_bench::sample::Sample;
use passnet_bench::subject::Subject;
use passnet_bench::timing::TimingOptions;
use passnet_engine::Engine;
use passnet_engine::native::NativeEngine;
use passnet_solver::explain::{Explanation, Rates};
use passnet_solver::solve::{SolveError, SolveOptions, solve};
use std::fs;
use std::path::{Path, PathBuf};

/// Rates that do not depend on the machine.
pub const RATES: Rates =
    Rates { bytes_per_second: 1e10, seconds_per_launch: 2e-6, multiprocessors: 132 };

/// One graph: inputs as `name dtype [sizes]`, then statements.
pub struct GraphText<'t> {
    pub inputs: Vec<&'t str>,
    pub body: Vec<&'t str>,
}

pub struct Task {
    pub folder: tempfile::TempDir,
    pub sample: Sample,
}

impl Task {
    pub fn new(graphs: &[GraphText<'_>]) -> Task {
        let folder = tempfile::tempdir().unwrap();
        let mut list = String::new();
        for (number, graph) in graphs.iter().enumerate() {
            let path = folder.path().join(format!("graphs/g{number}"));
            fs::create_dir_all(&path).unwrap();
            fs::write(path.join("model.py"), model(graph)).unwrap();
            fs::write(path.join("weight_meta.py"), metas(graph)).unwrap();
            fs::write(path.join("graph_net.json"), "{\"framework\": \"torch\"}").unwrap();
            list.push_str(&format!("graphs/g{number}\n"));
        }
        fs::write(folder.path().join("graph_list.txt"), list).unwrap();
        let sample = Sample::read(folder.path()).unwrap();
        Task { folder, sample }
    }

    pub fn passes(&self) -> PathBuf {
        self.folder.path().join("pass_dir")
    }

    pub fn solve(&self) -> Result<Explanation, SolveError> {
        self.solve_with(&SolveOptions { tune: false, ..SolveOptions::default() })
    }

    pub fn solve_with(&self, options: &SolveOptions) -> Result<Explanation, SolveError> {
        solve(&NativeEngine, &RATES, &self.sample, &self.passes(), options)
    }

    /// All graphs under the solution, verified thoroughly and hardly timed.
    pub fn evaluate(&self) -> Vec<Evaluation> {
        self.evaluate_on(&NativeEngine)
    }

    pub fn evaluate_on(&self, engine: &dyn Engine) -> Vec<Evaluation> {
        self.evaluate_with(engine, &self.passes())
    }

    /// The same under a solution of another task.
    pub fn evaluate_with(&self, engine: &dyn Engine, passes: &Path) -> Vec<Evaluation> {
        let candidate = Candidate::load(passes, None, true).unwrap();
        let options = EvaluateOptions {
            timing: TimingOptions {
                warmup: 1,
                trials: 1,
                max_trials: 1,
                seconds: 0.0,
                ..TimingOptions::default()
            },
            draws: 1,
            ..EvaluateOptions::default()
        };
        let graphs = self.sample.graphs.iter();
        graphs
            .map(|graph| {
                let files = self.sample.graph_files(graph).unwrap();
                evaluate(engine, &files, Subject::Passes(&candidate), &options)
            })
            .collect()
    }
}

fn model(graph: &GraphText<'_>) -> String {
    let names: Vec<&str> =
        graph.inputs.iter().filter_map(|input| input.split_whitespace().next()).collect();
    let body: Vec<String> = graph.body.iter().map(|line| format!("        {line}\n")).collect();
    format!(
        "import torch\n\nclass GraphModule(torch.nn.Module):\n\n    def forward(self, {}):\n{}",
        names.join(", "),
        body.concat()
    )
}

fn metas(graph: &GraphText<'_>) -> String {
    let mut text = String::new();
    for input in &graph.inputs {
        let mut words = input.splitn(3, ' ');
        let (name, dtype) = (words.next().unwrap(), words.next().unwrap());
        let shape = words.next().unwrap();
        let (mean, std) = if dtype.contains("float") { ("0.5", "2.0") } else { ("None", "None") };
        text.push_str(&format!(
            "class Program_weight_tensor_meta_{name}:\n\tname = \"{name}\"\n\tshape = {shape}\n\tdtype = \"torch.{dtype}\"\n\tdevice = \"cpu\"\n\tmean = {mean}\n\tstd = {std}\n\tdata = None\n"
        ));
        if dtype == "int64" {
            text.push_str("\tmin_val = 0\n\tmax_val = 3\n");
        }
        if name.starts_with("var") {
            text.push_str("\tmin_val = 0.25\n");
        }
        text.push_str("\n\n");
    }
    text
}

/// The passes of a folder in order, as one text.
pub fn written(folder: &Path) -> String {
    let list = fs::read_to_string(folder.join("sorted_output_pass_rule_names.json")).unwrap();
    let stems: Vec<String> = serde_json::from_str(&list).unwrap();
    let texts = stems.iter().map(|stem| {
        format!("# {stem}.py\n{}", fs::read_to_string(folder.join(format!("{stem}.py"))).unwrap())
    });
    texts.collect::<Vec<String>>().join("\n")
}
