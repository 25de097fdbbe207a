//! How many arguments and results an operation has, and whether they are numbers.

use super::{Inst, Op};

/// Number of arguments and results; regions are counted too.
pub(super) fn arity(inst: &Inst) -> Result<(usize, usize), String> {
    let regions = match inst.op {
        Op::If | Op::While => 2,
        Op::For | Op::ReduceWith { .. } | Op::ScanWith { .. } => 1,
        _ => 0,
    };
    if inst.regions.len() != regions {
        return Err(format!("has {regions} regions"));
    }
    Ok(match &inst.op {
        Op::Const(_) | Op::ProgramId(_) | Op::NumPrograms(_) | Op::Arange(_) => (0, 1),
        Op::Splat
        | Op::Broadcast
        | Op::Reshape
        | Op::Permute(_)
        | Op::Unary(_)
        | Op::Cast
        | Op::Bitcast
        | Op::Reduce { .. }
        | Op::Scan { .. }
        | Op::Sort { .. } => (1, 1),
        Op::Join | Op::Cat | Op::Binary(_) | Op::Compare(_) | Op::AddPtr | Op::Gather { .. } => {
            (2, 1)
        }
        Op::Split | Op::ArgReduce { .. } => (1, 2),
        Op::Select | Op::Fma | Op::Dot | Op::AtomicCas => (3, 1),
        Op::Load { mask, other } => (1 + usize::from(*mask) + usize::from(*other), 1),
        Op::Store { mask } => (2 + usize::from(*mask), 0),
        Op::Atomic { mask, .. } => (2 + usize::from(*mask), 1),
        Op::Histogram { mask } => (1 + usize::from(*mask), 1),
        Op::ReduceWith { .. } | Op::ScanWith { .. } | Op::While => {
            (inst.results.len(), inst.results.len())
        }
        Op::If => (1, inst.results.len()),
        Op::For => (3 + inst.results.len(), inst.results.len()),
        Op::Assert(_) => (1, 0),
    })
}

/// Whether neither arguments nor results are pointers.
pub(super) fn takes_numbers(op: &Op) -> bool {
    matches!(
        op,
        Op::Const(_)
            | Op::Unary(_)
            | Op::Binary(_)
            | Op::Fma
            | Op::Cast
            | Op::Reduce { .. }
            | Op::ArgReduce { .. }
            | Op::Scan { .. }
            | Op::ReduceWith { .. }
            | Op::ScanWith { .. }
            | Op::Dot
            | Op::Sort { .. }
            | Op::Histogram { .. }
            | Op::Assert(_)
    )
}
