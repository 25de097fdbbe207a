//! The table of operations. Everything that needs to know what an operation is (inference, matching, the
//! engines, fusion) asks here; no file elsewhere that interprets graphs, wrappers or
//! kernels names an operation by a string.
//!
//! An operation has one entry ([`OpSpec`]) however many ways there are to spell it: `torch.relu(x)`,
//! `torch.nn.functional.relu(x)`, `x.relu()` and `x.relu_()` are one operation with four spellings. Calls
//! are compared and interpreted through [`Call::bind`](crate::Call::bind), which lays the arguments out by the signature.

mod bind;
mod flops;
mod kinds;
mod op;
pub mod python;
mod signature;
mod spelling;
mod table;

pub use bind::{Bound, Value};
pub use flops::flops;
pub use kinds::{Alias, Class};
pub use op::Op;
pub use signature::{Param, ParamType, Signature};
pub use spelling::{CalleeKind, Spelling, nearest_spelling, spelling, spellings};

use crate::dtype::DType;
use std::sync::LazyLock;

/// One operation of the table, as the family files write it.
#[derive(Debug)]
pub struct OpSpec {
    /// Which operation it describes.
    pub op: Op,
    /// What kind of work it is.
    pub class: Class,
    /// What the result shares with the first argument.
    pub alias: Alias,
    /// Overloads in the order in which they are tried; the notation is explained in `signature.rs`.
    pub signatures: &'static [&'static str],
    /// `torch.add` a function, `.add` a method, `op:add` an operator of Python, `@T` an attribute.
    /// A name that ends in one underscore, and an augmented operator, mutate their first argument.
    pub spellings: &'static [&'static str],
}

/// A table entry with its signatures parsed.
#[derive(Debug)]
pub struct Entry {
    /// The entry as it is written.
    pub spec: &'static OpSpec,
    /// Its overloads, parsed, in the order in which they are tried.
    pub signatures: Vec<Signature>,
}

static ENTRIES: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    let mut specs: Vec<&'static OpSpec> = table::FAMILIES.iter().copied().flatten().collect();
    specs.sort_by_key(|spec| spec.op);
    specs
        .into_iter()
        .map(|spec| Entry {
            spec,
            signatures: spec.signatures.iter().map(|text| Signature::parse(text)).collect(),
        })
        .collect()
});

impl Op {
    /// This operation's entry. A test proves that every operation has exactly one.
    pub fn entry(self) -> &'static Entry {
        &ENTRIES[self as usize]
    }

    /// What kind of work the operation is.
    pub fn class(self) -> Class {
        self.entry().spec.class
    }

    /// What its result shares with its first argument.
    pub fn alias(self) -> Alias {
        self.entry().spec.alias
    }

    /// The table's own name for the operation, for people.
    pub fn name(self) -> &'static str {
        self.entry().spec.spellings[0]
            .trim_start_matches(['.', '@'])
            .rsplit(['.', ':'])
            .next()
            .unwrap_or("")
    }

    /// The type that a conversion names by itself, as `x.half()` does.
    pub fn converts_to(self) -> Option<DType> {
        Some(match self {
            Op::Float => DType::Float32,
            Op::Double => DType::Float64,
            Op::Half => DType::Float16,
            Op::Bfloat16 => DType::BFloat16,
            Op::Long => DType::Int64,
            Op::Int => DType::Int32,
            Op::Short => DType::Int16,
            Op::Byte => DType::UInt8,
            Op::Bool => DType::Bool,
            _ => return None,
        })
    }

    /// All operations, in table order.
    pub fn all() -> impl Iterator<Item = Op> {
        ENTRIES.iter().map(|entry| entry.spec.op)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustc_hash::FxHashSet;

    #[test]
    fn every_operation_has_exactly_one_entry() {
        let ops: Vec<Op> = Op::all().collect();
        assert_eq!(ops.len(), Op::COUNT);
        for (index, op) in ops.iter().enumerate() {
            assert_eq!(*op as usize, index, "{op:?} is missing or has two entries");
        }
    }

    #[test]
    fn no_spelling_belongs_to_two_operations() {
        let mut seen = FxHashSet::default();
        for entry in ENTRIES.iter() {
            for spelling in entry.spec.spellings {
                assert!(seen.insert(*spelling), "{spelling} stands twice");
            }
        }
    }

    #[test]
    fn mutation_follows_from_the_spelling() {
        let mutates = |kind, path| spelling(kind, path).map(|s| s.mutates);
        assert_eq!(mutates(CalleeKind::Method, "relu_"), Some(true));
        assert_eq!(mutates(CalleeKind::Method, "__and__"), Some(false));
        assert_eq!(mutates(CalleeKind::Operator, "iadd"), Some(true));
        assert_eq!(mutates(CalleeKind::Operator, "add"), Some(false));
        assert_eq!(mutates(CalleeKind::Operator, "setitem"), Some(true));
    }
}
