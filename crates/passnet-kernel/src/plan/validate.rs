//! Plans from outside, checked field by field before anything computes with their numbers.
//!
//! A plan that passes keeps every view inside its buffer, and every count inside a limit that no wrapper reaches: what
//! runs it may multiply, add and index without looking again.

use super::{ArgValue, BufferSpec, Config, Init, Launch, LaunchPlan, PLAN_VERSION, Step, View};
use crate::consts::Const;
use crate::types::Elem;
use passnet_graph::DType;
use std::fmt;

/// Buffers of a plan.
pub const MAX_BUFFERS: usize = 1 << 16;
/// Bytes of one buffer: its address has bits for no more.
pub(crate) const MAX_BUFFER_BYTES: usize = 1 << 39;
/// Bytes of all buffers of a plan together.
pub const MAX_TOTAL_BYTES: u64 = 1 << 42;
/// Programs of one launch.
pub const MAX_PROGRAMS: u64 = 1 << 31;
/// CUDA's own limits on a grid.
pub(super) const MAX_GRID: [u32; 3] = [i32::MAX as u32, 65535, 65535];
const MAX_STEPS: usize = 1 << 16;
const MAX_RETURNS: usize = 1 << 16;
const MAX_NOTES: usize = 1 << 16;
const MAX_ARGS: usize = 1 << 12;
pub(super) const MAX_CONFIGS: usize = 1 << 12;
const MAX_INPUTS: usize = 1 << 16;
const MAX_MODULES: usize = 1 << 16;
/// torch's own limit on the dimensions of a tensor.
const MAX_RANK: usize = 64;
/// Bytes of a name, a path or a remark.
const MAX_TEXT: usize = 1 << 16;
/// Items of a constant, tuples in it included.
const MAX_ITEMS: usize = 1 << 16;
/// Warps, stages and registers.
const MAX_SMALL: u32 = 1024;

/// A field that no plan can have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanError {
    /// Where it stands, as in `steps[2].launch.args[0].value.buffer.stride[1]`.
    pub field: String,
    /// What is wrong with it.
    pub message: String,
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

impl std::error::Error for PlanError {}

type Result<T = ()> = std::result::Result<T, PlanError>;

fn wrong<T>(field: impl Into<String>, message: impl Into<String>) -> Result<T> {
    Err(PlanError { field: field.into(), message: message.into() })
}

/// A count with its limit.
fn at_most(field: impl Into<String>, found: usize, most: usize) -> Result {
    if found > most {
        return wrong(field, format!("{found} of them, and {most} are allowed"));
    }
    Ok(())
}

fn text(field: &str, name: &str, text: &str) -> Result {
    if text.len() > MAX_TEXT {
        return wrong(format!("{field}.{name}"), format!("a text of {} bytes", text.len()));
    }
    Ok(())
}

impl LaunchPlan {
    /// The first field that cannot be, or nothing.
    pub fn validate(&self) -> Result {
        if self.version != PLAN_VERSION {
            let message = format!("{}; this build runs version {PLAN_VERSION}", self.version);
            return wrong("version", message);
        }
        at_most("buffers", self.buffers.len(), MAX_BUFFERS)?;
        at_most("steps", self.steps.len(), MAX_STEPS)?;
        at_most("returns", self.returns.len(), MAX_RETURNS)?;
        at_most("notes", self.notes.len(), MAX_NOTES)?;
        let mut total = 0u64;
        for (index, spec) in self.buffers.iter().enumerate() {
            let field = format!("buffers[{index}]");
            buffer(&field, spec)?;
            total = total.saturating_add(spec.bytes());
            if total > MAX_TOTAL_BYTES {
                return wrong(
                    format!("{field}.elements"),
                    format!("all buffers up to this one need {total} bytes"),
                );
            }
        }
        for (index, step) in self.steps.iter().enumerate() {
            self.step(&format!("steps[{index}]"), step)?;
        }
        for (index, view) in self.returns.iter().enumerate() {
            self.view(&format!("returns[{index}]"), view)?;
        }
        self.notes.iter().enumerate().try_for_each(|(i, note)| text("notes", &i.to_string(), note))
    }

    fn step(&self, field: &str, step: &Step) -> Result {
        match step {
            Step::Launch(launch) => self.launch(&format!("{field}.launch"), launch),
            Step::Copy { from, to, .. } => {
                self.view(&format!("{field}.copy.from"), from)?;
                self.target(&format!("{field}.copy.to"), to)?;
                if from.shape != to.shape {
                    let message = format!("{:?}, copied from {:?}", to.shape, from.shape);
                    return wrong(format!("{field}.copy.to.shape"), message);
                }
                let converts = |dtype: DType| Elem::from_dtype(dtype).is_some();
                if from.dtype != to.dtype && !(converts(from.dtype) && converts(to.dtype)) {
                    let message = format!("{}, copied from {}", to.dtype, from.dtype);
                    return wrong(format!("{field}.copy.to.dtype"), message);
                }
                Ok(())
            }
            Step::Fill { view, value, .. } => {
                self.target(&format!("{field}.fill.view"), view)?;
                number(&format!("{field}.fill.value"), value)
            }
        }
    }

    /// A view whose elements lie in its buffer.
    fn view(&self, field: &str, view: &View) -> Result {
        let Some(spec) = self.buffers.get(view.buffer) else {
            return wrong(
                format!("{field}.buffer"),
                format!("{} of {} buffers", view.buffer, self.buffers.len()),
            );
        };
        at_most(format!("{field}.shape"), view.shape.len(), MAX_RANK)?;
        if view.stride.len() != view.shape.len() {
            return wrong(
                format!("{field}.stride"),
                format!("{} strides for {} dimensions", view.stride.len(), view.shape.len()),
            );
        }
        for (d, &size) in view.shape.iter().enumerate() {
            if u32::try_from(size).is_err() {
                let message = format!("{size}, which is no size of a dimension");
                return wrong(format!("{field}.shape[{d}]"), message);
            }
        }
        for (d, &stride) in view.stride.iter().enumerate() {
            if stride < 0 {
                return wrong(format!("{field}.stride[{d}]"), format!("{stride} is negative"));
            }
        }
        let size = view.dtype.size() as u64;
        let most = MAX_BUFFER_BYTES as u64 / size;
        let offset = u64::try_from(view.offset).ok().filter(|offset| *offset <= most);
        let Some(offset) = offset else {
            let message = format!("{}, which is no place in a buffer", view.offset);
            return wrong(format!("{field}.offset"), message);
        };
        // Empty views may begin anywhere: torch keeps the offsets of slices of empty tensors.
        if view.shape.contains(&0) {
            return Ok(());
        }
        let elements = view.shape.iter().try_fold(1u64, |n, &d| n.checked_mul(d as u64));
        if elements.is_none_or(|elements| elements > most) {
            return wrong(format!("{field}.shape"), "more elements than memory can have");
        }
        let reach = view.shape.iter().zip(&view.stride).try_fold(offset, |reach, (&d, &stride)| {
            reach.checked_add((d as u64 - 1).checked_mul(stride as u64)?)
        });
        let end = reach.and_then(|last| last.checked_add(1)?.checked_mul(size));
        match end {
            Some(end) if end <= spec.bytes() => Ok(()),
            _ => wrong(
                field,
                format!(
                    "offset {}, shape {:?} and stride {:?} leave a buffer of {} bytes",
                    view.offset,
                    view.shape,
                    view.stride,
                    spec.bytes()
                ),
            ),
        }
    }

    /// A view that is written: no more elements than its buffer has room for.
    fn target(&self, field: &str, view: &View) -> Result {
        self.view(field, view)?;
        let bytes = (view.numel() as u64).saturating_mul(view.dtype.size() as u64);
        if bytes > self.buffers[view.buffer].bytes() {
            return wrong(format!("{field}.shape"), "several elements to one place of the buffer");
        }
        Ok(())
    }

    fn launch(&self, field: &str, launch: &Launch) -> Result {
        text(field, "kernel", &launch.kernel)?;
        text(field, "file", &launch.file)?;
        text(field, "key", &launch.key)?;
        if launch.module >= MAX_MODULES {
            return wrong(format!("{field}.module"), format!("{}", launch.module));
        }
        for (axis, (&size, most)) in launch.grid.iter().zip(MAX_GRID).enumerate() {
            if size == 0 || size > most {
                let message = format!("{size}; an axis has 1 to {most} programs");
                return wrong(format!("{field}.grid[{axis}]"), message);
            }
        }
        if launch.programs() > MAX_PROGRAMS {
            return wrong(format!("{field}.grid"), format!("{} programs", launch.programs()));
        }
        small(&format!("{field}.num_warps"), launch.num_warps)?;
        small(&format!("{field}.num_stages"), launch.num_stages)?;
        small(&format!("{field}.maxnreg"), launch.maxnreg.unwrap_or(0))?;
        at_most(format!("{field}.args"), launch.args.len(), MAX_ARGS)?;
        let mut names = std::collections::BTreeSet::new();
        for (index, arg) in launch.args.iter().enumerate() {
            let field = format!("{field}.args[{index}]");
            text(&field, "name", &arg.name)?;
            if !names.insert(arg.name.as_str()) {
                return wrong(format!("{field}.name"), format!("`{}` a second time", arg.name));
            }
            self.argument(&format!("{field}.value"), &arg.value)?;
        }
        at_most(format!("{field}.configs"), launch.configs.len(), MAX_CONFIGS)?;
        for (index, candidate) in launch.configs.iter().enumerate() {
            config(&format!("{field}.configs[{index}]"), candidate)?;
        }
        match launch.config {
            Some(chosen) if chosen >= launch.configs.len() => wrong(
                format!("{field}.config"),
                format!("{chosen} of {} candidates", launch.configs.len()),
            ),
            _ => Ok(()),
        }
    }

    fn argument(&self, field: &str, value: &ArgValue) -> Result {
        match value {
            ArgValue::Buffer(view) => {
                let field = format!("{field}.buffer");
                if Elem::from_dtype(view.dtype).is_none() {
                    let message = format!("kernels take no {}", view.dtype);
                    return wrong(format!("{field}.dtype"), message);
                }
                self.view(&field, view)
            }
            ArgValue::Int { value, elem } if elem.is_float() => {
                wrong(format!("{field}.int.elem"), format!("{elem} for the integer {value}"))
            }
            ArgValue::Int { value, elem } => {
                let (low, high) = elem.int_range();
                if !(low..=high).contains(&i128::from(*value)) {
                    return wrong(format!("{field}.int.value"), format!("{value} is no {elem}"));
                }
                Ok(())
            }
            ArgValue::Float(_) => Ok(()),
            ArgValue::Const(value) => constant(&format!("{field}.const"), value),
        }
    }
}

fn buffer(field: &str, spec: &BufferSpec) -> Result {
    text(field, "name", &spec.name)?;
    let bytes = spec.elements.checked_mul(spec.dtype.size() as u64);
    if bytes.is_none_or(|bytes| bytes > MAX_BUFFER_BYTES as u64) {
        let message = format!("{} elements of {}", spec.elements, spec.dtype);
        return wrong(format!("{field}.elements"), message);
    }
    match &spec.init {
        Init::Input(index) if *index >= MAX_INPUTS => {
            wrong(format!("{field}.init.input"), format!("{index}"))
        }
        Init::Input(_) | Init::Uninitialized => Ok(()),
        Init::Fill(value) => number(&format!("{field}.init.fill"), value),
        Init::Values(values) => {
            if values.len() as u64 != spec.elements {
                return wrong(
                    format!("{field}.init.values"),
                    format!("{} values for {} elements", values.len(), spec.elements),
                );
            }
            let mut values = values.iter().enumerate();
            values.try_for_each(|(i, value)| number(&format!("{field}.init.values[{i}]"), value))
        }
    }
}

fn config(field: &str, config: &Config) -> Result {
    at_most(format!("{field}.values"), config.values.len(), MAX_ARGS)?;
    for (index, (name, value)) in config.values.iter().enumerate() {
        let field = format!("{field}.values[{index}]");
        text(&field, "0", name)?;
        constant(&format!("{field}[1]"), value)?;
    }
    small(&format!("{field}.num_warps"), config.num_warps)?;
    small(&format!("{field}.maxnreg"), config.maxnreg.unwrap_or(0))?;
    small(&format!("{field}.num_stages"), config.num_stages)
}

fn small(field: &str, value: u32) -> Result {
    if value > MAX_SMALL {
        return wrong(field, format!("{value}, and {MAX_SMALL} is the most"));
    }
    Ok(())
}

/// What an element of a tensor can be.
fn number(field: &str, value: &Const) -> Result {
    match value.as_float() {
        Some(_) => Ok(()),
        None => wrong(field, format!("a {} where a number belongs", value.type_name())),
    }
}

fn constant(field: &str, value: &Const) -> Result {
    fn items(value: &Const) -> usize {
        match value {
            Const::Tuple(values) => values.iter().map(items).fold(1, usize::saturating_add),
            Const::Str(text) => text.len(),
            _ => 1,
        }
    }
    at_most(field, items(value), MAX_ITEMS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use passnet_graph::DType;

    fn plan(view: View) -> LaunchPlan {
        LaunchPlan {
            version: PLAN_VERSION,
            buffers: vec![BufferSpec {
                name: "x".into(),
                dtype: DType::Float32,
                elements: 12,
                init: Init::Input(0),
            }],
            steps: vec![Step::Fill { view, value: Const::Int(0), line: 1 }],
            returns: Vec::new(),
            returns_sequence: false,
            notes: Vec::new(),
        }
    }

    fn view(offset: i64, shape: &[i64], stride: &[i64]) -> View {
        let (shape, stride) = (shape.to_vec(), stride.to_vec());
        View { buffer: 0, offset, shape, stride, dtype: DType::Float32 }
    }

    #[test]
    fn views_stay_inside_their_buffer() {
        for fine in [
            view(0, &[3, 4], &[4, 1]),
            view(0, &[4, 3], &[1, 4]),
            view(11, &[], &[]),
            view(11, &[1, 1], &[i64::MAX, 7]),
            view(40, &[0, 5], &[5, 1]),
            View { dtype: DType::Int8, ..view(4, &[44], &[1]) },
        ] {
            assert_eq!(plan(fine.clone()).validate(), Ok(()), "{fine:?}");
        }
        for (bad, field) in [
            (view(0, &[3, 4], &[4, -1]), "steps[0].fill.view.stride[1]"),
            (view(0, &[13], &[1]), "steps[0].fill.view"),
            (view(1, &[12], &[1]), "steps[0].fill.view"),
            (view(-1, &[1], &[1]), "steps[0].fill.view.offset"),
            (view(i64::MAX, &[0], &[1]), "steps[0].fill.view.offset"),
            (view(0, &[-3], &[1]), "steps[0].fill.view.shape[0]"),
            (view(0, &[1 << 40], &[0]), "steps[0].fill.view.shape[0]"),
            (view(0, &[1 << 31, 1 << 31, 4], &[0, 0, 0]), "steps[0].fill.view.shape"),
            (view(0, &[2, 12], &[0, 1]), "steps[0].fill.view.shape"),
            (view(0, &[2, 2], &[i64::MAX, i64::MAX]), "steps[0].fill.view"),
            (view(0, &[2], &[1, 1]), "steps[0].fill.view.stride"),
            (view(0, &[1; 65], &[1; 65]), "steps[0].fill.view.shape"),
            (View { buffer: 1, ..view(0, &[1], &[1]) }, "steps[0].fill.view.buffer"),
            (View { dtype: DType::Float64, ..view(0, &[12], &[1]) }, "steps[0].fill.view"),
        ] {
            assert_eq!(plan(bad).validate().map_err(|e| e.field), Err(field.to_string()));
        }
    }

    #[test]
    fn buffers_fit_into_memory() {
        let with = |elements, init| {
            let mut plan = plan(view(0, &[0], &[1]));
            plan.buffers.push(BufferSpec {
                name: "y".into(),
                dtype: DType::Float64,
                elements,
                init,
            });
            plan.validate().map_err(|e| e.field)
        };
        let field = |name: &str| Err(format!("buffers[1].{name}"));
        assert_eq!(with(2, Init::Values(vec![Const::Int(1), Const::Bool(true)])), Ok(()));
        assert_eq!(with(3, Init::Values(vec![Const::Int(1)])), field("init.values"));
        assert_eq!(with(1, Init::Values(vec![Const::None])), field("init.values[0]"));
        assert_eq!(with(1, Init::Fill(Const::Str("1".into()))), field("init.fill"));
        assert_eq!(with(u64::MAX, Init::Uninitialized), field("elements"));
        assert_eq!(with(1 << 37, Init::Uninitialized), field("elements"));
        assert_eq!(with(0, Init::Input(usize::MAX)), field("init.input"));
    }
}
