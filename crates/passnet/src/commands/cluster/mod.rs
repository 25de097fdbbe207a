//! `--cluster ADDRESS`: the same command with the work of a Ray cluster's nodes.
//!
//! This process stays the driver: it alone decides (`passnet-cluster`) and writes. The bridge is Python, because Ray is;
//! workers on the nodes are this program again ([`worker`]), with the same arguments, so that they judge as this one would.

mod evaluator;
mod extract;
mod input;
mod run;
mod scratch;
mod shared;
mod tasks;
pub mod unit;
pub mod worker;

pub use evaluator::Evaluators;
pub use extract::capture;
pub use tasks::{Asked, Found, work};

use super::doctor::python;
use super::extract::python::search_path;
use crate::error::CommandError;
use clap::Args;
use passnet_cluster::{Bridge, Driven, End, Job, Limits, NodeStatus, drive, frame};
use passnet_engine::EngineChoice;
use passnet_engine::torch::package::Package;
use serde_json::json;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Names below the package folder, and texts.
macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../../../python/", $name)))),*]
    };
}

const FILES: &[(&str, &str)] = files![
    "passnet/__init__.py",
    "passnet/cluster/__init__.py",
    "passnet/cluster/__main__.py",
    "passnet/cluster/bridge.py",
    "passnet/cluster/frames.py",
    "passnet/cluster/worker.py",
];

/// Where the work is done, if not here.
#[derive(Debug, Args)]
pub struct ClusterArgs {
    /// Let the nodes of this Ray cluster do the work: `auto`, or HOST:PORT of its head
    #[arg(long, value_name = "ADDRESS")]
    pub cluster: Option<String>,

    /// A Python with Ray, the version that the cluster runs [default: as for PyTorch]
    #[arg(long, env = "PASSNET_RAY_PYTHON", value_name = "PATH")]
    cluster_python: Option<PathBuf>,

    /// Only nodes whose device has this in its name; without it, those that are like the first
    #[arg(long, value_name = "TEXT", requires = "cluster")]
    cluster_device: Option<String>,

    /// Noise of a node, as a share of the time, above which it is set aside
    #[arg(long, value_name = "SHARE", default_value_t = Limits::default().noise)]
    cluster_noise: f64,
}

/// What workers ask nodes for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A GPU each: one timed unit at a time.
    Cuda,
    /// All cores of a node: nothing runs beside the clock.
    Cpu,
    /// A core each: nothing is timed.
    Free,
}

impl Kind {
    pub fn timed(choice: &EngineChoice) -> Kind {
        if choice.device == "cuda" { Kind::Cuda } else { Kind::Cpu }
    }

    fn name(self) -> &'static str {
        match self {
            Kind::Cuda => "cuda",
            Kind::Cpu => "cpu",
            Kind::Free => "free",
        }
    }
}

/// A bridge process with its end of the pipes.
struct Started {
    bridge: Bridge,
    process: Child,
    _package: Package,
}

impl ClusterArgs {
    pub fn is_asked(&self) -> bool {
        self.cluster.is_some()
    }

    /// Refuses what nodes decide for themselves.
    pub fn check(&self, choice: &EngineChoice) -> Result<(), CommandError> {
        if self.is_asked() && !choice.devices.is_empty() {
            let error = CommandError::input("`--devices` does not go with `--cluster`");
            return Err(error.with_hint("Ray gives every worker a GPU of its own"));
        }
        Ok(())
    }

    fn start(&self, kind: Kind) -> Result<Started, CommandError> {
        let address = self.cluster.as_deref().unwrap_or("auto");
        let named = self.cluster_python.as_deref();
        let python = python::choose(named).map_err(no_ray)?;
        let package = Package::lay_out(FILES)?;
        let mut process = Command::new(&python)
            .args(["-m", "passnet.cluster"])
            .env("PYTHONPATH", search_path(package.folder()))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            // Ctrl-C is for the driver: units under way come to their end.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| no_ray(format!("`{}` does not run: {error}", python.display())))?;
        let (Some(mut to), Some(from)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(CommandError::bug("the bridge has no pipes"));
        };
        let program = std::env::current_exe()?;
        let begin = json!({
            "address": address,
            "kind": kind.name(),
            "program": program,
            "arguments": arguments()?,
        });
        frame::write(&mut to, &begin, b"")?;
        let bridge = Bridge::new(to, from)?;
        Ok(Started { bridge, process, _package: package })
    }

    fn limits(&self) -> Limits {
        Limits { noise: self.cluster_noise, ..Limits::default() }
    }

    /// Does all units of a job on the cluster.
    fn drive<J: Job<Error = CommandError>>(
        &self,
        kind: Kind,
        job: &mut J,
    ) -> Result<Driven, CommandError> {
        let Started { bridge, mut process, _package } = self.start(kind)?;
        let driven = drive(job, bridge, self.limits());
        // Its pipe is closed: it ends its workers and itself.
        process.wait()?;
        self.judge_end(driven?)
    }

    fn judge_end(&self, driven: Driven) -> Result<Driven, CommandError> {
        let Some(message) = why_it_ended(&driven) else { return Ok(driven) };
        let hint = "what is done is kept; the same command goes on when the cluster is there (docs/cluster.md)";
        Err(CommandError::Lacking { message, hint: hint.into() })
    }
}

/// Why a run came to no good end; `None` where it did.
fn why_it_ended(driven: &Driven) -> Option<String> {
    match &driven.end {
        End::Done | End::Stopped => None,
        End::NoNodes => {
            let reason = |node: &NodeStatus| {
                format!("\n  {}: {} ({})", node.name, node.state.word(), node.state.reason())
            };
            let reasons: String = driven.status.nodes.iter().map(reason).collect();
            Some(format!("no node of the cluster may work{reasons}"))
        }
        End::Lost(reason) => Some(format!("the cluster is lost: {reason}")),
    }
}

/// The words of this command, for workers.
fn arguments() -> Result<Vec<String>, CommandError> {
    let texts = std::env::args_os().skip(1).map(std::ffi::OsString::into_string);
    texts.collect::<Result<_, _>>().map_err(|word| {
        CommandError::input(format!("`{}` is no text that can be sent", word.display()))
    })
}

fn no_ray(message: String) -> CommandError {
    CommandError::Lacking {
        message,
        hint: "name a Python with Ray by `--cluster-python PATH` or PASSNET_RAY_PYTHON".into(),
    }
}

/// The folder that a run over a cluster needs.
pub fn folder_of(out: Option<&Path>) -> Result<&Path, CommandError> {
    out.ok_or_else(|| {
        let error = CommandError::input("`--cluster` needs `--out DIR`");
        error.with_hint("results are kept there, and the same command goes on with them")
    })
}

#[cfg(test)]
mod tests {
    use super::FILES;
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn every_file_of_the_package_is_carried() {
        let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python");
        let there: BTreeSet<String> = std::fs::read_dir(python.join("passnet/cluster"))
            .unwrap()
            .map(|item| item.unwrap().path())
            .filter(|path| path.is_file())
            .map(|path| path.strip_prefix(&python).unwrap().display().to_string())
            .collect();
        let carried: BTreeSet<String> = FILES.iter().map(|(name, _)| name.to_string()).collect();
        assert!(there.is_subset(&carried), "{there:?}");
    }
}
