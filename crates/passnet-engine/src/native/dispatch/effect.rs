//! Calls made for what they do: modes that mean nothing here, assertions, vmap nesting.

use super::args::truth;
use super::{Args, OpFunction, vmap};
use crate::engine::Value;
use crate::native::error::{Result, bail};
use passnet_graph::ops::Op;

/// How the message of a failed assertion begins.
pub(crate) const ASSERTION: &str = "AssertionError";

pub(super) fn function_of(op: Op) -> Option<OpFunction> {
    Some(match op {
        Op::SetGradEnabled | Op::LogApiUsage | Op::LazyLoadDecompositions => nothing,
        Op::EnterAutocast | Op::ExitAutocast | Op::FunctionCtx => mode,
        Op::AssertScalar | Op::AssertAsync | Op::CheckSize => assert,
        Op::VmapIncrementNesting | Op::VmapDecrementNesting => vmap::nesting,
        Op::AddBatchDim => vmap::add_batch_dim,
        Op::RemoveBatchDim => vmap::remove_batch_dim,
        _ => return None,
    })
}

fn nothing(_: &Args<'_>) -> Result<Value> {
    Ok(Value::None)
}

/// Autocast of another device does not reach CPU tensors; on the CPU itself it would change types.
fn mode(args: &Args<'_>) -> Result<Value> {
    let enters = args.op == Op::EnterAutocast && args.text("device_type") == Some("cpu");
    if enters && (matches!(args.value("enabled"), Value::None) || args.flag("enabled")?) {
        bail!(Unsupported, "autocast on the CPU is not supported yet");
    }
    Ok(Value::Object)
}

fn assert(args: &Args<'_>) -> Result<Value> {
    let holds = match (args.op, args.value("value")) {
        (Op::CheckSize, Value::Number(number))
            if !matches!(number, crate::native::Scalar::Bool(_)) =>
        {
            let limit = args.optional_int("max")?.unwrap_or(i64::MAX);
            (0..=limit).contains(&number.to_i64())
        }
        (_, value) => truth(value)?,
    };
    if holds {
        return Ok(Value::None);
    }
    match args.text("message") {
        Some(message) => bail!(Value, "{ASSERTION}: {message}"),
        None => bail!(Value, "{ASSERTION}"),
    }
}
