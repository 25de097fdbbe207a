//! `kernel[grid](...)`: binding, autotune and heuristics, the grid.

use super::calls::CallArgs;
use super::interp::{Interp, Result};
use super::validate::MAX_GRID;
use super::value::Value;
use super::{ArgValue, Config, Launch, LaunchArg, Step};
use crate::consts::Const;
use crate::modules::FunctionRef;
use crate::types::Elem;
use passnet_graph::syntax::Ranged;
use passnet_graph::syntax::ast::Expr;

impl<'a> Interp<'a> {
    pub(super) fn launch(
        &mut self,
        kernel: FunctionRef<'a>,
        grid: &Value<'a>,
        args: CallArgs<'a>,
    ) -> Result<Value<'a>> {
        let at = args.range;
        let name = kernel.def.name.as_str();
        let (configs, chosen) = self.configs(kernel)?;
        let config = chosen.map(|i| configs[i].clone());
        let mut num_warps = config.as_ref().map_or(4, |c| c.num_warps);
        let mut num_stages = config.as_ref().map_or(3, |c| c.num_stages);
        let (mut enable_fp_fusion, mut maxnreg) = (true, None);
        let parameters: Vec<_> = kernel.def.parameters.iter_non_variadic_params().collect();
        let mut bound: Vec<Option<Value<'a>>> = vec![None; parameters.len()];
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
        for (slot, value) in bound.iter_mut().zip(args.positional) {
            *slot = Some(value);
        }
        for (key, value) in args.named {
            if let Some(i) = parameters.iter().position(|p| p.parameter.name.as_str() == key) {
                if bound[i].replace(value).is_some() {
                    return Err(self.error(&at, format!("the kernel `{name}` got `{key}` twice")));
                }
                continue;
            }
            match key.as_str() {
                "num_warps" => num_warps = self.small_int(&at, &key, &value)?,
                "num_stages" => num_stages = self.small_int(&at, &key, &value)?,
                "enable_fp_fusion" => enable_fp_fusion = self.truthy(&at, &value)?,
                "maxnreg" if value.is_none() => {}
                "maxnreg" => maxnreg = Some(self.small_int(&at, &key, &value)?),
                "num_ctas" | "debug" => {}
                _ => {
                    return Err(
                        self.error(&at, format!("the kernel `{name}` has no argument `{key}`"))
                    );
                }
            }
        }
        if let Some(config) = &config {
            for (key, value) in &config.values {
                let Some(i) = parameters.iter().position(|p| p.parameter.name.as_str() == key)
                else {
                    // Triton takes its options from the arguments of `triton.Config`, whatever stands in the dict.
                    if matches!(key.as_str(), "num_warps" | "num_stages" | "num_ctas" | "maxnreg") {
                        continue;
                    }
                    return Err(self.error(&at, format!("the kernel `{name}` has no argument `{key}` for its autotune configuration")));
                };
                if bound[i].is_some() {
                    return Err(self.error(
                        &at,
                        format!("`{key}` is set by the call and by the autotune configuration"),
                    ));
                }
                bound[i] = Some(self.constant(value.clone()));
            }
        }
        for (slot, p) in bound.iter_mut().zip(&parameters) {
            if slot.is_none()
                && let Some(default) = &p.default
            {
                *slot = Some(self.in_module(kernel.module, default)?);
            }
        }
        self.heuristics(kernel, &parameters, &mut bound)?;
        let mut meta = Vec::new();
        for (slot, p) in bound.iter().zip(&parameters) {
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
        let grid = self.grid(&at, grid, meta.clone())?;
        let mut launch_args = Vec::new();
        for ((_, value), p) in meta.into_iter().zip(&parameters) {
            let constexpr = p.parameter.annotation.as_deref().is_some_and(is_constexpr);
            let key = p.parameter.name.to_string();
            let value = self.launch_arg(&at, &key, &value, constexpr)?;
            launch_args.push(LaunchArg { name: key, value });
        }
        let launch = Launch {
            kernel: name.to_string(),
            module: kernel.module,
            grid,
            args: launch_args,
            num_warps,
            num_stages,
            enable_fp_fusion,
            maxnreg,
            configs,
            config: chosen,
            file: self.modules.source(self.module()).path().to_string(),
            line: self.line(&at),
        };
        // Triton skips empty grids.
        if launch.programs() > 0 {
            self.push_step(&at, Step::Launch(launch))?;
        }
        Ok(Value::NONE)
    }

    fn small_int(&self, at: &impl Ranged, key: &str, value: &Value<'a>) -> Result<u32> {
        value
            .as_int()
            .and_then(|i| u32::try_from(i).ok())
            .filter(|&i| i <= 1024)
            .ok_or_else(|| self.error(at, format!("`{key}` must be a small integer")))
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
            Value::Tuple(_) => match self.to_const(value) {
                Some(c) => ArgValue::Const(c),
                None => {
                    return Err(self.error(
                        at,
                        format!("`{name}`: tuples of tensors cannot be passed to a kernel"),
                    ));
                }
            },
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
    fn in_module(&mut self, module: usize, e: &'a Expr) -> Result<Value<'a>> {
        let frame = self.new_frame(None, module);
        let outer = std::mem::replace(&mut self.frame, frame);
        let value = self.expr(e);
        self.frame = outer;
        value
    }

    fn configs(&mut self, kernel: FunctionRef<'a>) -> Result<(Vec<Config>, Option<usize>)> {
        let Some(Expr::Call(call)) = kernel.decorator("autotune") else {
            return Ok((Vec::new(), None));
        };
        let keyword = call
            .arguments
            .keywords
            .iter()
            .find(|k| k.arg.as_ref().is_some_and(|a| a.as_str() == "configs"));
        let Some(e) = keyword.map(|k| &k.value).or_else(|| call.arguments.args.first()) else {
            return Err(self.error(call, "`triton.autotune` needs `configs`"));
        };
        let value = self.in_module(kernel.module, e)?;
        let mut configs = Vec::new();
        for item in self.iterate(e, &value)? {
            let Value::Config(config) = item else {
                return Err(self.error(e, "`configs` holds `triton.Config` objects"));
            };
            configs.push((*config).clone());
        }
        if configs.is_empty() {
            return Err(self.error(e, "`configs` is empty"));
        }
        Ok((configs, Some(0)))
    }

    pub(super) fn config(&mut self, args: &CallArgs<'a>) -> Result<Value<'a>> {
        let at = args.range;
        let mut values = Vec::new();
        match args.get(0, "kwargs") {
            Some(Value::Dict(id)) => {
                for (key, value) in self.dicts[id.0].clone() {
                    let (Value::Const(Const::Str(key)), Some(value)) = (key, self.to_const(&value))
                    else {
                        return Err(self.error(&at, "a configuration holds names and constants"));
                    };
                    values.push((key, value));
                }
            }
            _ => return Err(self.error(&at, "`triton.Config` needs a dict")),
        }
        let number =
            |this: &Self, index: usize, name: &str, default: u32| match args.get(index, name) {
                Some(v) => this.small_int(&at, name, &v),
                None => Ok(default),
            };
        let num_warps = number(self, 1, "num_warps", 4)?;
        let num_stages = number(self, 2, "num_stages", 3)?;
        Ok(Value::Config(std::rc::Rc::new(Config { values, num_warps, num_stages })))
    }

    fn heuristics(
        &mut self,
        kernel: FunctionRef<'a>,
        parameters: &[&'a passnet_graph::syntax::ast::ParameterWithDefault],
        bound: &mut [Option<Value<'a>>],
    ) -> Result<()> {
        let Some(Expr::Call(call)) = kernel.decorator("heuristics") else { return Ok(()) };
        let Some(e) = call
            .arguments
            .args
            .first()
            .or_else(|| call.arguments.keywords.first().map(|k| &k.value))
        else {
            return Ok(());
        };
        let Value::Dict(rules) = self.in_module(kernel.module, e)? else {
            return Err(self.error(e, "`triton.heuristics` takes a dict of functions"));
        };
        for (key, function) in self.dicts[rules.0].clone() {
            let Value::Const(Const::Str(key)) = key else { continue };
            let Some(i) = parameters.iter().position(|p| p.parameter.name.as_str() == key) else {
                continue;
            };
            let mut known = Vec::new();
            for (slot, p) in bound.iter().zip(parameters) {
                if let Some(value) = slot {
                    known.push((Value::str(p.parameter.name.as_str()), value.clone()));
                }
            }
            let dict = self.new_dict(known);
            bound[i] = Some(self.call_value(&function, CallArgs::of(vec![dict], e.range()))?);
        }
        Ok(())
    }
}

fn is_constexpr(annotation: &Expr) -> bool {
    crate::frontend::is_constexpr(annotation)
}
