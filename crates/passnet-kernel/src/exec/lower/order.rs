//! The order in which instructions are lowered: what is loaded waits until it is needed.
//!
//! Kernels load where it reads well, often long before the use. A group ends where blocks of another shape are worked on,
//! and what it computed for later groups goes through memory; a load that waits joins the group that uses it.

use super::{Lower, Result};
use crate::ir::{Block, Inst, Op, ValueId};
use rustc_hash::FxHashMap;

/// Instructions that wait at a time.
const MOST: usize = 64;

/// Loads, and elementwise work on what they bring, in the order of the program.
#[derive(Default)]
struct Waiting<'b> {
    insts: Vec<Option<&'b Inst>>,
    made_by: FxHashMap<ValueId, usize>,
}

impl<'b> Waiting<'b> {
    fn push(&mut self, inst: &'b Inst) {
        self.made_by.extend(inst.results.iter().map(|v| (*v, self.insts.len())));
        self.insts.push(Some(inst));
    }

    fn holds(&self, inst: &Inst) -> bool {
        inst.args.iter().any(|arg| self.made_by.contains_key(arg))
    }

    /// Takes out what these values need, in the order of the program.
    fn take(&mut self, values: &[ValueId]) -> Vec<&'b Inst> {
        let mut open: Vec<ValueId> = values.to_vec();
        let mut found = Vec::new();
        while let Some(value) = open.pop() {
            let Some(at) = self.made_by.remove(&value) else { continue };
            if let Some(inst) = self.insts[at].take() {
                open.extend(&inst.args);
                found.push((at, inst));
            }
        }
        found.sort_unstable_by_key(|(at, _)| *at);
        found.into_iter().map(|(_, inst)| inst).collect()
    }

    fn take_all(&mut self) -> Vec<&'b Inst> {
        self.made_by.clear();
        self.insts.drain(..).flatten().collect()
    }

    /// The results of the loads for which `is_meant` holds.
    fn loaded(&self, is_meant: impl Fn(&Inst) -> bool) -> Vec<ValueId> {
        let loads = self.insts.iter().flatten().filter(|it| matches!(it.op, Op::Load { .. }));
        loads.filter(|it| is_meant(it)).flat_map(|it| it.results.iter().copied()).collect()
    }
}

impl Lower<'_> {
    pub(super) fn block(&mut self, block: &Block) -> Result<()> {
        let mut waiting = Waiting::default();
        for inst in &block.insts {
            let ready = match &inst.op {
                Op::Load { .. } => {
                    waiting.push(inst);
                    Vec::new()
                }
                op if (op.is_elementwise() || is_view(op)) && waiting.holds(inst) => {
                    waiting.push(inst);
                    Vec::new()
                }
                Op::Store { .. } => {
                    // What is loaded from there must be loaded before.
                    let root = |inst: &Inst| self.roots[inst.args[0].index()];
                    let meets = |load: &Inst| self.may_alias(root(load), root(inst));
                    let mut first = waiting.loaded(meets);
                    first.extend(&inst.args);
                    let mut ready = self.smaller_first(waiting.take(&first));
                    ready.push(inst);
                    ready
                }
                _ if comes_after_all(inst) => {
                    let mut ready = self.smaller_first(waiting.take_all());
                    ready.push(inst);
                    ready
                }
                _ => {
                    let mut ready = self.smaller_first(waiting.take(&inst.args));
                    ready.push(inst);
                    ready
                }
            };
            self.lower_all(ready)?;
            if waiting.insts.len() > MOST {
                let ready = waiting.take_all();
                self.lower_all(ready)?;
            }
        }
        self.lower_all(waiting.take_all())
    }

    /// Smaller blocks before larger ones, which are made of them: groups of the same lanes are not torn apart.
    fn smaller_first<'b>(&self, mut insts: Vec<&'b Inst>) -> Vec<&'b Inst> {
        let lanes = |inst: &&Inst| inst.results.iter().map(|v| self.ty(*v).numel()).max();
        insts.sort_by_key(lanes);
        insts
    }

    fn lower_all(&mut self, insts: Vec<&Inst>) -> Result<()> {
        for inst in insts {
            self.loc = inst.loc;
            self.inst(inst)?;
            for arg in &inst.args {
                self.used(*arg);
            }
            if self.arena.high_water() > super::MAX_ARENA_BYTES {
                return Err(self.error("the blocks of this kernel need too much memory"));
            }
        }
        Ok(())
    }
}

/// Whether everything before has to be done: what happens shows outside, or a region may use anything.
fn comes_after_all(inst: &Inst) -> bool {
    !inst.regions.is_empty() || matches!(inst.op, Op::Atomic { .. } | Op::AtomicCas | Op::Assert(_))
}

fn is_view(op: &Op) -> bool {
    matches!(op, Op::Splat | Op::Broadcast | Op::Reshape | Op::Permute(_))
}
