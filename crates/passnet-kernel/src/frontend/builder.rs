//! Where instructions are collected while a kernel is compiled.

use crate::ir::{Inst, Literal, Loc, Op, ValueId};
use crate::types::{Elem, Type};

#[derive(Debug, Default)]
pub(super) struct Builder {
    pub(super) types: Vec<Type>,
    /// Open blocks, innermost last.
    open: Vec<Vec<Inst>>,
    pub(super) loc: Loc,
    pub(super) count: usize,
}

impl Builder {
    pub(super) fn fresh(&mut self, ty: Type) -> ValueId {
        self.types.push(ty);
        ValueId(self.types.len() as u32 - 1)
    }

    pub(super) fn ty(&self, value: ValueId) -> &Type {
        &self.types[value.index()]
    }

    pub(super) fn open(&mut self) {
        self.open.push(Vec::new());
    }

    pub(super) fn close(&mut self) -> Vec<Inst> {
        self.open.pop().unwrap_or_default()
    }

    pub(super) fn push(&mut self, inst: Inst) {
        self.count += 1;
        if let Some(block) = self.open.last_mut() {
            block.push(inst);
        }
    }

    pub(super) fn emit(&mut self, op: Op, args: &[ValueId], ty: Type) -> ValueId {
        let result = self.fresh(ty);
        self.push(Inst {
            op,
            args: args.to_vec(),
            results: vec![result],
            regions: Vec::new(),
            loc: self.loc,
        });
        result
    }

    pub(super) fn emit_effect(&mut self, op: Op, args: &[ValueId]) {
        self.push(Inst {
            op,
            args: args.to_vec(),
            results: Vec::new(),
            regions: Vec::new(),
            loc: self.loc,
        });
    }

    pub(super) fn int(&mut self, value: i64, elem: Elem) -> ValueId {
        self.emit(Op::Const(Literal::Int(value)), &[], Type::scalar(elem))
    }

    pub(super) fn float(&mut self, value: f64, elem: Elem) -> ValueId {
        self.emit(Op::Const(Literal::Float(value)), &[], Type::scalar(elem))
    }
}
