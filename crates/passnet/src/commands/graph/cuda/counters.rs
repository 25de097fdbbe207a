//! What NVIDIA's `ncu` counts, where it is installed: the memory that kernels really moved, and how full processors were.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Bytes from and to the device's memory, and the share of warps that were active.
const METRICS: [&str; 2] = ["dram__bytes.sum", "sm__warps_active.avg.pct_of_peak_sustained_active"];

/// Of one kernel, all of its launches in a call of the graph together.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Counted {
    pub(super) launches: u64,
    pub(super) bytes: f64,
    /// Mean over the launches.
    pub(super) active: f64,
}

/// Where `ncu` is, if it is there.
pub(super) fn program() -> Option<std::path::PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join("ncu")).find(|file| file.is_file())
}

/// Runs one call of a graph under `ncu`; the reason where it refuses, as it does without the right to count.
pub(super) fn count(ncu: &Path, worker: &Command) -> Result<BTreeMap<String, Counted>, String> {
    let mut command = Command::new(ncu);
    command.args(["--csv", "--print-units", "base", "--metrics", &METRICS.join(",")]);
    command.arg(worker.get_program()).args(worker.get_args());
    for (name, value) in worker.get_envs() {
        if let Some(value) = value {
            command.env(name, value);
        }
    }
    let output = command.output().map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let counted = parse(&text);
    match counted.is_empty() {
        false => Ok(counted),
        true => {
            let said = text.lines().find(|line| line.contains("==ERROR=="));
            Err(said.unwrap_or("it counted no kernel").trim_start_matches("==ERROR== ").to_string())
        }
    }
}

/// Kernels by name from the lines of `ncu --csv`.
fn parse(text: &str) -> BTreeMap<String, Counted> {
    let mut lines = text.lines().skip_while(|line| !line.starts_with("\"ID\""));
    let Some(head) = lines.next() else { return BTreeMap::new() };
    let head = fields(head);
    let column = |name: &str| head.iter().position(|field| field == name);
    let (Some(kernel), Some(metric), Some(value)) =
        (column("Kernel Name"), column("Metric Name"), column("Metric Value"))
    else {
        return BTreeMap::new();
    };
    let mut found: BTreeMap<String, Counted> = BTreeMap::new();
    for line in lines {
        let fields = fields(line);
        let (Some(kernel), Some(metric), Some(value)) =
            (fields.get(kernel), fields.get(metric), fields.get(value))
        else {
            continue;
        };
        let Ok(value) = value.replace(',', "").parse::<f64>() else { continue };
        let counted = found.entry(kernel.clone()).or_default();
        match METRICS.iter().position(|known| known == metric) {
            Some(0) => {
                counted.launches += 1;
                counted.bytes += value;
            }
            Some(_) => counted.active += value / 100.0,
            None => {}
        }
    }
    for counted in found.values_mut() {
        counted.active /= counted.launches.max(1) as f64;
    }
    found
}

/// The fields of a line of CSV whose fields stand in quotes.
fn fields(line: &str) -> Vec<String> {
    let mut fields = Vec::new();
    let mut field = String::new();
    let mut is_quoted = false;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if is_quoted && chars.peek() == Some(&'"') => {
                chars.next();
                field.push('"');
            }
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => fields.push(std::mem::take(&mut field)),
            c => field.push(c),
        }
    }
    fields.push(field);
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_from_lines_of_csv() {
        let text = "==PROF== Connected to process 17\n\
            \"ID\",\"Process ID\",\"Kernel Name\",\"Metric Name\",\"Metric Unit\",\"Metric Value\"\n\
            \"0\",\"17\",\"void add<float, 4>(int)\",\"dram__bytes.sum\",\"byte\",\"1,048,576\"\n\
            \"0\",\"17\",\"void add<float, 4>(int)\",\"sm__warps_active.avg.pct_of_peak_sustained_active\",\"%\",\"60\"\n\
            \"1\",\"17\",\"void add<float, 4>(int)\",\"dram__bytes.sum\",\"byte\",\"1000\"\n\
            \"1\",\"17\",\"void add<float, 4>(int)\",\"sm__warps_active.avg.pct_of_peak_sustained_active\",\"%\",\"80\"\n\
            \"2\",\"17\",\"torn";
        let found = parse(text);
        assert_eq!(
            found["void add<float, 4>(int)"],
            Counted { launches: 2, bytes: 1_049_576.0, active: 0.7 }
        );
        assert_eq!(found.len(), 1);
        assert!(parse("==ERROR== ERR_NVGPUCTRPERM\n").is_empty());
    }
}
