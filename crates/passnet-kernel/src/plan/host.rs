//! The entry points: plan a wrapper, find the wrapper of a pass.

use super::interp::{Interp, PlanLimits};
use super::tensor::{Tensor, TensorSpec};
use super::value::Value;
use super::{BufferSpec, Choices, Init, LaunchPlan, PLAN_VERSION, View};
use crate::consts::Const;
use crate::modules::ModuleSet;
use passnet_graph::Diagnostic;
use passnet_graph::syntax::Ranged;
use serde::{Deserialize, Serialize};
use std::rc::Rc;

/// One argument of a wrapper: an abstract tensor, or a constant such as a route string.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostArg {
    /// A tensor, by its type.
    Tensor(TensorSpec),
    /// A number, a text or a tuple.
    Const(Const),
}

/// Evaluates the wrapper for one input signature, with the first configuration of every tuned kernel.
pub fn plan(
    modules: &ModuleSet,
    wrapper: &str,
    args: &[HostArg],
    limits: PlanLimits,
) -> Result<LaunchPlan, Diagnostic> {
    plan_chosen(modules, wrapper, args, limits, &Choices::default())
}

/// Evaluates the wrapper for one input signature, with the configurations that were chosen.
pub fn plan_chosen(
    modules: &ModuleSet,
    wrapper: &str,
    args: &[HostArg],
    limits: PlanLimits,
    choices: &Choices,
) -> Result<LaunchPlan, Diagnostic> {
    let Some(function) = modules.function(0, wrapper) else {
        let file = modules.source(0).path();
        return Err(Diagnostic::file(file, format!("no function `{wrapper}` in this file"))
            .with_hint("`replacement_func` must return a function of the pass"));
    };
    let mut interp = Interp::new(modules, limits);
    interp.choices = choices.clone();
    let mut values = Vec::new();
    for (index, arg) in args.iter().enumerate() {
        values.push(match arg {
            HostArg::Const(c) => interp.constant(c.clone()),
            HostArg::Tensor(spec) => {
                let name = function
                    .def
                    .parameters
                    .iter_non_variadic_params()
                    .nth(index)
                    .map_or_else(|| format!("arg{index}"), |p| p.parameter.name.to_string());
                let Some(elements) = spec.storage_elements() else {
                    let file = modules.source(0).path();
                    return Err(Diagnostic::file(
                        file,
                        format!("argument {index} has an impossible shape"),
                    ));
                };
                let buffer =
                    BufferSpec { name, dtype: spec.dtype, elements, init: Init::Input(index) };
                let buffer = interp.add_buffer(&function.def.name, buffer)?;
                if !spec.aligned {
                    interp.unaligned.push(buffer);
                }
                Value::Tensor(Rc::new(Tensor {
                    buffer,
                    offset: 0,
                    shape: spec.shape.clone(),
                    stride: spec.stride.clone(),
                    dtype: spec.dtype,
                    device: spec.device,
                }))
            }
        });
    }
    let result =
        interp.call_function(function, None, values, Vec::new(), function.def.name.range())?;
    let mut returns = Vec::new();
    let returns_sequence = !matches!(result, Value::Tensor(_));
    interp.flatten_tensors(&function.def.name, &result, &mut returns)?;
    let views: Vec<View> = returns.iter().map(|t| t.view()).collect();
    interp.check_kept(&views)?;
    Ok(LaunchPlan {
        version: PLAN_VERSION,
        buffers: interp.buffers,
        steps: interp.plan_steps,
        returns: views,
        returns_sequence,
        notes: interp.notes,
    })
}

/// The name of the function that `replacement_func()` returns.
pub fn entry_name(modules: &ModuleSet) -> Result<String, Diagnostic> {
    let file = modules.source(0).path();
    let Some(function) = modules.function(0, "replacement_func") else {
        return Err(Diagnostic::file(file, "no `replacement_func` in this file"));
    };
    let mut interp = Interp::new(modules, PlanLimits::default());
    match interp.call_function(function, None, Vec::new(), Vec::new(), function.def.name.range())? {
        Value::Function(f, None) => Ok(f.def.name.to_string()),
        other => Err(modules
            .source(0)
            .at(
                function.def.name.range(),
                format!("`replacement_func` returns {}", other.describe()),
            )
            .with_hint("it must return a function defined at the top level of the pass")),
    }
}
