//! The trace of PyTorch's profiler: which kernels ran, for how long, in which shape, and for which statement of the graph.
//!
//! A kernel is found by the call that launched it (they share a correlation number), and that call lies in time within the
//! record that the statement was run under.

use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;

/// What begins the name of a statement's record.
const MARK: &str = "passnet:";

/// What `passnet.graphs.profile_cuda` writes.
#[derive(Debug, Deserialize)]
pub(super) struct Profile {
    pub(super) device: String,
    /// Bytes a second that a copy moves there.
    pub(super) bandwidth: Option<f64>,
    pub(super) calls: u64,
    trace: Trace,
}

#[derive(Debug, Deserialize)]
struct Trace {
    #[serde(rename = "traceEvents")]
    events: Vec<Event>,
}

#[derive(Debug, Deserialize)]
struct Event {
    #[serde(default, rename = "cat")]
    category: String,
    #[serde(default, deserialize_with = "text")]
    name: String,
    /// Microseconds.
    #[serde(default, rename = "ts", deserialize_with = "number")]
    begin: f64,
    #[serde(default, rename = "dur", deserialize_with = "number")]
    length: f64,
    #[serde(default)]
    args: Args,
}

#[derive(Debug, Default, Deserialize)]
struct Args {
    #[serde(default)]
    correlation: Option<u64>,
    #[serde(default)]
    grid: Option<[u64; 3]>,
    #[serde(default)]
    block: Option<[u64; 3]>,
    #[serde(default, rename = "registers per thread")]
    registers: Option<u64>,
    #[serde(default, rename = "shared memory")]
    shared_memory: Option<u64>,
    #[serde(default, rename = "est. achieved occupancy %")]
    occupancy: Option<f64>,
    /// Of copies and fills.
    #[serde(default)]
    bytes: Option<u64>,
}

/// Events of other kinds have what they like in these places.
fn number<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(serde_json::Value::deserialize(from)?.as_f64().unwrap_or(0.0))
}

fn text<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Ok(serde_json::Value::deserialize(from)?.as_str().unwrap_or_default().to_string())
}

/// One kernel, copy or fill of one statement, over all calls.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Kernel {
    pub(super) statement: String,
    pub(super) name: String,
    /// Of one call of the graph, the shortest that was seen.
    pub(super) microseconds: f64,
    /// Launches in one call of the graph.
    pub(super) launches: u64,
    pub(super) grid: Option<[u64; 3]>,
    pub(super) block: Option<[u64; 3]>,
    pub(super) registers: Option<u64>,
    pub(super) shared_memory: Option<u64>,
    /// Share of the warps that a processor can hold, from the kernel's registers, shared memory and shape.
    pub(super) occupancy: Option<f64>,
    /// That it certainly moves: known of copies and fills alone.
    pub(super) bytes: Option<u64>,
}

impl Profile {
    pub(super) fn parse(text: &[u8]) -> Result<Profile, String> {
        serde_json::from_slice(text).map_err(|error| format!("no trace of the profiler: {error}"))
    }

    /// Kernels in the order in which they first ran.
    pub(super) fn kernels(&self) -> Vec<Kernel> {
        let events = &self.trace.events;
        let mut records: Vec<&Event> = events
            .iter()
            .filter(|e| e.category == "user_annotation" && e.name.starts_with(MARK))
            .collect();
        records.sort_by(|a, b| a.begin.total_cmp(&b.begin));
        let launched: BTreeMap<u64, f64> = events
            .iter()
            .filter(|event| matches!(event.category.as_str(), "cuda_runtime" | "cuda_driver"))
            .filter_map(|event| Some((event.args.correlation?, event.begin)))
            .collect();
        let statement = |event: &Event| -> String {
            let time = event.args.correlation.and_then(|number| launched.get(&number));
            let record = time.and_then(|time| {
                // Records lie one after the other; the last that begins before is the one.
                let after = records.partition_point(|record| record.begin <= *time);
                let record = records.get(after.checked_sub(1)?)?;
                (*time <= record.begin + record.length).then_some(record)
            });
            record.map_or(String::new(), |record| record.name[MARK.len()..].to_string())
        };
        let is_work = |event: &&Event| {
            matches!(event.category.as_str(), "kernel" | "gpu_memcpy" | "gpu_memset")
        };
        let mut work: Vec<(&Event, String)> =
            events.iter().filter(is_work).map(|event| (event, statement(event))).collect();
        work.sort_by(|(a, _), (b, _)| a.begin.total_cmp(&b.begin));
        let mut order: Vec<(String, String)> = Vec::new();
        let mut found: BTreeMap<(String, String), Vec<&Event>> = BTreeMap::new();
        for (event, statement) in work {
            let key = (statement, event.name.clone());
            if !found.contains_key(&key) {
                order.push(key.clone());
            }
            found.entry(key).or_default().push(event);
        }
        order.into_iter().filter_map(|key| Some(self.kernel(found.remove(&key)?, key))).collect()
    }

    fn kernel(&self, events: Vec<&Event>, (statement, name): (String, String)) -> Kernel {
        let calls = self.calls.max(1);
        let launches = (events.len() as u64).div_ceil(calls).max(1);
        let first = &events[0].args;
        let mut times: Vec<f64> = events
            .chunks(launches as usize)
            .map(|call| call.iter().map(|e| e.length).sum())
            .collect();
        // The last call may be cut off.
        if !(events.len() as u64).is_multiple_of(launches) && times.len() > 1 {
            times.pop();
        }
        Kernel {
            statement,
            name,
            microseconds: times.into_iter().fold(f64::INFINITY, f64::min),
            launches,
            grid: first.grid,
            block: first.block,
            registers: first.registers,
            shared_memory: first.shared_memory,
            occupancy: first.occupancy.map(|percent| percent / 100.0),
            bytes: first.bytes.map(|bytes| bytes * launches),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// Two calls of a graph of two statements, in the form that PyTorch writes; the second statement launches twice.
    pub(in super::super) fn recorded() -> Value {
        let mut events = vec![
            json!({ "ph": "M", "name": "process_name", "pid": 1, "args": { "name": "python" } }),
            json!({ "ph": "X", "cat": "cpu_op", "name": "aten::add", "ts": 101.0, "dur": 8, "args": { "External id": 1 } }),
        ];
        for call in 0..2u64 {
            let at = 100.0 + 1000.0 * call as f64;
            let mut record = |name: &str, begin: f64| {
                events.push(
                    json!({ "ph": "X", "cat": "user_annotation", "name": format!("passnet:{name}"),
                                    "ts": begin, "dur": 20 }),
                );
            };
            record("tmp_0", at);
            record("tmp_1", at + 30.0);
            let mut launch = |number: u64, begin: f64, name: &str, length: f64| {
                let number = number + 10 * call;
                events.push(json!({ "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel",
                                    "ts": begin, "dur": 3, "args": { "correlation": number } }));
                events.push(json!({ "ph": "X", "cat": "kernel", "name": name, "ts": begin + 400.0, "dur": length,
                    "args": { "correlation": number, "registers per thread": 32, "shared memory": 1024,
                              "grid": [64, 1, 1], "block": [128, 1, 1], "blocks per SM": 0.48,
                              "warps per SM": 1.9, "est. achieved occupancy %": 75 } }));
            };
            launch(1, at + 5.0, "add_kernel", 10.0 + call as f64);
            launch(2, at + 31.0, "sum_kernel", 4.0);
            launch(3, at + 40.0, "sum_kernel", 5.0);
        }
        json!({ "device": "a GPU", "bandwidth": 1e12, "calls": 2, "trace": { "traceEvents": events } })
    }

    #[test]
    fn kernels_belong_to_the_statements_that_launched_them() {
        let profile = Profile::parse(recorded().to_string().as_bytes()).unwrap();
        let kernels = profile.kernels();
        let told: Vec<(&str, &str, f64, u64)> =
            kernels.iter().map(|k| (&*k.statement, &*k.name, k.microseconds, k.launches)).collect();
        assert_eq!(told, [("tmp_0", "add_kernel", 10.0, 1), ("tmp_1", "sum_kernel", 9.0, 2)]);
        assert_eq!((kernels[0].occupancy, kernels[0].registers), (Some(0.75), Some(32)));
        assert_eq!((kernels[0].grid, kernels[0].block), (Some([64, 1, 1]), Some([128, 1, 1])));
    }

    #[test]
    fn work_that_nobody_launched_is_shown_without_a_statement() {
        let mut value = recorded();
        let events = value["trace"]["traceEvents"].as_array_mut().unwrap();
        events.push(json!({ "cat": "gpu_memcpy", "name": "Memcpy DtoD", "ts": 9999.0, "dur": 2.5,
                            "args": { "correlation": 77, "bytes": 4096 } }));
        events.push(json!({ "cat": "Trace", "name": 7, "ts": "nonsense" }));
        let kernels = Profile::parse(value.to_string().as_bytes()).unwrap().kernels();
        let last = kernels.last().unwrap();
        assert_eq!((&*last.statement, last.bytes, last.microseconds), ("", Some(4096), 2.5));
        for broken in ["", "[]", "{\"device\": 1}"] {
            assert!(Profile::parse(broken.as_bytes()).is_err());
        }
    }
}
