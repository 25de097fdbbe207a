//! `kernel[grid](...)`: binding, the grid, the launch that comes of it.

use super::call_args::CallArgs;
use super::interp::{Interp, Result};
use super::tuning::{Bound, OPTIONS};
use super::validate::MAX_GRID;
use super::value::{HostConfig, Value};
use super::{ArgValue, Launch, LaunchArg, Step};
use crate::consts::Const;
use crate::modules::FunctionRef;
use crate::types::Elem;
use passnet_graph::syntax::Ranged;
use passnet_graph::syntax::ast::Expr;
use std::collections::BTreeMap;

/// What a call may say besides.
const LAUNCH_OPTIONS: [&str; 3] = ["enable_fp_fusion", "debug", "launch_pdl"];
/// Values in one tuple, nested ones counted too.
const MAX_TUPLE: usize = 1024;

impl<'a> Interp<'a> {
    pub(super) fn launch(
        &mut self,
        kernel: FunctionRef<'a>,
        grid: &Value<'a>,
        args: CallArgs<'a>,
    ) -> Result<Value<'a>> {
        let at = args.range;
        let name = kernel.def.name.as_str();
        let mut bound = self.bind_call(kernel, args)?;
        let tuned = self.tuned(kernel, &bound)?;
        if let Some(tuned) = &tuned {
            self.bind_config(&at, name, tuned.config(), &mut bound)?;
        }
        for index in 0..bound.values.len() {
            if bound.values[index].is_none()
                && let Some(default) = &bound.parameters[index].default
            {
                bound.values[index] = Some(self.in_module(kernel.module, default)?);
            }
        }
        self.heuristics(kernel, &mut bound)?;
        let mut meta = Vec::new();
        for (slot, p) in bound.values.iter().zip(&bound.parameters) {
            let key = p.parameter.name.as_str();
            match slot {
                Some(value) => meta.push((Value::str(key), value.clone())),
                None => {
                    return Err(
                        self.error(&at, format!("the kernel `{name}` needs the argument `{key}`"))
                    );
                }
            }
        }
        if let Some(hook) = tuned.as_ref().and_then(|tuned| tuned.config().pre_hook.clone()) {
            let arguments = self.new_dict(bound.as_dict());
            self.call_value(&hook, CallArgs::of(vec![arguments], at))?;
        }
        let grid = self.grid(&at, grid, meta.clone())?;
        let mut launch_args = Vec::new();
        for ((_, value), p) in meta.into_iter().zip(&bound.parameters) {
            let constexpr = p.parameter.annotation.as_deref().is_some_and(is_constexpr);
            let key = p.parameter.name.to_string();
            self.launch_args(&at, key, &value, constexpr, &mut launch_args)?;
        }
        let option = |this: &Self, name: &str| match bound.options.get(name) {
            Some(value) if !value.is_none() => this.small_int(&at, name, value).map(Some),
            _ => Ok(None),
        };
        let launch = Launch {
            kernel: name.to_string(),
            module: kernel.module,
            grid,
            args: launch_args,
            num_warps: option(self, "num_warps")?.unwrap_or(4),
            num_stages: option(self, "num_stages")?.unwrap_or(3),
            enable_fp_fusion: match bound.options.get("enable_fp_fusion") {
                Some(value) => self.truthy(&at, value)?,
                None => true,
            },
            maxnreg: option(self, "maxnreg")?,
            config: tuned.as_ref().map(|tuned| tuned.chosen),
            configs: tuned.iter().flat_map(|t| &t.configs).map(|c| c.config.clone()).collect(),
            key: tuned.map_or_else(String::new, |tuned| tuned.key),
            file: self.modules.source(self.module()).path().to_string(),
            line: self.line(&at),
        };
        // Triton skips empty grids.
        if launch.programs() > 0 {
            self.push_step(&at, Step::Launch(launch))?;
        }
        Ok(Value::NONE)
    }

    /// `kernel.run(…, grid=…, warmup=…)`, which launches unless it only warms up, and `kernel.warmup(…)`, which compiles.
    pub(super) fn run_kernel(
        &mut self,
        kernel: FunctionRef<'a>,
        name: &str,
        mut args: CallArgs<'a>,
    ) -> Result<Value<'a>> {
        let at = args.range;
        let mut take = |wanted: &str| {
            let place = args.named.iter().position(|(key, _)| key == wanted);
            place.map(|i| args.named.remove(i).1)
        };
        let (grid, warmup) = (take("grid"), take("warmup"));
        let only_warms = name == "warmup"
            || match warmup {
                Some(value) => self.truthy(&at, &value)?,
                None => false,
            };
        if only_warms {
            return Ok(Value::NONE);
        }
        match grid {
            Some(grid) => self.launch(kernel, &grid, args),
            None => Err(self.error(&at, format!("`{}.run` needs `grid=`", kernel.def.name))),
        }
    }

    /// What the call itself says.
    fn bind_call(&mut self, kernel: FunctionRef<'a>, args: CallArgs<'a>) -> Result<Bound<'a>> {
        let at = args.range;
        let name = kernel.def.name.as_str();
        let parameters: Vec<_> = kernel.def.parameters.iter_non_variadic_params().collect();
        if args.positional.len() > parameters.len() {
            return Err(self.error(
                &at,
                format!(
                    "the kernel `{name}` takes {} arguments, not {}",
                    parameters.len(),
                    args.positional.len()
                ),
            ));
        }
        let mut values: Vec<_> = args.positional.into_iter().map(Some).collect();
        values.resize(parameters.len(), None);
        let mut bound = Bound { parameters, values, options: BTreeMap::new() };
        for (key, value) in args.named {
            if let Some(i) = bound.index(&key) {
                if bound.values[i].replace(value).is_some() {
                    return Err(self.error(&at, format!("the kernel `{name}` got `{key}` twice")));
                }
                continue;
            }
            match OPTIONS.iter().chain(&LAUNCH_OPTIONS).find(|option| **option == key) {
                Some(option) => drop(bound.options.insert(option, value)),
                None => {
                    return Err(
                        self.error(&at, format!("the kernel `{name}` has no argument `{key}`"))
                    );
                }
            }
        }
        Ok(bound)
    }

    /// What a configuration adds to the call.
    fn bind_config(
        &mut self,
        at: &impl Ranged,
        name: &str,
        config: &HostConfig<'a>,
        bound: &mut Bound<'a>,
    ) -> Result<()> {
        for (key, value) in self.all_of(config) {
            let option = OPTIONS.iter().find(|option| **option == key);
            let taken = match (bound.index(&key), option) {
                (Some(i), _) => bound.values[i].replace(value).is_some(),
                (None, Some(option)) => bound.options.insert(option, value).is_some(),
                (None, None) => {
                    return Err(self.error(
                        at,
                        format!(
                            "the kernel `{name}` has no argument `{key}` for its autotune \
                             configuration"
                        ),
                    ));
                }
            };
            if taken {
                return Err(self
                    .error(
                        at,
                        format!("`{key}` is set by the call and by the autotune configuration"),
                    )
                    .with_hint("leave it out of the call"));
            }
        }
        Ok(())
    }

    pub(super) fn small_int(&self, at: &impl Ranged, key: &str, value: &Value<'a>) -> Result<u32> {
        value
            .as_int()
            .and_then(|i| u32::try_from(i).ok())
            .filter(|&i| i <= 1024)
            .ok_or_else(|| self.error(at, format!("`{key}` must be a small integer")))
    }

    /// One argument, or the parts of a tuple that holds tensors: `xs.0`, `xs.1`, `xs.1.0`.
    fn launch_args(
        &self,
        at: &impl Ranged,
        name: String,
        value: &Value<'a>,
        constexpr: bool,
        args: &mut Vec<LaunchArg>,
    ) -> Result<()> {
        match value {
            Value::Tuple(items) if !constexpr && self.to_const(value).is_none() => {
                if items.nodes > MAX_TUPLE {
                    let text = format!("`{name}` is a tuple of more than {MAX_TUPLE} values");
                    return Err(self.error(at, text));
                }
                for (index, item) in items.iter().enumerate() {
                    self.launch_args(at, format!("{name}.{index}"), item, false, args)?;
                }
            }
            Value::Descriptor(descriptor) if !constexpr => descriptor.launch_args(&name, args),
            _ => {
                let value = self.launch_arg(at, &name, value, constexpr)?;
                args.push(LaunchArg { name, value });
            }
        }
        Ok(())
    }

    fn launch_arg(
        &self,
        at: &impl Ranged,
        name: &str,
        value: &Value<'a>,
        constexpr: bool,
    ) -> Result<ArgValue> {
        if constexpr {
            return match self.to_const(value) {
                Some(c) => Ok(ArgValue::Const(c)),
                None => Err(self.error(
                    at,
                    format!("`{name}` is `tl.constexpr` and cannot be {}", value.describe()),
                )),
            };
        }
        if let (Value::Tuple(_), Some(known)) = (value, self.to_const(value)) {
            return Ok(ArgValue::Const(known));
        }
        Ok(match value {
            Value::Tensor(t) => {
                if Elem::from_dtype(t.dtype).is_none() {
                    return Err(self
                        .error(at, format!("kernels cannot take {} tensors (`{name}`)", t.dtype)));
                }
                ArgValue::Buffer(t.view())
            }
            Value::Const(Const::Bool(b)) => ArgValue::Int { value: i64::from(*b), elem: Elem::I1 },
            Value::Const(Const::Int(i)) => {
                let elem = if i32::try_from(*i).is_ok() { Elem::I32 } else { Elem::I64 };
                ArgValue::Int { value: *i, elem }
            }
            Value::Const(Const::Float(f)) => ArgValue::Float(*f),
            Value::Const(Const::None) => ArgValue::Const(Const::None),
            other => {
                return Err(self
                    .error(at, format!("`{name}` cannot be {}", other.describe()))
                    .with_hint(
                        "annotate the parameter as `tl.constexpr`, or pass a tensor or a number",
                    ));
            }
        })
    }

    fn grid(
        &mut self,
        at: &impl Ranged,
        grid: &Value<'a>,
        meta: Vec<(Value<'a>, Value<'a>)>,
    ) -> Result<[u32; 3]> {
        let value = match grid {
            Value::Lambda(..) | Value::Function(..) => {
                let dict = self.new_dict(meta);
                self.call_value(grid, CallArgs::of(vec![dict], at.range()))?
            }
            other => other.clone(),
        };
        let items = match &value {
            Value::Const(Const::Int(_)) => vec![value.clone()],
            other => self.iterate(at, other)?,
        };
        if items.is_empty() || items.len() > 3 {
            return Err(
                self.error(at, format!("a grid has one to three dimensions, not {}", items.len()))
            );
        }
        let mut dims = [1u32; 3];
        for (d, item) in items.iter().enumerate() {
            let Some(size) = item.as_int() else {
                return Err(self.error(
                    at,
                    format!("grid dimension {d} is {}, not an integer", item.describe()),
                ));
            };
            if size < 0 || size > i64::from(MAX_GRID[d]) {
                return Err(self.error(
                    at,
                    format!("grid dimension {d} is {size}; a GPU allows 0 to {}", MAX_GRID[d]),
                ));
            }
            dims[d] = size as u32;
        }
        let programs: u64 = dims.iter().map(|&d| u64::from(d)).product();
        if programs > self.limits.programs {
            return Err(self.error(
                at,
                format!(
                    "grid of {programs} programs, more than the limit of {}",
                    self.limits.programs
                ),
            ));
        }
        Ok(dims)
    }

    /// Evaluates an expression at the top level of a module.
    pub(super) fn in_module(&mut self, module: usize, e: &'a Expr) -> Result<Value<'a>> {
        let frame = self.new_frame(None, module);
        let outer = std::mem::replace(&mut self.frame, frame);
        let value = self.expr(e);
        self.frame = outer;
        value
    }
}

fn is_constexpr(annotation: &Expr) -> bool {
    crate::frontend::is_constexpr(annotation)
}
