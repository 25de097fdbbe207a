//! From the way a call is written to the operation it means.

use super::{ENTRIES, Op};
use rustc_hash::FxHashMap;
use std::sync::LazyLock;

/// How the callee is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CalleeKind {
    /// `torch.relu(x)`
    Function,
    /// `x.relu()`
    Method,
    /// `x + y`, `-x`, `x[i]`, `x += y`, `x[i] = y`; the path is Python's name in module `operator`.
    Operator,
    /// `x.T`
    Attribute,
}

/// One way to write one operation.
#[derive(Debug)]
pub struct Spelling {
    /// How it is called.
    pub kind: CalleeKind,
    /// The whole name of a function, or that of a method, operator or attribute.
    pub path: &'static str,
    /// What is meant by it.
    pub op: Op,
    /// Whether this spelling writes its result into the first argument.
    pub mutates: bool,
}

/// One map per [`CalleeKind`].
static SPELLINGS: LazyLock<[FxHashMap<&'static str, Spelling>; 4]> = LazyLock::new(|| {
    let mut maps = <[FxHashMap<&'static str, Spelling>; 4]>::default();
    for entry in ENTRIES.iter() {
        for text in entry.spec.spellings {
            let spelling = parse(text, entry.spec.op);
            maps[spelling.kind as usize].insert(spelling.path, spelling);
        }
    }
    maps
});

fn parse(text: &'static str, op: Op) -> Spelling {
    let (kind, path) = if let Some(path) = text.strip_prefix('.') {
        (CalleeKind::Method, path)
    } else if let Some(path) = text.strip_prefix('@') {
        (CalleeKind::Attribute, path)
    } else if let Some(path) = text.strip_prefix("op:") {
        (CalleeKind::Operator, path)
    } else {
        (CalleeKind::Function, text)
    };
    Spelling { kind, path, op, mutates: mutates(kind, path) }
}

fn mutates(kind: CalleeKind, path: &str) -> bool {
    match kind {
        CalleeKind::Operator => matches!(
            path,
            "iadd"
                | "isub"
                | "imul"
                | "itruediv"
                | "ifloordiv"
                | "imod"
                | "ipow"
                | "imatmul"
                | "iand"
                | "ior"
                | "ixor"
                | "ilshift"
                | "irshift"
                | "setitem"
        ),
        CalleeKind::Attribute => false,
        CalleeKind::Function | CalleeKind::Method => path.ends_with('_') && !path.ends_with("__"),
    }
}

/// The operation a callee means, if the table knows it.
pub fn spelling(kind: CalleeKind, path: &str) -> Option<&'static Spelling> {
    SPELLINGS[kind as usize].get(path)
}

/// All spellings, in table order.
pub fn spellings() -> impl Iterator<Item = &'static Spelling> {
    ENTRIES.iter().flat_map(|entry| entry.spec.spellings.iter()).filter_map(|text| {
        let parsed = parse(text, Op::all().next()?);
        spelling(parsed.kind, parsed.path)
    })
}

/// The known spelling most like an unknown one, for hints.
pub fn nearest_spelling(kind: CalleeKind, path: &str) -> Option<&'static Spelling> {
    let last = |path: &'static str| path.rsplit('.').next().unwrap_or(path);
    let wanted = path.rsplit('.').next().unwrap_or(path);
    spellings()
        .map(|spelling| {
            let distance = edit_distance(wanted, last(spelling.path));
            (distance, spelling.kind != kind, spelling)
        })
        .filter(|(distance, ..)| *distance <= wanted.len() / 3)
        .min_by_key(|(distance, other_kind, spelling)| (*distance, *other_kind, spelling.path))
        .map(|(.., spelling)| spelling)
}

fn edit_distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let a = &a[..a.len().min(64)];
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
