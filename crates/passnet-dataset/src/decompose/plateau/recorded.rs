//! Kernel counts recorded in a file, as a profiler run on a GPU leaves them.
//!
//! One JSON object: `num_subgraph_ops` lists prefix lengths, `num_subgraph_kernels` the count for each, and
//! `start_offset_in_original_graph` says where the measured piece begins in the whole model. Other keys are ignored.

use super::{PrefixCount, fusible_ranges};
use crate::json;
use passnet_graph::Diagnostic;
use passnet_graph::syntax::Source;
use serde::de::{Error, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::ops::Range;

const OFFSET: &str = "start_offset_in_original_graph";
const KERNELS: &str = "num_subgraph_kernels";
const OPS: &str = "num_subgraph_ops";

/// No graph has nearly as many ops; a larger number in a file is a mistake.
const MAX_OPS: u64 = 1 << 32;

/// The kernel counts of the prefixes of one piece. The prefixes are ascending and distinct.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelCounts {
    start_offset: usize,
    prefixes: Vec<PrefixCount>,
}

impl KernelCounts {
    /// Counts of all prefixes in turn: `kernels[k]` belongs to the prefix of `k + 1` ops.
    pub fn of_every_prefix(start_offset: usize, kernels: impl IntoIterator<Item = u64>) -> Self {
        let prefixes =
            (1..).zip(kernels).map(|(ops, kernels)| PrefixCount { ops, kernels }).collect();
        Self { start_offset, prefixes }
    }

    /// The fusible ranges, counted in ops of the piece itself.
    pub fn ranges_in_piece(&self) -> Vec<Range<usize>> {
        fusible_ranges(&self.prefixes, 0)
    }

    /// The fusible ranges, counted in ops of the original graph.
    pub fn ranges_in_original(&self) -> Vec<Range<usize>> {
        fusible_ranges(&self.prefixes, self.start_offset)
    }

    /// Reads the text of a recording; an error says where in the text it is.
    pub fn parse(source: &Source) -> Result<Self, Diagnostic> {
        json::parse(source)
    }

    fn from_lists(offset: u64, kernels: &[u64], ops: &[u64]) -> Result<Self, String> {
        if kernels.len() != ops.len() {
            return Err(format!(
                "`{KERNELS}` has {} entries and `{OPS}` has {}",
                kernels.len(),
                ops.len()
            ));
        }
        let mut prefixes = Vec::with_capacity(ops.len());
        for (&ops, &kernels) in ops.iter().zip(kernels) {
            if ops == 0 {
                return Err(format!("`{OPS}` holds 0; a prefix has at least one op"));
            }
            prefixes.push(PrefixCount { ops: small(ops, OPS)?, kernels });
        }
        prefixes.sort_by_key(|prefix| prefix.ops);
        if let Some(pair) = prefixes.windows(2).find(|pair| pair[0].ops == pair[1].ops) {
            return Err(format!("`{OPS}` holds {} twice", pair[0].ops));
        }
        Ok(Self { start_offset: small(offset, OFFSET)?, prefixes })
    }
}

fn small(value: u64, key: &str) -> Result<usize, String> {
    usize::try_from(value)
        .ok()
        .filter(|_| value <= MAX_OPS)
        .ok_or_else(|| format!("`{key}` holds {value}, more than any graph has"))
}

/// Reads by hand so that contradictions between the lists are reported inside the object, where the reader still
/// knows its position.
struct RecordingVisitor;

impl<'de> Visitor<'de> for RecordingVisitor {
    type Value = KernelCounts;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object with `{OFFSET}`, `{KERNELS}` and `{OPS}`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<KernelCounts, A::Error> {
        let (mut offset, mut kernels, mut ops) = (None, None, None);
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                OFFSET => offset = Some(map.next_value::<u64>()?),
                KERNELS => kernels = Some(map.next_value::<Vec<u64>>()?),
                OPS => ops = Some(map.next_value::<Vec<u64>>()?),
                _ => _ = map.next_value::<IgnoredAny>()?,
            }
        }
        let kernels = kernels.ok_or_else(|| A::Error::missing_field(KERNELS))?;
        let ops = ops.ok_or_else(|| A::Error::missing_field(OPS))?;
        let offset = offset.ok_or_else(|| A::Error::missing_field(OFFSET))?;
        KernelCounts::from_lists(offset, &kernels, &ops).map_err(A::Error::custom)
    }
}

impl<'de> Deserialize<'de> for KernelCounts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(RecordingVisitor)
    }
}
