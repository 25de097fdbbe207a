//! Where evaluations run, as a model is told: what computes there, how fast it is, and what pays.

use passnet_bench::roofline::Rates;
use passnet_engine::{Engine, Identity};
use serde::{Deserialize, Serialize};

/// The engine of a run and what its device was measured to reach. Measured once: all attempts of a run read the same words.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Target {
    /// Engine, device, versions.
    pub identity: Identity,
    /// Left empty where prompts tell nothing of them.
    #[serde(default)]
    pub rates: Rates,
}

const CPU: &str =
    "Evaluation runs on a CPU that executes Triton kernels: few large programs are better than
many small ones.";

const WHAT_PAYS: &str = "What pays there:
- One launch for as much of the graph as can be: eager pays one for each operation, and small graphs are little else.
- Bytes moved once: what an operation hands to the next stays in registers. Neighbouring lanes touch neighbouring
  elements, so loads and stores are wide.
- Enough programs to fill the GPU, some hundreds at least: blocks of 512 to 4096 elements with `num_warps` 4 or 8, one
  program for a row of a reduction with `BLOCK` the next power of two. Few large programs leave most of it idle.
- `tl.dot` for products of matrices, on tiles of 64 to 128, with `num_stages` 2 to 4; float16 and bfloat16 accumulate
  in float32.
`match` and `check` are answered by a CPU in milliseconds; `evaluate` alone runs on the GPU.";

impl Target {
    /// Of an engine, with its device measured where that is told.
    pub fn of(engine: &dyn Engine) -> Target {
        let identity = engine.identity();
        let is_cpu = identity.device.kind == "cpu";
        let rates = if is_cpu { Rates::default() } else { Rates::measure(engine) };
        Target { identity, rates }
    }

    /// The paragraph of a prompt.
    pub fn describe(&self) -> String {
        let device = &self.identity.device;
        if device.kind == "cpu" {
            return CPU.to_string();
        }
        let mut text = format!("Evaluation runs on a GPU: {}", device.name);
        if let Some([major, minor]) = device.capability {
            text.push_str(&format!(" (compute capability {major}.{minor})"));
        }
        let versions = [("Triton", &self.identity.triton), ("PyTorch", &self.identity.torch)];
        let versions: Vec<String> = versions
            .into_iter()
            .filter_map(|(name, version)| Some(format!("{name} {}", version.as_ref()?)))
            .collect();
        if !versions.is_empty() {
            text.push_str(&format!(", with {}", versions.join(" and ")));
        }
        text.push('.');
        let measured = self.measured();
        if !measured.is_empty() {
            text.push_str(&format!("\nMeasured there: {}.", measured.join("; ")));
        }
        text.push('\n');
        text.push_str(WHAT_PAYS);
        text
    }

    fn measured(&self) -> Vec<String> {
        let Rates { bytes_per_second, least_seconds, flops_per_second } = &self.rates;
        let mut parts = Vec::new();
        if let Some(rate) = bytes_per_second {
            parts.push(format!("large copies move {} GB/s", rounded(rate / 1e9)));
        }
        if let Some(seconds) = least_seconds {
            let micros = rounded(seconds * 1e6);
            parts.push(format!("the smallest kernel takes the device {micros} µs"));
        }
        if !flops_per_second.is_empty() {
            let rates: Vec<String> = flops_per_second
                .iter()
                .map(|(dtype, rate)| format!("{} TFLOP/s in {dtype}", rounded(rate / 1e12)))
                .collect();
            parts.push(format!("products of matrices reach {}", rates.join(", ")));
        }
        parts
    }
}

/// Two digits: more would be noise.
fn rounded(value: f64) -> String {
    if value <= 0.0 || !value.is_finite() {
        return "0".into();
    }
    let digits = value.log10().floor() as i32;
    let unit = 10f64.powi(digits - 1);
    let decimals = usize::try_from(1 - digits).unwrap_or(0);
    format!("{:.decimals$}", (value / unit).round() * unit)
}

#[cfg(test)]
mod tests {
    use super::rounded;

    #[test]
    fn numbers_have_two_digits() {
        let shown = [4123.4, 51.6, 7.04, 0.0123, 99.7, 0.0].map(rounded);
        assert_eq!(shown, ["4100", "52", "7.0", "0.012", "100", "0"]);
    }
}
