//! A GPU as data: what the cost model and Triton's compiler need to know of one that is not here.

use crate::explain::Rates;
use passnet_graph::Diagnostic;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

/// Targets that this program carries, by the name that `--target` takes.
const BUNDLED: &[(&str, &str)] = &[("h200", include_str!("../targets/h200.json"))];

/// A longer file is no target.
const MOST_BYTES: u64 = 64 << 10;

/// A GPU, as a file describes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// What it is called.
    pub name: String,
    /// Where the numbers come from.
    pub source: String,
    /// CUDA's number for what it can do: major, minor.
    #[serde(deserialize_with = "capability")]
    pub compute_capability: [u32; 2],
    /// Its multiprocessors.
    #[serde(deserialize_with = "count")]
    pub multiprocessors: u64,
    /// Of one multiprocessor.
    #[serde(deserialize_with = "count")]
    pub shared_memory_bytes: u64,
    /// Read and written by a large copy.
    #[serde(deserialize_with = "rate")]
    pub bytes_per_second: f64,
    /// What a kernel takes at the least.
    #[serde(deserialize_with = "rate")]
    pub seconds_per_launch: f64,
    /// Multiplications and additions a second of a product of matrices, by the name of the type.
    #[serde(deserialize_with = "rates")]
    pub flops_per_second: BTreeMap<String, f64>,
}

impl Target {
    /// A bundled target by its name, or the one that a file describes.
    pub fn find(named: &str) -> Result<Target, Box<Diagnostic>> {
        if let Some((name, text)) = BUNDLED.iter().find(|(name, _)| *name == named) {
            return Target::parse(text, name);
        }
        let path = Path::new(named);
        let names: Vec<&str> = BUNDLED.iter().map(|(name, _)| *name).collect();
        let failed = |message: String| {
            let hint = format!("bundled targets: {}; others are files", names.join(", "));
            let diagnostic = Diagnostic::file(named, message);
            Box::new(Diagnostic { hint: Some(hint), ..diagnostic })
        };
        let file = std::fs::File::open(path).map_err(|error| failed(error.to_string()))?;
        let mut text = String::new();
        // The length that a file says it has is not what it gives: a device says none and never ends.
        let read = file.take(MOST_BYTES + 1).read_to_string(&mut text);
        read.map_err(|error| failed(error.to_string()))?;
        if text.len() as u64 > MOST_BYTES {
            return Err(failed(format!("more than {MOST_BYTES} bytes are too many for a target")));
        }
        Target::parse(&text, named)
    }

    fn parse(text: &str, file: &str) -> Result<Target, Box<Diagnostic>> {
        serde_json::from_str(text).map_err(|error| {
            let message = error.to_string();
            let end = message.rfind(" at line ").unwrap_or(message.len());
            let diagnostic = Diagnostic::file(file, &message[..end]);
            Box::new(Diagnostic {
                line: error.line(),
                column: error.column(),
                hint: Some(
                    "`passnet doctor --measure-target FILE` writes one on a machine with a GPU"
                        .into(),
                ),
                ..diagnostic
            })
        })
    }

    /// What the cost model asks for.
    pub fn rates(&self) -> Rates {
        Rates {
            bytes_per_second: self.bytes_per_second,
            seconds_per_launch: self.seconds_per_launch,
            multiprocessors: usize::try_from(self.multiprocessors).unwrap_or(usize::MAX),
        }
    }

    /// As a file.
    pub fn text(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }
}

fn rate<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let value = f64::deserialize(deserializer)?;
    match value.is_finite() && value > 0.0 {
        true => Ok(value),
        false => Err(D::Error::custom(format!("{value} is no rate: it must be above zero"))),
    }
}

fn rates<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, f64>, D::Error> {
    #[derive(Deserialize)]
    struct Rate(#[serde(deserialize_with = "rate")] f64);
    let rates = BTreeMap::<String, Rate>::deserialize(deserializer)?;
    Ok(rates.into_iter().map(|(name, Rate(rate))| (name, rate)).collect())
}

fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    match u64::deserialize(deserializer)? {
        0 => Err(D::Error::custom("there must be at least one")),
        value => Ok(value),
    }
}

/// Triton's names of targets have one digit for the second number.
fn capability<'de, D: Deserializer<'de>>(deserializer: D) -> Result<[u32; 2], D::Error> {
    let [major, minor] = <[u32; 2]>::deserialize(deserializer)?;
    match (5..100).contains(&major) && minor < 10 {
        true => Ok([major, minor]),
        false => Err(D::Error::custom(format!("no GPU has compute capability {major}.{minor}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::Target;

    #[test]
    fn bundled_targets_are_read_and_written_back() {
        let target = Target::find("h200").unwrap();
        assert_eq!(target.compute_capability, [9, 0]);
        assert_eq!(Target::parse(&target.text(), "again").unwrap(), target);
        assert_eq!(target.rates().multiprocessors, 132);
        assert!(target.source.contains("--measure-target"), "{}", target.source);
    }

    #[test]
    fn a_hostile_file_is_refused_with_its_place() {
        let good = Target::find("h200").unwrap().text();
        for (old, new, line, words) in [
            ("132", "0", 8, "at least one"),
            ("3905310881901.75", "-1", 10, "no rate"),
            ("3905310881901.75", "1e999", 10, "number out of range"),
            ("\"name\"", "\"nome\"", 2, "unknown field `nome`"),
            ("    9,\n    0\n", "    1,\n    0\n", 7, "capability 1.0"),
            ("\"NVIDIA H200\"", "7", 2, "invalid type"),
            ("{\n  \"name\"", "[{\n  \"name\"", 1, "invalid"),
        ] {
            assert!(good.contains(old), "{old} is not in\n{good}");
            let error = Target::parse(&good.replacen(old, new, 1), "t.json").unwrap_err();
            assert!(error.message.contains(words), "{error:?}");
            assert!(error.file == "t.json" && error.line == line && error.column > 0, "{error:?}");
            assert!(!error.message.contains(" at line "), "{error:?}");
        }
        let cut = Target::parse(&good[..good.len() / 2], "t.json").unwrap_err();
        assert!(cut.line > 1, "{cut:?}");
        #[cfg(target_os = "linux")]
        {
            let endless = Target::find("/dev/zero").unwrap_err();
            assert!(endless.message.contains("too many"), "{endless:?}");
        }
        let missing = Target::find("/no/such/target.json").unwrap_err();
        assert!(missing.hint.unwrap().contains("h200"));
    }
}
