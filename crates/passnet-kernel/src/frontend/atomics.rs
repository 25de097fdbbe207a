//! Atomic operations.

use super::arguments::Args;
use super::value::Value;
use super::{Compiler, Result};
use crate::ir::{AtomicOp, Op, ValueId};
use crate::types::Elem;
use passnet_graph::syntax::TextRange;
use std::rc::Rc;

impl<'a> Compiler<'a> {
    pub(super) fn atomic(&mut self, name: &str, args: Args<'a>) -> Result<Value<'a>> {
        let range = args.range;
        let Some(op) = AtomicOp::from_name(name) else {
            return Err(self.error(&range, format!("unknown atomic `{name}`")));
        };
        if let Some(Value::BlockPtr(p)) = args.positional.first() {
            let p = Rc::clone(p);
            let [_, offsets, value] = self.bind(args, ["self", "offsets", "value"], 3)?;
            let p = self.at_offsets(&range, &p, &offsets.unwrap_or(Value::NONE))?;
            let (ptr, inside) = self.window(&range, &p, &(0..p.block.len()).collect::<Vec<_>>())?;
            // What it gives on a GPU is nothing.
            self.atomic_at(&range, op, ptr, value.unwrap_or(Value::NONE), inside)?;
            return Ok(Value::NONE);
        }
        let [ptr, value, mask, ..] =
            self.bind(args, ["pointer", "val", "mask", "sem", "scope"], 2)?;
        let ptr = self.pointer(&range, &ptr.unwrap_or(Value::NONE))?;
        let (ptr, mask) = self.with_mask(&range, ptr, mask.filter(|m| !m.is_none()))?;
        self.atomic_at(&range, op, ptr, value.unwrap_or(Value::NONE), mask)
    }

    fn atomic_at(
        &mut self,
        range: &TextRange,
        op: AtomicOp,
        ptr: ValueId,
        value: Value<'a>,
        mask: Option<ValueId>,
    ) -> Result<Value<'a>> {
        let elem = self.ty(ptr).elem();
        let legal = match op {
            AtomicOp::Add | AtomicOp::Xchg => {
                elem.bits() >= 16 && !matches!(elem, Elem::I16 | Elem::U16)
            }
            AtomicOp::Max | AtomicOp::Min => elem.bits() >= 32,
            AtomicOp::And | AtomicOp::Or | AtomicOp::Xor => elem.is_int() && elem.bits() >= 32,
        };
        if !legal {
            return Err(self.error(range, format!("`atomic_{op}` does not support {elem}")));
        }
        let value = match value {
            Value::Const(c) => self.literal(range, &c, elem)?,
            other => {
                let v = self.tensor(range, &other)?;
                self.cast(v, elem)
            }
        };
        let shape = self.ty(ptr).shape;
        let value = self.broadcast_to(range, value, &shape)?;
        let ty = self.ty(value);
        let args: Vec<ValueId> = [Some(ptr), Some(value), mask].into_iter().flatten().collect();
        Ok(Value::Tensor(self.b.emit(Op::Atomic { op, mask: mask.is_some() }, &args, ty)))
    }

    pub(super) fn atomic_cas(&mut self, args: Args<'a>) -> Result<Value<'a>> {
        let range = args.range;
        let [ptr, compare, value, ..] =
            self.bind(args, ["pointer", "cmp", "val", "sem", "scope"], 3)?;
        let ptr = self.pointer(&range, &ptr.unwrap_or(Value::NONE))?;
        let ty = self.ty(ptr).with_elem(self.ty(ptr).elem());
        let mut operands = vec![ptr];
        for v in [compare, value] {
            let v = match v.unwrap_or(Value::NONE) {
                Value::Const(c) => self.literal(&range, &c, ty.elem())?,
                other => {
                    let v = self.tensor(&range, &other)?;
                    self.cast(v, ty.elem())
                }
            };
            operands.push(self.broadcast_to(&range, v, &ty.shape)?);
        }
        Ok(Value::Tensor(self.b.emit(Op::AtomicCas, &operands, ty)))
    }
}
