//! `passnet doctor`: what this machine can do, and how to enable the rest.

mod install;
mod machine;
pub(super) mod python;
mod target;

use crate::commands::engine::{RUNNER_HINT, own_runner};
use crate::error::{CommandError, Outcome};
use crate::output::{Output, table};
use clap::{Args, ValueEnum};
use machine::Machine;
use passnet_engine::sandbox::{Check, Devices, Refusal, Sandbox, device_check, nvidia, self_check};
use python::{Found, Libraries};
use serde_json::{Value, json};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "\
The native engine needs nothing. The torch engine needs a Python with PyTorch (`--install-torch` makes
one), the plan runner beside this program, and on a GPU the driver and a sandbox for Triton's compiler.
Exit code 3: something that `--need`, `--python` or `--install-torch` asks for is missing.")]
pub struct DoctorArgs {
    /// The Python to look at; else PASSNET_PYTHON, the environment of `--install-torch`, python3
    #[arg(long, value_name = "PATH")]
    python: Option<PathBuf>,

    /// Make a virtual environment with PyTorch from PyPI
    #[arg(long, value_name = "DIR")]
    install_torch: Option<Option<PathBuf>>,

    /// Try to break out of the sandbox in every way it claims to stop
    #[arg(long)]
    check_sandbox: bool,

    /// Measure this machine's first GPU and write it as a file for `passnet solve --target`
    #[arg(long, value_name = "FILE")]
    measure_target: Option<PathBuf>,

    /// Fail where this is missing
    #[arg(long, value_enum, value_name = "WHAT")]
    need: Vec<Need>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Need {
    Python,
    Torch,
    Triton,
    /// A CUDA device that PyTorch can use
    Cuda,
    Sandbox,
    Runner,
}

/// All that was found.
struct Report {
    machine: Machine,
    python: Result<Found, String>,
    sandbox: Result<Sandbox, Refusal>,
    /// What the compatibility tier lets into the sandbox, or what this machine lacks for it.
    gpu: Result<Devices, String>,
    checks: Vec<Check>,
    runner: Option<PathBuf>,
}

pub fn run(args: DoctorArgs, out: &mut Output) -> Result<Outcome, CommandError> {
    let installed = match &args.install_torch {
        Some(folder) => Some(install::install(folder.as_deref(), args.python.as_deref())?),
        None => None,
    };
    let named = installed.or_else(|| args.python.clone());
    let python = match &named {
        Some(path) => python::look(path),
        None => python::find(),
    };
    let sandbox = Sandbox::strongest();
    let mut gpu = nvidia();
    let mut checks = Vec::new();
    if args.check_sandbox
        && let (Ok(sandbox), Ok(found)) = (&sandbox, &python)
    {
        checks = self_check(sandbox, &found.interpreter).map_err(|refusal| lacking(&refusal))?;
        // A machine may have the sandbox and be unable to let a GPU into it.
        let tried = gpu.clone().map(|devices| device_check(sandbox, &found.interpreter, &devices));
        match tried {
            Ok(Ok(more)) => checks.extend(more),
            Ok(Err(refusal)) => gpu = Err(format!("{refusal} ({})", refusal.hint)),
            Err(_) => {}
        }
    }
    let report =
        Report { machine: Machine::look(), python, sandbox, gpu, checks, runner: runner() };
    match out.is_json() {
        true => out.json(&report.json())?,
        false => report.print(out)?,
    }
    out.flush()?;
    if let Some(path) = &args.measure_target {
        let target = report.measure_target()?;
        std::fs::write(path, target.text())?;
    }
    let mut needs = args.need.clone();
    if named.is_some() {
        needs.push(Need::Torch);
    }
    if args.check_sandbox {
        needs.push(Need::Sandbox);
    }
    for need in needs {
        report.require(need)?;
    }
    Ok(Outcome::failed_if(report.checks.iter().any(|check| !check.holds)))
}

fn lacking(refusal: &Refusal) -> CommandError {
    CommandError::Lacking { message: refusal.to_string(), hint: refusal.hint.into() }
}

/// The plan runner: where PASSNET_RUNNER says, or this program's own.
fn runner() -> Option<PathBuf> {
    let named = std::env::var_os("PASSNET_RUNNER").map(PathBuf::from);
    named.filter(|path| path.is_file()).or_else(own_runner)
}

const INSTALL: &str = "`passnet doctor --install-torch` makes an environment with PyTorch; \
     `--python PATH` or PASSNET_PYTHON names one that is there";
const CUDA: &str = "install NVIDIA's driver; in a container, start it with `--gpus all`";

impl Report {
    fn libraries(&self) -> Option<&Libraries> {
        self.python.as_ref().ok().map(|found| &found.libraries)
    }

    fn torch(&self) -> Option<&str> {
        self.libraries()?.torch.as_deref()
    }

    fn triton(&self) -> Option<&str> {
        self.libraries()?.triton.as_deref()
    }

    /// A device that PyTorch can use.
    fn cuda(&self) -> bool {
        self.libraries().is_some_and(|libraries| !libraries.devices.is_empty())
    }

    fn require(&self, need: Need) -> Result<(), CommandError> {
        let (there, what, hint) = match need {
            Need::Python => (self.python.is_ok(), "no Python", INSTALL),
            Need::Torch => (self.torch().is_some(), "no Python with PyTorch", INSTALL),
            Need::Triton => (self.triton().is_some(), "no Python with Triton", INSTALL),
            Need::Cuda => (self.cuda(), "no CUDA device that PyTorch can use", CUDA),
            Need::Runner => (self.runner.is_some(), "no plan runner", RUNNER_HINT),
            Need::Sandbox => return self.sandbox.as_ref().map(|_| ()).map_err(lacking),
        };
        match (there, &self.python) {
            (true, _) => Ok(()),
            (false, Err(reason)) if need == Need::Torch => {
                Err(CommandError::Lacking { message: reason.clone(), hint: hint.into() })
            }
            (false, _) => Err(CommandError::Lacking { message: what.into(), hint: hint.into() }),
        }
    }

    /// What works, by name of the engine as users ask for it.
    fn abilities(&self) -> [(&'static str, bool); 6] {
        let runner = self.runner.is_some();
        let torch = self.torch().is_some();
        let sandbox = self.sandbox.is_ok();
        let compile = self.triton().is_some() && sandbox;
        let (on_cpu, on_cuda) = (torch && runner, torch && runner && self.cuda() && compile);
        // Where the sandbox was tried with the devices in it, that decides.
        let tried = self.checks.iter().all(|check| check.holds);
        [
            ("native", true),
            ("torch on the CPU", on_cpu),
            ("torch on CUDA", on_cuda),
            ("compiling kernels for a GPU", compile),
            ("compatibility tier on the CPU", on_cpu && sandbox),
            ("compatibility tier on CUDA", on_cuda && self.gpu.is_ok() && tried),
        ]
    }

    fn print(&self, out: &mut Output) -> Result<(), CommandError> {
        let mut shown = table(["what", "found", "how to enable it"]);
        let mut row = |what: &str, found: String, hint: &str| {
            shown.add_row([what.to_string(), found, hint.to_string()]);
        };
        let missing = || "missing".to_string();
        for (what, found) in self.machine.rows() {
            row(what, found, "");
        }
        match &self.python {
            Ok(found) => row("Python", found.describe(), ""),
            Err(reason) => row("Python", reason.clone(), INSTALL),
        }
        for (what, version) in [("PyTorch", self.torch()), ("Triton", self.triton())] {
            match version {
                Some(version) => row(what, version.to_string(), ""),
                None => row(what, missing(), INSTALL),
            }
        }
        match self.libraries().map(|libraries| libraries.devices.as_slice()) {
            Some([_, ..]) => {
                for device in self.libraries().iter().flat_map(|libraries| &libraries.devices) {
                    row("CUDA device", device.clone(), "");
                }
            }
            _ => row("CUDA device", "none that PyTorch can use".into(), CUDA),
        }
        match &self.sandbox {
            Ok(sandbox) => row("sandbox", layers(sandbox), ""),
            Err(refusal) => row("sandbox", refusal.to_string(), refusal.hint),
        }
        match &self.gpu {
            Ok(devices) => row("GPU in the sandbox", let_in(devices), ""),
            Err(missing) => row("GPU in the sandbox", format!("none: {missing}"), CUDA),
        }
        match &self.runner {
            Some(path) => row("plan runner", path.display().to_string(), ""),
            None => row("plan runner", missing(), RUNNER_HINT),
        }
        for (what, works) in self.abilities() {
            row(what, if works { "works" } else { "not on this machine" }.into(), "");
        }
        out.table(&shown)?;
        if !self.checks.is_empty() {
            out.line("")?;
            let mut shown = table(["sandbox", "claim", ""]);
            for check in &self.checks {
                let holds = if check.holds { "holds" } else { "BROKEN" };
                shown.add_row([check.area, &check.claim, holds]);
            }
            out.table(&shown)?;
        }
        Ok(())
    }

    fn json(&self) -> Value {
        let sandbox = match &self.sandbox {
            Ok(sandbox) => {
                let layers = sandbox.layers();
                json!({
                    "namespaces": layers.namespaces,
                    "seccomp": layers.seccomp,
                    "landlock": layers.landlock,
                })
            }
            Err(refusal) => json!({ "refused": refusal.to_string(), "hint": refusal.hint }),
        };
        let gpu = match &self.gpu {
            Ok(devices) => json!({ "devices": devices.files, "seen": devices.seen }),
            Err(missing) => json!({ "missing": missing }),
        };
        let check = |check: &Check| json!({ "area": check.area, "claim": check.claim, "holds": check.holds });
        let python = match &self.python {
            Ok(found) => found.json(),
            Err(reason) => json!({ "missing": reason }),
        };
        let names =
            ["native", "torch_cpu", "torch_cuda", "compile_kernels", "compat_cpu", "compat_cuda"];
        let abilities: serde_json::Map<String, Value> = names
            .iter()
            .zip(self.abilities())
            .map(|(name, (_, works))| (name.to_string(), works.into()))
            .collect();
        json!({
            "machine": self.machine.json(),
            "python": python,
            "sandbox": sandbox,
            "sandbox_gpu": gpu,
            "sandbox_checks": self.checks.iter().map(check).collect::<Vec<_>>(),
            "runner": self.runner,
            "works": abilities,
        })
    }
}

fn let_in(devices: &Devices) -> String {
    let names = devices.files.iter().filter_map(|file| file.file_name());
    let names: Vec<_> = names.map(|name| name.to_string_lossy()).collect();
    format!("let in for `--tier compat` alone: {}", names.join(", "))
}

fn layers(sandbox: &Sandbox) -> String {
    let layers = sandbox.layers();
    let landlock = match layers.landlock {
        Some(version) => format!("landlock {version}"),
        None => "no landlock in this kernel".into(),
    };
    format!("namespaces, own root, system-call filter, {landlock}, limits")
}
