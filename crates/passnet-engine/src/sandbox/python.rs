//! A Python interpreter: where it lies, what it is made of.

use super::{Job, Limits};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A Python that a person chose, asked once about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interpreter {
    /// The interpreter itself.
    pub executable: PathBuf,
    /// `3.12.1`.
    pub version: String,
    /// Files and folders that it and its packages lie in.
    folders: Vec<PathBuf>,
}

const QUESTION: &str = "\
import sys
print('.'.join(map(str, sys.version_info[:3])))
print(sys.executable)
for folder in [sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix, *sys.path]:
    print(folder)
";

impl Interpreter {
    /// Asks the interpreter for its version and folders. It is trusted: a person named it.
    pub fn ask(executable: &Path) -> Result<Interpreter, String> {
        let shown = executable.display();
        let output = Command::new(executable)
            .args(["-I", "-c", QUESTION])
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("`{shown}` does not run: {error}"))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let mut lines = text.lines();
        // A shim starts another program than itself; what runs in the sandbox is that one.
        let (version, executable) = match (lines.next(), lines.next().map(PathBuf::from)) {
            (Some(version), Some(executable)) if executable.is_absolute() => {
                (version.to_string(), executable)
            }
            _ => return Err(format!("`{shown}` is no Python 3")),
        };
        let mut folders: Vec<PathBuf> = lines
            .map(PathBuf::from)
            .filter(|path| path.is_absolute() && path.exists())
            .chain([executable.clone()])
            .collect();
        folders.sort();
        folders.dedup();
        Ok(Interpreter { executable, version, folders })
    }

    /// A run of a script that nothing of the machine's settings reaches; `input` becomes its standard input.
    pub fn job(&self, script: &str, arguments: &[&str], input: Vec<u8>, limits: Limits) -> Job {
        let mut all: Vec<OsString> = vec!["-I".into(), "-B".into(), "-c".into(), script.into()];
        all.extend(arguments.iter().map(OsString::from));
        Job {
            program: self.executable.clone(),
            arguments: all,
            environment: vec![
                ("HOME".into(), "/tmp".into()),
                ("TMPDIR".into(), "/tmp".into()),
                ("LANG".into(), "C.UTF-8".into()),
                ("PATH".into(), String::new()),
            ],
            readable: self.folders.clone(),
            devices: None,
            input,
            limits,
        }
    }
}
