//! The typed tile IR: SSA values over blocks of lanes, with structured control flow.
//!
//! A [`Function`] is one kernel after its compile-time arguments are folded in and its helpers are inlined.
//! It can be printed (`print`), read back ([`parse`]) and checked ([`verify`]).

mod arity;
mod ops;
pub mod parse;
pub mod print;
mod renumber;
pub mod verify;

pub use ops::{AtomicOp, BinaryOp, CmpOp, Literal, Op, ReduceOp, UnaryOp};

use crate::types::Type;

/// Index of a value in [`Function::types`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(pub u32);

impl ValueId {
    /// Its place among the values of the function.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Where an instruction came from: an index into [`Function::files`] and a line counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Loc {
    /// Which of the function's files.
    pub file: u16,
    /// Counted from one.
    pub line: u32,
}

/// One instruction. What its arguments mean is written beside each [`Op`].
#[derive(Debug, Clone, PartialEq)]
pub struct Inst {
    /// What it does.
    pub op: Op,
    /// What it takes.
    pub args: Vec<ValueId>,
    /// What it gives.
    pub results: Vec<ValueId>,
    /// The blocks inside it: branches, or the body of a loop.
    pub regions: Vec<Block>,
    /// The statement it came from.
    pub loc: Loc,
}

/// A sequence of instructions with parameters on entry and values handed back on exit.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Block {
    /// What it gets from the instruction around it.
    pub params: Vec<ValueId>,
    /// In order of execution.
    pub insts: Vec<Inst>,
    /// What it hands to the instruction around it.
    pub yields: Vec<ValueId>,
}

/// A kernel's run-time parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Param {
    /// As the kernel's text names it.
    pub name: String,
    /// Its value in the body.
    pub value: ValueId,
}

/// A kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct Function {
    /// As the kernel's text names it.
    pub name: String,
    /// Those of run time, in order.
    pub params: Vec<Param>,
    /// The type of each value.
    pub types: Vec<Type>,
    /// What it does.
    pub body: Block,
    /// The files that its statements came from.
    pub files: Vec<String>,
}

impl Function {
    /// The type of a value.
    pub fn ty(&self, value: ValueId) -> &Type {
        &self.types[value.index()]
    }

    /// The file of a statement.
    pub fn file(&self, loc: Loc) -> &str {
        self.files.get(loc.file as usize).map_or("", String::as_str)
    }

    /// Calls `visit` for every instruction, outer before inner.
    pub fn for_each_inst<'a>(&'a self, visit: &mut dyn FnMut(&'a Inst)) {
        fn walk<'a>(block: &'a Block, visit: &mut dyn FnMut(&'a Inst)) {
            for inst in &block.insts {
                visit(inst);
                for region in &inst.regions {
                    walk(region, visit);
                }
            }
        }
        walk(&self.body, visit);
    }
}
