//! One set of passes with what is known of it.

use passnet_bench::verdict::VerdictKind;
use passnet_engine::Identity;
use passnet_engine::identity::DeviceIdentity;
use serde::{Deserialize, Serialize};

/// Changes whenever the meaning of `entry.json` does.
pub const FORMAT: u32 = 1;

/// What `entry.json` says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Of the file; a newer one is refused.
    pub format: u32,
    /// Of the names and contents of the pass files; the entry's folder begins with it.
    pub digest: String,
    /// For people: the task that the passes were written for, or their folder's name.
    pub name: String,
    /// In the order in which they are tried.
    pub passes: Vec<Listed>,
    /// Who wrote them, in words; empty where nobody said.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub author: String,
    /// Under what they may be used.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub licence: String,
    /// What PassBench said, by device.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Evidence>,
}

/// A pass of the set, with what its pattern needs: a graph that lacks one of these operations is not searched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    /// Of its file.
    pub name: String,
    /// By name, each once.
    pub operations: Vec<String>,
    /// Calls in the pattern.
    pub size: usize,
}

/// What became of the passes on one graph at one place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// By the name under which it was judged.
    pub graph: String,
    /// Digest of the graph's `model.py`.
    pub model: String,
    /// Of PassBench.
    pub verdict: VerdictKind,
    /// Eager's time over the candidate's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speedup: Option<f64>,
    /// Whether extreme inputs and watched kernels were part of it.
    pub thorough: bool,
    /// Where it was judged.
    pub identity: Identity,
    /// Seconds since 1970.
    pub time: u64,
}

/// What the evidence says of an entry on one device.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "each variant says what its fields are about")]
pub enum Standing {
    /// Every graph that was judged is right; the geometric mean of the speed-ups, where they were timed.
    Correct { speedup: Option<f64> },
    /// Nothing was judged here.
    Unknown,
    /// Some graph is not right.
    Wrong { graph: String, verdict: VerdictKind },
}

impl Entry {
    /// What is known on this device. What says nothing about the passes (they match nowhere in the graph, eager itself
    /// failed) counts for nothing.
    pub fn standing(&self, device: &DeviceIdentity) -> Standing {
        let says_nothing = [VerdictKind::NoMatch, VerdictKind::ReferenceFail];
        let here = || {
            self.evidence
                .iter()
                .filter(|known| known.identity.device.is_same_kind(device))
                .filter(|known| !says_nothing.contains(&known.verdict))
        };
        // The last word on a graph counts.
        let mut last: Vec<&Evidence> = Vec::new();
        for known in here() {
            last.retain(|older| older.graph != known.graph || older.model != known.model);
            last.push(known);
        }
        if let Some(wrong) = last.iter().find(|known| known.verdict != VerdictKind::Correct) {
            return Standing::Wrong { graph: wrong.graph.clone(), verdict: wrong.verdict };
        }
        if last.is_empty() {
            return Standing::Unknown;
        }
        let timed: Vec<f64> = last.iter().filter_map(|known| known.speedup).collect();
        let mean = timed.iter().map(|speedup| speedup.ln()).sum::<f64>() / timed.len() as f64;
        Standing::Correct { speedup: (!timed.is_empty()).then(|| mean.exp()) }
    }

    /// Takes over what another copy of the same passes knows.
    pub fn learn(&mut self, other: &Entry) -> usize {
        let before = self.evidence.len();
        for known in &other.evidence {
            if !self.evidence.contains(known) {
                self.evidence.push(known.clone());
            }
        }
        self.evidence.sort_by_key(|known| known.time);
        if self.author.is_empty() {
            self.author.clone_from(&other.author);
        }
        if self.licence.is_empty() {
            self.licence.clone_from(&other.licence);
        }
        self.evidence.len() - before
    }
}

/// Whether evidence of one device holds on another: the same model of processor or GPU.
trait SameKind {
    fn is_same_kind(&self, other: &Self) -> bool;
}

impl SameKind for DeviceIdentity {
    fn is_same_kind(&self, other: &DeviceIdentity) -> bool {
        self.kind == other.kind && self.name == other.name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(name: &str) -> DeviceIdentity {
        DeviceIdentity { kind: "cuda".into(), name: name.into(), ..DeviceIdentity::default() }
    }

    fn evidence(graph: &str, verdict: VerdictKind, speedup: Option<f64>, time: u64) -> Evidence {
        Evidence {
            graph: graph.into(),
            model: "0".into(),
            verdict,
            speedup,
            thorough: true,
            identity: Identity { device: device("here"), ..Identity::default() },
            time,
        }
    }

    fn entry(evidence: Vec<Evidence>) -> Entry {
        let (digest, name) = ("d".into(), "n".into());
        let (author, licence) = Default::default();
        Entry { format: FORMAT, digest, name, passes: Vec::new(), author, licence, evidence }
    }

    #[test]
    fn evidence_holds_on_the_device_that_gave_it() {
        let known = entry(vec![evidence("g", VerdictKind::Correct, Some(2.0), 1)]);
        assert_eq!(known.standing(&device("elsewhere")), Standing::Unknown);
        let Standing::Correct { speedup: Some(speedup) } = known.standing(&device("here")) else {
            panic!("{:?}", known.standing(&device("here")))
        };
        assert!((speedup - 2.0).abs() < 1e-9);
    }

    #[test]
    fn one_wrong_graph_is_enough_and_the_last_word_counts() {
        let wrong = evidence("g", VerdictKind::Accuracy, None, 1);
        let right = evidence("g", VerdictKind::Correct, None, 2);
        let other = evidence("h", VerdictKind::Correct, None, 1);
        let standing = |all: &[&Evidence]| {
            entry(all.iter().map(|e| (*e).clone()).collect()).standing(&device("here"))
        };
        assert!(matches!(standing(&[&wrong, &other]), Standing::Wrong { .. }));
        assert_eq!(standing(&[&wrong, &right, &other]), Standing::Correct { speedup: None });
        assert!(matches!(standing(&[&right, &wrong]), Standing::Wrong { .. }));
    }

    #[test]
    fn where_a_pass_matches_nowhere_nothing_is_known_of_it() {
        let known = entry(vec![evidence("g", VerdictKind::NoMatch, None, 1)]);
        assert_eq!(known.standing(&device("here")), Standing::Unknown);
    }

    #[test]
    fn copies_of_the_same_passes_share_what_they_know_once() {
        let one = evidence("g", VerdictKind::Correct, Some(2.0), 5);
        let two = evidence("h", VerdictKind::Correct, Some(3.0), 3);
        let mut first = entry(vec![one.clone()]);
        let mut second = entry(vec![one, two]);
        second.author = "somebody".into();
        assert_eq!(first.learn(&second), 1);
        assert_eq!(first.learn(&second), 0);
        assert_eq!(first.author, "somebody");
        assert_eq!(first.evidence[0].graph, "h", "in the order of time");
    }
}
