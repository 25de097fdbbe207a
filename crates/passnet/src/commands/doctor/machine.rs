//! The machine itself.

use serde_json::{Value, json};
use std::process::{Command, Stdio};

#[derive(Debug)]
pub(super) struct Machine {
    processor: String,
    features: Vec<&'static str>,
    cores: usize,
    /// Bytes.
    memory: Option<u64>,
    /// What NVIDIA's own tool says of driver and devices.
    nvidia: Vec<String>,
}

impl Machine {
    pub(super) fn look() -> Machine {
        Machine {
            processor: processor(),
            features: features(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory: memory(),
            nvidia: nvidia(),
        }
    }

    pub(super) fn rows(&self) -> Vec<(&'static str, String)> {
        let mut rows = vec![
            ("processor", format!("{} ({})", self.processor, self.features.join(", "))),
            ("cores", self.cores.to_string()),
        ];
        if let Some(bytes) = self.memory {
            rows.push(("memory", format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30))));
        }
        for device in &self.nvidia {
            rows.push(("NVIDIA driver", device.clone()));
        }
        rows
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "processor": self.processor,
            "features": self.features,
            "cores": self.cores,
            "memory_bytes": self.memory,
            "nvidia": self.nvidia,
        })
    }
}

/// The value of the first `key: value` line of a file in `/proc`.
fn proc_value(file: &str, key: &str) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    let value = text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then(|| value.trim().to_string())
    });
    value.filter(|value| !value.is_empty())
}

fn processor() -> String {
    proc_value("/proc/cpuinfo", "model name").unwrap_or_else(|| std::env::consts::ARCH.into())
}

fn memory() -> Option<u64> {
    let text = proc_value("/proc/meminfo", "MemTotal")?;
    text.split(' ').next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// Those that the kernels and the matrix products look for.
fn features() -> Vec<&'static str> {
    #[cfg(target_arch = "x86_64")]
    {
        let known = [
            ("AVX2", std::is_x86_feature_detected!("avx2")),
            ("FMA", std::is_x86_feature_detected!("fma")),
            ("AVX-512", std::is_x86_feature_detected!("avx512f")),
        ];
        known.into_iter().filter(|(_, there)| *there).map(|(name, _)| name).collect()
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        Vec::new()
    }
}

fn nvidia() -> Vec<String> {
    let question = "--query-gpu=name,memory.total,driver_version,compute_cap";
    let answer = Command::new("nvidia-smi")
        .args([question, "--format=csv,noheader"])
        .stdin(Stdio::null())
        .output();
    match answer {
        Ok(answer) if answer.status.success() => {
            let text = String::from_utf8_lossy(&answer.stdout);
            text.lines().take(64).map(|line| line.trim().to_string()).collect()
        }
        _ => proc_value("/proc/driver/nvidia/version", "NVRM version").into_iter().collect(),
    }
}
