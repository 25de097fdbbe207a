//! What stops a running kernel.

use crate::ir::Loc;
use crate::types::Elem;
use std::fmt;

/// A kernel did something it must not do.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    /// What happened.
    pub kind: FaultKind,
    /// Which statement of the kernel it was.
    pub loc: Loc,
    /// The program that did it.
    pub program: [u32; 3],
}

/// What a kernel did that it must not do.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "fields say which access it was")]
pub enum FaultKind {
    /// An element that the buffer does not have.
    OutOfBounds {
        store: bool,
        /// Index of the buffer in the launch's memory.
        buffer: usize,
        /// Element accessed, counted from the start of the buffer.
        element: i64,
        /// Elements the buffer has.
        len: i64,
        lane: usize,
        elem: Elem,
    },
    /// Memory read that nothing wrote.
    Uninitialized { buffer: usize, element: i64 },
    /// Two programs of a launch touched one element, and what came of it depends on which was first.
    Race {
        buffer: usize,
        element: i64,
        how: Conflict,
        /// The other program's number; several may have been there.
        other: Option<u32>,
    },
    /// An index that its type does not hold.
    IndexOverflow { elem: Elem },
    /// A `tl.gather` beyond the axis.
    GatherIndex { index: i64, size: usize },
    /// `tl.device_assert` failed, with its message.
    Assert(String),
    /// More iterations than a loop may have.
    EndlessLoop,
    /// The time that was given is over.
    Deadline,
}

/// What a program does to an element that another program of the same launch touched before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conflict {
    /// Both write, different values.
    WritesWritten,
    /// One program reads what another one writes.
    ReadsWritten,
    /// One program writes what another one reads.
    WritesRead,
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FaultKind::OutOfBounds { store, element, len, lane, .. } => {
                let verb = if *store { "writes" } else { "reads" };
                write!(f, "lane {lane} {verb} element {element} of a buffer with {len} elements")
            }
            FaultKind::Uninitialized { element, .. } => {
                write!(f, "reads element {element}, which nothing wrote")
            }
            FaultKind::Race { element, how, other, .. } => {
                let other = other.map_or("another program".into(), |p| format!("program {p}"));
                match how {
                    Conflict::WritesWritten => {
                        write!(f, "writes element {element}, to which {other} wrote another value")
                    }
                    Conflict::ReadsWritten => write!(
                        f,
                        "reads element {element}, which {other} of the same launch writes; programs run in no order"
                    ),
                    Conflict::WritesRead => write!(
                        f,
                        "writes element {element}, which {other} of the same launch reads; programs run in no order"
                    ),
                }
            }
            FaultKind::IndexOverflow { elem } => write!(f, "index arithmetic overflows {elem}"),
            FaultKind::GatherIndex { index, size } => {
                write!(f, "gathers at index {index} of {size}")
            }
            FaultKind::Assert(message) if message.is_empty() => {
                f.write_str("device assertion failed")
            }
            FaultKind::Assert(message) => write!(f, "device assertion failed: {message}"),
            FaultKind::EndlessLoop => f.write_str("loop runs without end"),
            FaultKind::Deadline => f.write_str("not done in the time it was given"),
        }
    }
}
