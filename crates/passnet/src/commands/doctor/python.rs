//! The Python that the torch engine would use, and what it has.

use passnet_engine::sandbox::Interpreter;
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

#[derive(Debug)]
pub(super) struct Found {
    pub(super) interpreter: Interpreter,
    pub(super) libraries: Libraries,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Libraries {
    pub(super) torch: Option<String>,
    pub(super) triton: Option<String>,
    /// The CUDA that PyTorch was built for.
    cuda: Option<String>,
    /// Devices that PyTorch can use, described.
    pub(super) devices: Vec<String>,
    /// What the first of them is made of.
    unit: Option<Unit>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct Unit {
    pub(super) multiprocessors: u64,
    /// Of one multiprocessor.
    pub(super) shared_memory_bytes: u64,
}

const QUESTION: &str = r#"
import json
found = {"torch": None, "triton": None, "cuda": None, "devices": [], "unit": None}
try:
    import torch
    found["torch"], found["cuda"] = torch.__version__, torch.version.cuda
    if torch.cuda.is_available():
        for index in range(torch.cuda.device_count()):
            device = torch.cuda.get_device_properties(index)
            found["devices"].append(f"{device.name}, {device.total_memory / 2**30:.0f} GiB, compute capability {device.major}.{device.minor}")
        device = torch.cuda.get_device_properties(0)
        found["unit"] = {"multiprocessors": device.multi_processor_count, "shared_memory_bytes": device.shared_memory_per_multiprocessor}
except Exception as error:
    found["problem"] = str(error)
try:
    import triton
    found["triton"] = triton.__version__
except Exception:
    pass
print(json.dumps(found))
"#;

impl Found {
    pub(super) fn unit(&self) -> Option<&Unit> {
        self.libraries.unit.as_ref()
    }

    pub(super) fn describe(&self) -> String {
        format!("{} ({})", self.interpreter.version, self.interpreter.executable.display())
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "executable": self.interpreter.executable,
            "version": self.interpreter.version,
            "torch": self.libraries.torch,
            "triton": self.libraries.triton,
            "cuda": self.libraries.cuda,
            "devices": self.libraries.devices,
        })
    }
}

/// Looks at one Python. Importing PyTorch takes a few seconds.
pub(super) fn look(path: &Path) -> Result<Found, String> {
    let interpreter = Interpreter::ask(path)?;
    let output = Command::new(&interpreter.executable)
        .args(["-I", "-c", QUESTION])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("`{}` does not run: {error}", path.display()))?;
    // PyTorch may print warnings before the answer.
    let text = String::from_utf8_lossy(&output.stdout);
    let answer = text.lines().rev().find_map(|line| serde_json::from_str(line).ok());
    Ok(Found { interpreter, libraries: answer.unwrap_or_default() })
}

/// The first that is there: the named one, PASSNET_PYTHON, our own environment, any of the path.
pub(in crate::commands) fn choose(named: Option<&Path>) -> Result<PathBuf, String> {
    if let Some(named) = named {
        return Ok(named.to_owned());
    }
    if let Some(named) = std::env::var_os("PASSNET_PYTHON").filter(|path| !path.is_empty()) {
        return Ok(named.into());
    }
    let own = default_folder().map(|folder| folder.join("bin/python"));
    if let Some(own) = own.filter(|path| path.exists()) {
        return Ok(own);
    }
    on_path("python3").ok_or_else(|| "no python3 on the path".into())
}

pub(super) fn find() -> Result<Found, String> {
    look(&choose(None)?)
}

/// Where the environment lies unless a person says otherwise.
pub(super) fn default_folder() -> Option<PathBuf> {
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let root = named("XDG_DATA_HOME")
        .map(PathBuf::from)
        .or_else(|| named("HOME").map(|home| PathBuf::from(home).join(".local/share")))?;
    Some(root.join("passnet/python"))
}

/// A program of the path.
pub(super) fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
}
