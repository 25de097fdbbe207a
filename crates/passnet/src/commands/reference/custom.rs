//! What a user of the reference may bring as Python: checkers of pass files, and weights. Both are the user's own code, named
//! in the environment; it runs in a Python of its own. Passes are handed to it as text.

use crate::error::CommandError;
use passnet_bench::score::{CURVE_LEVELS, curve_levels};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Checkers, with colons between them; the second is its former name.
const CHECKERS: [&str; 2] =
    ["PASSNET_CUSTOM_PASS_SOURCE_CHECKER_PATH", "AI4C_CUSTOM_PASS_SOURCE_CHECKER_PATH"];
const WEIGHTS: &str = "PASSNET_CUSTOM_WEIGHT_FUNC_PATH";

/// Loads the file that is its first argument and prints what the call gives as JSON; what the file itself prints goes to
/// stderr.
const LOAD: &str = "
import contextlib, importlib.util, json, sys
with contextlib.redirect_stdout(sys.stderr):
    spec = importlib.util.spec_from_file_location('custom', sys.argv[1])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    result = CALL
json.dump(result, sys.stdout)
";
const VALIDATE: &str = "[str(found) for found in module.validate_pass_source(sys.stdin.read())]";
const GET_WEIGHTS: &str = "{int(t): float(weight) for t, weight in module.get_weights().items()}";

fn environment(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// The checkers that the environment names; what is no file is ignored, as the reference does.
pub(super) fn checkers() -> Vec<PathBuf> {
    let named = CHECKERS.into_iter().find_map(environment);
    let paths = named.iter().flat_map(std::env::split_paths);
    paths.filter(|path| path.is_file()).collect()
}

/// What the checkers have against a pass.
pub(super) fn violations(checkers: &[PathBuf], source: &str) -> Result<Vec<String>, CommandError> {
    let mut all = Vec::new();
    for checker in checkers {
        let bad = || {
            CommandError::input(format!(
                "{}: `validate_pass_source` gave no list",
                checker.display()
            ))
        };
        let found = python(checker, VALIDATE, source)?;
        let found = found.as_array().ok_or_else(bad)?;
        all.extend(found.iter().filter_map(Value::as_str).map(str::to_string));
    }
    Ok(all)
}

/// The weights that the environment asks for.
pub(super) fn weights() -> Result<Option<[f64; CURVE_LEVELS]>, CommandError> {
    let Some(path) = environment(WEIGHTS).map(PathBuf::from) else { return Ok(None) };
    let bad = |what: &str| {
        CommandError::input(format!("{}: {what}", path.display()))
            .with_hint("`get_weights()` gives a dictionary from t = -10 to 4 to its weight")
    };
    let given: BTreeMap<i32, f64> = serde_json::from_value(python(&path, GET_WEIGHTS, "")?)
        .map_err(|error| bad(&format!("`get_weights` gave no weights: {error}")))?;
    let levels: Vec<i32> = curve_levels().collect();
    if !given.keys().eq(levels.iter()) {
        let keys: Vec<String> = given.keys().map(ToString::to_string).collect();
        return Err(bad(&format!("`get_weights` gave weights for t = {}", keys.join(", "))));
    }
    let mut weights = [0.0; CURVE_LEVELS];
    weights.iter_mut().zip(given.into_values()).for_each(|(weight, given)| *weight = given);
    match weights.iter().all(|weight| weight.is_finite()) {
        true => Ok(Some(weights)),
        false => Err(bad("`get_weights` gave a weight that is no number")),
    }
}

/// Runs `call` in a Python that has loaded a file of the user's.
fn python(file: &Path, call: &str, input: &str) -> Result<Value, CommandError> {
    let program = environment("PASSNET_PYTHON").unwrap_or_else(|| "python3".into());
    let lacking = |error: std::io::Error| CommandError::Lacking {
        message: format!(
            "{} needs Python, and `{}` does not start: {error}",
            file.display(),
            program.to_string_lossy()
        ),
        hint: "name one by PASSNET_PYTHON, or do not name the file".into(),
    };
    let mut child = Command::new(&program)
        .args(["-I", "-c", &LOAD.replace("CALL", call)])
        .arg(file)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(lacking)?;
    // A file that does not read its input closes it early, which is no error.
    let written = child.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(input.as_bytes()));
    drop(written);
    let done = child.wait_with_output().map_err(lacking)?;
    let said =
        String::from_utf8_lossy(&done.stderr).trim().lines().last().unwrap_or_default().to_string();
    if !done.status.success() {
        return Err(CommandError::input(format!("{} failed: {said}", file.display())));
    }
    serde_json::from_slice(&done.stdout)
        .map_err(|error| CommandError::input(format!("{}: {error}", file.display())))
}
