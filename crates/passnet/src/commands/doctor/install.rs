//! A virtual environment with PyTorch, from PyPI.

use super::python::{default_folder, on_path};
use crate::error::CommandError;
use crate::output::warn;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Triton comes with PyTorch: the oldest whose compiler the kernels are compiled with. Triton's interpreter, which the
/// compatibility tier uses on the CPU, needs NumPy.
const PACKAGES: [&str; 2] = ["torch>=2.9", "numpy"];
/// For `uv`, which can bring its own.
const PYTHON: &str = "3.12";

/// Makes the environment and gives its Python. What is there already is kept.
pub(super) fn install(
    folder: Option<&Path>,
    python: Option<&Path>,
) -> Result<PathBuf, CommandError> {
    let folder = folder
        .map(Path::to_path_buf)
        .or_else(default_folder)
        .ok_or_else(|| CommandError::input("no home folder; name one"))?;
    let folder = std::path::absolute(folder)?;
    let own = folder.join("bin/python");
    let uv = on_path("uv");
    if !own.exists() {
        warn(&format!("making a virtual environment in {}", folder.display()));
        make(&folder, uv.as_deref(), python)?;
    }
    let listed = PACKAGES.join(" and ");
    warn(&format!("installing {listed} from PyPI; this takes minutes and several gigabytes"));
    let packages = PACKAGES.map(OsStr::new);
    match &uv {
        Some(uv) => {
            let command =
                [OsStr::new("pip"), "install".as_ref(), "--python".as_ref(), own.as_ref()];
            step(uv, command.into_iter().chain(packages))?;
        }
        None => {
            let command = ["-m", "pip", "install", "--disable-pip-version-check"].map(OsStr::new);
            step(&own, command.into_iter().chain(packages))?;
        }
    }
    warn(&format!("done: `export PASSNET_PYTHON={}` makes every command use it", own.display()));
    Ok(own)
}

fn make(folder: &Path, uv: Option<&Path>, python: Option<&Path>) -> Result<(), CommandError> {
    if let Some(uv) = uv {
        let wanted = python.map_or(OsStr::new(PYTHON), Path::as_os_str);
        return step(uv, [OsStr::new("venv"), "--python".as_ref(), wanted, folder.as_ref()]);
    }
    let Some(python) = python.map(Path::to_path_buf).or_else(|| on_path("python3")) else {
        return Err(CommandError::Lacking {
            message: "neither uv nor python3 is on the path".into(),
            hint: "install Python 3.10 or newer, or uv (https://docs.astral.sh/uv)".into(),
        });
    };
    step(&python, [OsStr::new("-m"), "venv".as_ref(), folder.as_ref()])
}

/// One program to its end, its own progress on our error stream.
fn step<A: AsRef<OsStr>>(
    program: &Path,
    arguments: impl IntoIterator<Item = A>,
) -> Result<(), CommandError> {
    let shown = program.display();
    let lacking = |message: String| CommandError::Lacking {
        message,
        hint: "the lines above say why; PyPI must be reachable, and the disk needs about 10 GB"
            .into(),
    };
    let status = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(std::io::stderr())
        .status()
        .map_err(|error| lacking(format!("`{shown}` does not run: {error}")))?;
    match status.success() {
        true => Ok(()),
        false => Err(lacking(format!("`{shown}` failed ({status})"))),
    }
}
