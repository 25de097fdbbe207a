//! Calls made for what they do, and vmap: inside it, a mapped dimension is hidden from every operation.

use super::args::{Args, wrap_axis};
use super::problem::{Inferred, Problem};
use super::value::{MappedDim, Value};
use crate::ops::Op;
use smallvec::SmallVec;

pub(super) fn effect(args: &Args) -> Inferred<Value> {
    Ok(match args.op() {
        // Autocast of a real device does not reach the types inferred here, as it does not reach meta tensors.
        Op::EnterAutocast => Value::Object("autocast"),
        Op::FunctionCtx => Value::Object("FunctionCtx"),
        Op::VmapIncrementNesting => Value::int(args.scope.enter_vmap()),
        Op::VmapDecrementNesting => Value::int(args.scope.leave_vmap()),
        Op::AddBatchDim => return hide(args),
        Op::RemoveBatchDim => return restore(args),
        _ => Value::None,
    })
}

fn hide(args: &Args) -> Inferred<Value> {
    let mut tensor = args.tensor("input")?.clone();
    let axis = args.axis("in_dim", tensor.rank())?;
    if axis >= tensor.rank() {
        return Err(Problem::invalid("vmap: a tensor without dimensions cannot be mapped"));
    }
    let dim = tensor.shape.remove(axis);
    let stride = tensor.strides.remove(axis);
    tensor.mapped.push(MappedDim { level: args.int("level")?.size, dim, stride });
    tensor.mapped.sort_by_key(|mapped| mapped.level);
    Ok(tensor.into())
}

fn restore(args: &Args) -> Inferred<Value> {
    let mut tensor = args.tensor("input")?.clone();
    let axis = wrap_axis(args.int("out_dim")?.size, tensor.rank() + 1)?;
    let level = args.int("level")?.size;
    let (dim, stride) = match tensor.mapped.iter().position(|mapped| mapped.level == level) {
        Some(place) => {
            let mapped = tensor.mapped.remove(place);
            (mapped.dim, mapped.stride)
        }
        // The result does not depend on the mapped value: it is repeated.
        None => (args.int("batch_size")?, 0),
    };
    tensor.shape.insert(axis, dim);
    tensor.strides.insert(axis, stride);
    Ok(tensor.into())
}

/// A new tensor computed from mapped ones is mapped as they are, mapped dimensions outermost in memory.
pub(super) fn keep_mapped(args: &Args, value: &mut Value) {
    let mut mapped: SmallVec<[MappedDim; 0]> = SmallVec::new();
    for slot in &args.bound.values {
        let mut visit = |id| collect(args.scope.value(id), &mut mapped);
        match slot {
            crate::ops::Value::Given(arg) => arg.for_each_node(&mut visit),
            crate::ops::Value::Rest(items) => {
                items.iter().for_each(|arg| arg.for_each_node(&mut visit));
            }
            crate::ops::Value::Default(_) => {}
        }
    }
    if mapped.is_empty() {
        return;
    }
    mapped.sort_by_key(|mapped| mapped.level);
    value.for_each_tensor_mut(&mut |tensor| {
        if tensor.origin != super::value::FRESH {
            return;
        }
        let mut step = tensor.elements().max(1);
        let mut own = mapped.clone();
        for dim in own.iter_mut().rev() {
            dim.stride = step;
            step = step.saturating_mul(dim.dim.size);
        }
        tensor.mapped = own;
    });
}

fn collect(value: &Value, into: &mut SmallVec<[MappedDim; 0]>) {
    match value {
        Value::Tensor(tensor) => {
            for mapped in &tensor.mapped {
                if into.iter().all(|seen| seen.level != mapped.level) {
                    into.push(mapped.clone());
                }
            }
        }
        Value::Sequence(items) => items.iter().for_each(|item| collect(item, into)),
        _ => {}
    }
}
