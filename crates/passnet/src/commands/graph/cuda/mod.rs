//! `passnet graph show --profile --device cuda`: the kernels that eager PyTorch launches for a graph.
//!
//! Times, shapes and the occupancy that follows from them come from PyTorch's own profiler. The bytes of a statement are
//! those of its operands and results, so that the bandwidth is what a perfect kernel would need; `ncu` gives what was
//! really moved, where it is installed and may count.

mod counters;
mod trace;

use crate::commands::doctor::python;
use crate::error::{CommandError, Outcome};
use crate::output::{Output, table, warn};
use crate::paths::for_each_graph_with;
use counters::Counted;
use passnet_engine::python_files;
use passnet_engine::torch::package::Package;
use passnet_graph::infer::infer_folder;
use passnet_graph::print::print_model;
use passnet_graph::{Diagnostic, FileName, GraphFiles, GraphFolder, NodeId, read};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use trace::{Kernel, Profile};

/// The Python files of the profiler, and what they import.
const FILES: &[(&str, &str)] = &python_files![
    "passnet/__init__.py",
    "passnet/graphs/__init__.py",
    "passnet/graphs/profile_cuda.py",
    "passnet/graphs/replay.py",
];
/// Characters of a kernel's name.
const NAME: usize = 48;

/// One row of the profile.
struct Row<'a> {
    kernel: &'a Kernel,
    operation: &'a str,
    /// That have to be moved.
    bytes: Option<u64>,
    counted: Option<Counted>,
}

impl Row<'_> {
    /// Bytes a second, of those that have to be moved.
    fn bandwidth(&self) -> Option<f64> {
        let seconds = self.kernel.microseconds / 1e6;
        self.bytes.filter(|_| seconds > 0.0).map(|bytes| bytes as f64 / seconds)
    }

    fn json(&self, rate: Option<f64>) -> Json {
        let kernel = self.kernel;
        json!({
            "name": kernel.statement,
            "operation": self.operation,
            "kernel": kernel.name,
            "microseconds": kernel.microseconds,
            "launches": kernel.launches,
            "grid": kernel.grid,
            "block": kernel.block,
            "registers": kernel.registers,
            "shared_memory": kernel.shared_memory,
            "occupancy": kernel.occupancy,
            "bytes": self.bytes,
            "bandwidth": self.bandwidth(),
            "bandwidth_fraction": self.bandwidth().zip(rate).map(|(own, all)| own / all),
            "counted_bytes": self.counted.map(|counted| counted.bytes),
            "counted_active_warps": self.counted.map(|counted| counted.active),
        })
    }
}

/// What a statement computes, and the bytes of its operands and results.
type Statements = BTreeMap<String, (String, Option<u64>)>;

pub(super) fn run(
    paths: &[PathBuf],
    python: Option<&Path>,
    out: &mut Output,
) -> Result<Outcome, CommandError> {
    let python = python::choose(python).map_err(|message| CommandError::Lacking {
        message,
        hint: "name a Python with PyTorch and a GPU by `--python PATH` or PASSNET_PYTHON".into(),
    })?;
    let package = Package::lay_out(FILES)?;
    let ncu = counters::program();
    if ncu.is_none() {
        warn(
            "note: `ncu` is not installed, so memory traffic is not counted; occupancy is the profiler's estimate",
        );
    }
    // Two graphs at once would measure each other.
    for_each_graph_with(NonZeroUsize::MIN, paths, GraphFiles::clone, |path, files| {
        let folder = read::read_folder(&files).map_err(CommandError::Located)?;
        let place = package.folder().join("graph");
        lay_out(&place, &files, &folder)?;
        let file = package.folder().join("trace.json");
        let worker = |more: &[&str]| {
            let mut command = Command::new(&python);
            command.args(["-m", "passnet.graphs.profile_cuda"]).arg(&place).args(more);
            command.env("PYTHONPATH", package.folder()).env("PYTHONDONTWRITEBYTECODE", "1");
            command.stdin(Stdio::null());
            command
        };
        let target = file.display().to_string();
        let ran = worker(&["--out", &target]).output()?;
        if !ran.status.success() {
            return Err(refused(path, &String::from_utf8_lossy(&ran.stderr)));
        }
        let profile = Profile::parse(&std::fs::read(&file)?)
            .map_err(|message| CommandError::from(Diagnostic::file(path, message)))?;
        let counted = ncu.as_deref().and_then(|ncu| {
            counters::count(ncu, &worker(&["--once"]))
                .map_err(|reason| warn(&format!("note: `ncu` counts nothing: {reason}")))
                .ok()
        });
        show(path, &profile, &statements(&folder), &counted.unwrap_or_default(), out)
    })?;
    out.flush()?;
    Ok(Outcome::Done)
}

/// The graph in our own words: nothing else is run.
fn lay_out(place: &Path, files: &GraphFiles, folder: &GraphFolder) -> Result<(), CommandError> {
    if place.exists() {
        std::fs::remove_dir_all(place)?;
    }
    std::fs::create_dir_all(place)?;
    std::fs::write(place.join(FileName::Model.as_str()), print_model(&folder.graph))?;
    for name in [FileName::WeightMeta, FileName::InputMeta] {
        let bytes = files.get(name).unwrap_or_default();
        std::fs::write(place.join(name.as_str()), bytes)?;
    }
    Ok(())
}

fn refused(path: &str, said: &str) -> CommandError {
    let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it ended at once");
    CommandError::Lacking {
        message: format!("{path}: PyTorch did not run it on a GPU: {last}"),
        hint:
            "`passnet doctor` says what this machine has; without a GPU leave `--device cuda` out"
                .into(),
    }
}

fn statements(folder: &GraphFolder) -> Statements {
    let types = infer_folder(folder);
    let bytes = |id: NodeId| {
        let tensor = types.value(id).as_tensor()?;
        u64::try_from(tensor.elements()).ok()?.checked_mul(tensor.dtype.size() as u64)
    };
    let mut found = Statements::new();
    for (id, call) in folder.graph.calls() {
        let mut sum = bytes(id);
        call.for_each_input(|input| {
            // A number or a list has none of its own.
            let more = bytes(input).unwrap_or(0);
            sum = sum.and_then(|sum| sum.checked_add(more));
        });
        let name = folder.graph.node(id).name.to_string();
        found.insert(name, (call.target.to_string(), sum));
    }
    found
}

fn rows<'a>(
    kernels: &'a [Kernel],
    statements: &'a Statements,
    counted: &BTreeMap<String, Counted>,
) -> Vec<Row<'a>> {
    // Of a statement with several kernels nobody knows which of them moves what.
    let share =
        |kernel: &Kernel| kernels.iter().filter(|k| k.statement == kernel.statement).count();
    let row = |kernel: &'a Kernel| {
        let known = statements.get(&kernel.statement);
        Row {
            kernel,
            operation: known.map_or("", |(operation, _)| operation),
            bytes: kernel
                .bytes
                .or_else(|| known.and_then(|(_, bytes)| *bytes).filter(|_| share(kernel) == 1)),
            counted: counted.get(&kernel.name).copied(),
        }
    };
    kernels.iter().map(row).collect()
}

fn show(
    path: &str,
    profile: &Profile,
    statements: &Statements,
    counted: &BTreeMap<String, Counted>,
    out: &mut Output,
) -> Result<(), CommandError> {
    let kernels = profile.kernels();
    let rows = rows(&kernels, statements, counted);
    let total: f64 = kernels.iter().map(|kernel| kernel.microseconds).sum();
    if out.is_json() {
        return out.json(&json!({
            "path": path,
            "device": profile.device,
            "bandwidth": profile.bandwidth,
            "microseconds": total,
            "kernels": rows.iter().map(|row| row.json(profile.bandwidth)).collect::<Vec<_>>(),
        }));
    }
    let rate = profile.bandwidth.map_or("-".into(), |rate| format!("{:.0} GB/s", rate / 1e9));
    out.line(format!(
        "{path}: {total:.1} µs in {} kernels on {}; a copy moves {rate} there",
        kernels.iter().map(|kernel| kernel.launches).sum::<u64>(),
        profile.device
    ))?;
    out.table(&kernel_table(&rows, total, profile.bandwidth))?;
    out.line("bandwidth: operands and results of the statement over its time; occupancy: warps that fit, by registers, shared memory and shape")
}

fn kernel_table(rows: &[Row<'_>], total: f64, rate: Option<f64>) -> comfy_table::Table {
    let mut shown = table([
        "name",
        "operation",
        "kernel",
        "µs",
        "share",
        "launches",
        "grid",
        "block",
        "registers",
        "occupancy",
        "GB/s",
        "of copy",
        "counted MB",
        "active warps",
    ]);
    let percent = |share: Option<f64>| share.map_or("-".into(), |s| format!("{:.0} %", s * 100.0));
    let sizes = |of: Option<[u64; 3]>| of.map_or("-".into(), |[x, y, z]| format!("{x}x{y}x{z}"));
    for row in rows {
        let kernel = row.kernel;
        let speed = row.bandwidth();
        shown.add_row([
            kernel.statement.clone(),
            row.operation.to_string(),
            kernel.name.chars().take(NAME).collect(),
            format!("{:.1}", kernel.microseconds),
            percent((total > 0.0).then(|| kernel.microseconds / total)),
            kernel.launches.to_string(),
            sizes(kernel.grid),
            sizes(kernel.block),
            kernel.registers.map_or("-".into(), |count| count.to_string()),
            percent(kernel.occupancy),
            speed.map_or("-".into(), |speed| format!("{:.0}", speed / 1e9)),
            percent(speed.zip(rate).map(|(own, all)| own / all)),
            row.counted.map_or("-".into(), |counted| format!("{:.2}", counted.bytes / 1e6)),
            percent(row.counted.map(|counted| counted.active)),
        ]);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(statement: &str, name: &str, bytes: Option<u64>) -> Kernel {
        Kernel {
            statement: statement.into(),
            name: name.into(),
            microseconds: 2.0,
            launches: 1,
            grid: None,
            block: None,
            registers: None,
            shared_memory: None,
            occupancy: None,
            bytes,
        }
    }

    #[test]
    fn bytes_are_claimed_only_where_they_are_known() {
        let kernels = [
            kernel("tmp_0", "add", None),
            kernel("tmp_1", "sum_1", None),
            kernel("tmp_1", "sum_2", None),
            kernel("", "Memcpy", Some(64)),
        ];
        let statements: Statements = [
            ("tmp_0".to_string(), ("add".to_string(), Some(4_000_000))),
            ("tmp_1".to_string(), ("sum".to_string(), Some(100))),
        ]
        .into();
        let counted =
            [("add".to_string(), Counted { launches: 1, bytes: 5e6, active: 0.5 })].into();
        let rows = rows(&kernels, &statements, &counted);
        let bytes: Vec<Option<u64>> = rows.iter().map(|row| row.bytes).collect();
        assert_eq!(bytes, [Some(4_000_000), None, None, Some(64)]);
        assert_eq!(rows[0].bandwidth(), Some(2e12));
        let value = rows[0].json(Some(4e12));
        assert_eq!(
            (&value["bandwidth_fraction"], &value["counted_bytes"]),
            (&0.5.into(), &5e6.into())
        );
        let text = kernel_table(&rows, 8.0, Some(4e12)).to_string();
        assert!(text.contains("2000") && text.contains("50 %") && text.contains("25 %"), "{text}");
    }
}
