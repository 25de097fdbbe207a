//! `@triton.autotune` and `@triton.heuristics`: what a launch leaves open, what is chosen for it, what follows from it.
//!
//! A plan holds one configuration for each launch. Which one is not decided here: whoever runs plans times the candidates
//! of a key and asks for the plan again with what was chosen.

use super::call_args::CallArgs;
use super::interp::{Interp, Result};
use super::value::{HostConfig, Value};
use super::{Config, Launch, LaunchPlan, Step};
use crate::consts::Const;
use crate::modules::FunctionRef;
use passnet_graph::syntax::Ranged;
use passnet_graph::syntax::ast::{Expr, ExprCall, ParameterWithDefault};
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;

/// What Triton takes from a configuration besides the kernel's arguments.
pub(super) const OPTIONS: [&str; 5] =
    ["num_warps", "num_stages", "num_ctas", "maxnreg", "ir_override"];

/// Configurations that are open in one plan, over all keys: each of them is compiled, watched and timed.
const MAX_CANDIDATES: usize = 256;

/// Which configuration each tuned kernel runs with, by [`Launch::key`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Choices(BTreeMap<String, usize>);

impl Choices {
    /// The configuration that was chosen for a key.
    pub fn get(&self, key: &str) -> Option<usize> {
        self.0.get(key).copied()
    }

    /// Remembers the configuration that is best for a key.
    pub fn set(&mut self, key: &str, config: usize) {
        self.0.insert(key.to_string(), config);
    }

    /// These choices and one more.
    #[must_use]
    pub fn with(&self, key: &str, config: usize) -> Choices {
        let mut choices = self.clone();
        choices.set(key, config);
        choices
    }
}

impl LaunchPlan {
    /// The launches that have several candidates, one for each key.
    pub fn tuned(&self) -> impl Iterator<Item = &Launch> {
        let mut seen: Vec<&str> = Vec::new();
        self.steps.iter().filter_map(move |step| match step {
            Step::Launch(launch) if launch.configs.len() > 1 && !seen.contains(&&*launch.key) => {
                seen.push(&launch.key);
                Some(launch)
            }
            _ => None,
        })
    }

    /// The first launch whose configuration nobody has chosen yet.
    pub fn open(&self, choices: &Choices) -> Option<&Launch> {
        self.tuned().find(|launch| choices.get(&launch.key).is_none())
    }
}

impl fmt::Display for Config {
    /// As Triton shows it, without what is as ever.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.values {
            write!(f, "{name}: {value}, ")?;
        }
        write!(f, "num_warps: {}, num_stages: {}", self.num_warps, self.num_stages)?;
        match self.maxnreg {
            Some(most) => write!(f, ", maxnreg: {most}"),
            None => Ok(()),
        }
    }
}

/// Arguments of a launch by parameter: those of the call, then what a configuration adds.
pub(super) struct Bound<'a> {
    pub(super) parameters: Vec<&'a ParameterWithDefault>,
    pub(super) values: Vec<Option<Value<'a>>>,
    /// `num_warps` and its like, as far as the call or a heuristic sets them.
    pub(super) options: BTreeMap<&'static str, Value<'a>>,
}

impl<'a> Bound<'a> {
    pub(super) fn index(&self, name: &str) -> Option<usize> {
        self.parameters.iter().position(|p| p.parameter.name.as_str() == name)
    }

    fn get(&self, name: &str) -> Option<&Value<'a>> {
        self.values[self.index(name)?].as_ref()
    }

    /// What is known so far, by name.
    fn named(&self) -> Vec<(String, Value<'a>)> {
        let parameters =
            self.parameters.iter().zip(&self.values).filter_map(|(p, value)| {
                Some((p.parameter.name.to_string(), value.as_ref()?.clone()))
            });
        let options = self.options.iter().map(|(name, value)| ((*name).to_string(), value.clone()));
        parameters.chain(options).collect()
    }

    /// The same as the dict that Triton hands to functions.
    pub(super) fn as_dict(&self) -> Vec<(Value<'a>, Value<'a>)> {
        self.named().into_iter().map(|(name, value)| (Value::str(name), value)).collect()
    }
}

/// The candidates of a launch and the one it runs with.
pub(super) struct Tuned<'a> {
    pub(super) key: String,
    pub(super) configs: Vec<Rc<HostConfig<'a>>>,
    pub(super) chosen: usize,
}

impl<'a> Tuned<'a> {
    pub(super) fn config(&self) -> &HostConfig<'a> {
        &self.configs[self.chosen]
    }
}

impl<'a> Interp<'a> {
    /// The candidates of `@triton.autotune`, pruned as it says, for these arguments.
    pub(super) fn tuned(
        &mut self,
        kernel: FunctionRef<'a>,
        bound: &Bound<'a>,
    ) -> Result<Option<Tuned<'a>>> {
        let call = match kernel.decorator("autotune") {
            Some(Expr::Call(call)) => call,
            _ => return Ok(None),
        };
        let decorator = self.decorator_args(kernel.module, call)?;
        let configs = decorator.get(0, "configs").ok_or_else(|| {
            self.at_decorator(kernel, call, "`triton.autotune` needs `configs`".into())
        })?;
        let mut configs = self.config_list(kernel, call, &configs)?;
        let mut key = kernel.def.name.to_string();
        if kernel.module > 0 {
            key = format!("{key} of {}", self.modules.source(kernel.module).path());
        }
        if configs.len() > 1 {
            key.push_str(&self.key_values(kernel, call, &decorator, bound)?);
            configs = self.pruned(kernel, call, &decorator, configs, bound)?;
        }
        for name in ["pre_hook", "post_hook"] {
            if decorator.named(name).is_some_and(|hook| !hook.is_none()) {
                return Err(self
                    .at_decorator(kernel, call, format!("`{name}` of `triton.autotune` is a function that Triton calls while it tunes"))
                    .with_hint("use `reset_to_zero` or `restore_value`, or `pre_hook` of a `triton.Config`"));
            }
        }
        for name in ["reset_to_zero", "restore_value"] {
            // What tuning writes never reaches a call: candidates are timed on copies. The names must mean something.
            let Some(names) = decorator.named(name).filter(|names| !names.is_none()) else {
                continue;
            };
            for item in self.iterate(call, &names)? {
                if !matches!(&item, Value::Const(Const::Str(s)) if bound.index(s).is_some()) {
                    let text = format!(
                        "`{name}` names {}, which is no argument of the kernel `{}`",
                        item.describe(),
                        kernel.def.name
                    );
                    return Err(self.at_decorator(kernel, call, text));
                }
            }
        }
        self.candidates.insert(key.clone(), configs.len());
        let together: usize = self.candidates.values().filter(|count| **count > 1).sum();
        if together > MAX_CANDIDATES {
            let text = format!(
                "the tuned kernels of this call have {together} configurations together; {MAX_CANDIDATES} is the most"
            );
            return Err(self
                .at_decorator(kernel, call, text)
                .with_hint("drop those that cannot win with `prune_configs_by`"));
        }
        let chosen = self.choices.get(&key).filter(|chosen| *chosen < configs.len()).unwrap_or(0);
        Ok(Some(Tuned { key, configs, chosen }))
    }

    fn config_list(
        &mut self,
        kernel: FunctionRef<'a>,
        call: &'a ExprCall,
        value: &Value<'a>,
    ) -> Result<Vec<Rc<HostConfig<'a>>>> {
        let mut configs = Vec::new();
        for item in self.iterate(call, value)? {
            let Value::Config(config) = item else {
                return Err(self.at_decorator(
                    kernel,
                    call,
                    format!("`configs` holds {}, not a `triton.Config`", item.describe()),
                ));
            };
            configs.push(config);
        }
        if configs.is_empty() {
            configs.push(Rc::new(HostConfig::default()));
        }
        if configs.len() > super::validate::MAX_CONFIGS {
            let text = format!(
                "{} configurations; {} is the most",
                configs.len(),
                super::validate::MAX_CONFIGS
            );
            return Err(self.at_decorator(kernel, call, text));
        }
        Ok(configs)
    }

    /// What Triton looks its choice up by: the values of `key`, and the types of all tensors.
    fn key_values(
        &mut self,
        kernel: FunctionRef<'a>,
        call: &'a ExprCall,
        decorator: &CallArgs<'a>,
        bound: &Bound<'a>,
    ) -> Result<String> {
        let names = decorator.get(1, "key").unwrap_or_else(|| Value::tuple([]));
        let mut parts = Vec::new();
        for name in self.iterate(call, &names)? {
            let Value::Const(Const::Str(name)) = &name else {
                let text = format!("`key` holds names of arguments, not {}", name.describe());
                return Err(self.at_decorator(kernel, call, text));
            };
            match bound.get(name) {
                Some(Value::Tensor(_)) => {
                    let text = format!("`{name}` in `key` is a tensor");
                    return Err(self
                        .at_decorator(kernel, call, text)
                        .with_hint("name the sizes that decide, such as `key=[\"n_elements\"]`"));
                }
                Some(value) => parts.push(format!("{name}={}", self.text(value))),
                None => {}
            }
        }
        for value in bound.values.iter().flatten() {
            if let Value::Tensor(tensor) = value {
                parts.push(tensor.dtype.name().to_string());
            }
        }
        Ok(format!("({})", parts.join(", ")))
    }

    fn pruned(
        &mut self,
        kernel: FunctionRef<'a>,
        call: &'a ExprCall,
        decorator: &CallArgs<'a>,
        mut configs: Vec<Rc<HostConfig<'a>>>,
        bound: &Bound<'a>,
    ) -> Result<Vec<Rc<HostConfig<'a>>>> {
        let prune = match decorator.named("prune_configs_by") {
            None => return Ok(configs),
            Some(value) if value.is_none() => return Ok(configs),
            Some(Value::Dict(id)) => self.dicts[id.0].clone(),
            Some(other) => {
                let text = format!("`prune_configs_by` is a dict, not {}", other.describe());
                return Err(self.at_decorator(kernel, call, text));
            }
        };
        let entry = |name: &str| {
            let found = prune
                .iter()
                .find(|(key, _)| matches!(key, Value::Const(Const::Str(k)) if k == name));
            found.map(|(_, value)| value.clone()).filter(|value| !value.is_none())
        };
        let at = call.range();
        if let Some(function) = entry("early_config_prune") {
            let list = self.new_list(configs.iter().cloned().map(Value::Config).collect());
            let arguments = self.new_dict(bound.as_dict());
            let args = CallArgs {
                positional: vec![list, arguments],
                named: options_of(&function, bound),
                range: at,
            };
            let kept = self.call_value(&function, args)?;
            let kept = self.iterate(call, &kept)?;
            if kept.is_empty() {
                let text = "`early_config_prune` leaves no configuration".to_string();
                return Err(self.at_decorator(kernel, call, text));
            }
            let kept = Value::tuple(kept);
            configs = self.config_list(kernel, call, &kept)?;
        }
        let Some(model) = entry("perf_model") else { return Ok(configs) };
        let top = match entry("top_k").unwrap_or(Value::Const(Const::Float(1.0))) {
            Value::Const(Const::Int(n)) => usize::try_from(n).unwrap_or(0).max(1),
            Value::Const(Const::Float(share)) if share <= 1.0 => {
                ((configs.len() as f64 * share) as usize).max(1)
            }
            other => {
                let text =
                    format!("`top_k` is an integer or a share up to 1.0, not {}", other.describe());
                return Err(self.at_decorator(kernel, call, text));
            }
        };
        if configs.len() <= top {
            return Ok(configs);
        }
        let mut estimated = Vec::new();
        for config in configs {
            let mut named = bound.named();
            named.extend(self.all_of(&config));
            let estimate =
                self.call_value(&model, CallArgs { positional: Vec::new(), named, range: at })?;
            match self.to_const(&estimate).and_then(|c| c.as_float()).filter(|e| !e.is_nan()) {
                Some(estimate) => estimated.push((estimate, config)),
                None => {
                    let text = format!("`perf_model` gives {}, not a number", estimate.describe());
                    return Err(self.at_decorator(kernel, call, text));
                }
            }
        }
        estimated.sort_by(|a, b| a.0.total_cmp(&b.0));
        Ok(estimated.into_iter().take(top).map(|(_, config)| config).collect())
    }

    /// What a configuration sets, its options last, as `Config.all_kwargs` gives it.
    pub(super) fn all_of(&mut self, config: &HostConfig<'a>) -> Vec<(String, Value<'a>)> {
        let HostConfig { config, .. } = config;
        let mut all: Vec<(String, Value<'a>)> = Vec::new();
        for (name, value) in &config.values {
            all.push((name.clone(), self.constant(value.clone())));
        }
        all.push(("num_warps".into(), Value::int(i64::from(config.num_warps))));
        all.push(("num_stages".into(), Value::int(i64::from(config.num_stages))));
        if let Some(most) = config.maxnreg {
            all.push(("maxnreg".into(), Value::int(i64::from(most))));
        }
        all
    }

    /// `triton.Config(...)`.
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
                    // Triton takes its options from the arguments of `triton.Config`, whatever stands in the dict.
                    if !OPTIONS.contains(&key.as_str()) {
                        values.push((key, value));
                    }
                }
            }
            _ => return Err(self.error(&at, "`triton.Config` needs a dict")),
        }
        let known = ["kwargs", "pre_hook"];
        if let Some((name, _)) = args
            .named
            .iter()
            .find(|(name, _)| !OPTIONS.contains(&name.as_str()) && !known.contains(&name.as_str()))
        {
            return Err(self
                .error(&at, format!("`triton.Config` has no argument `{name}`"))
                .with_hint("arguments of the kernel stand in its dict: `triton.Config({\"BLOCK\": 64}, num_warps=4)`"));
        }
        let number = |this: &Self, index: usize, name: &str| match args.get(index, name) {
            Some(v) if !v.is_none() => this.small_int(&at, name, &v).map(Some),
            _ => Ok(None),
        };
        let config = Config {
            values,
            num_warps: number(self, 1, "num_warps")?.unwrap_or(4),
            num_stages: number(self, 2, "num_stages")?.unwrap_or(3),
            maxnreg: number(self, 4, "maxnreg")?,
        };
        let pre_hook = args.get(5, "pre_hook").filter(|hook| !hook.is_none());
        Ok(Value::Config(Rc::new(HostConfig { config, pre_hook })))
    }

    pub(super) fn config_attribute(
        &mut self,
        at: &impl Ranged,
        config: &Rc<HostConfig<'a>>,
        name: &str,
    ) -> Result<Value<'a>> {
        let plain = &config.config;
        Ok(match name {
            "num_warps" => Value::int(i64::from(plain.num_warps)),
            "num_stages" => Value::int(i64::from(plain.num_stages)),
            "num_ctas" => Value::int(1),
            "maxnreg" => plain.maxnreg.map_or(Value::NONE, |n| Value::int(i64::from(n))),
            "pre_hook" => config.pre_hook.clone().unwrap_or(Value::NONE),
            "kwargs" => {
                let values = plain.values.clone();
                let items = values
                    .into_iter()
                    .map(|(name, value)| (Value::str(name), self.constant(value)));
                let items = items.collect();
                self.new_dict(items)
            }
            "all_kwargs" => Value::Method(Rc::new(Value::Config(Rc::clone(config))), name.into()),
            _ => {
                return Err(self.error(at, format!("a `triton.Config` has no attribute `{name}`")));
            }
        })
    }

    /// What `@triton.heuristics` sets, over what the call and the configuration say.
    pub(super) fn heuristics(
        &mut self,
        kernel: FunctionRef<'a>,
        bound: &mut Bound<'a>,
    ) -> Result<()> {
        let Some(Expr::Call(call)) = kernel.decorator("heuristics") else { return Ok(()) };
        let decorator = self.decorator_args(kernel.module, call)?;
        let Some(Value::Dict(rules)) = decorator.get(0, "values") else {
            let text = "`triton.heuristics` takes a dict of functions".to_string();
            return Err(self.at_decorator(kernel, call, text));
        };
        for (name, function) in self.dicts[rules.0].clone() {
            let name = match name {
                Value::Const(Const::Str(name)) => name,
                other => {
                    let text = format!(
                        "`triton.heuristics` names arguments by texts, not by {}",
                        other.describe()
                    );
                    return Err(self.at_decorator(kernel, call, text));
                }
            };
            let known = bound.as_dict();
            let known = self.new_dict(known);
            let value = self.call_value(&function, CallArgs::of(vec![known], call.range()))?;
            match (bound.index(&name), OPTIONS.iter().find(|option| **option == name)) {
                (Some(index), _) => bound.values[index] = Some(value),
                (None, Some(option)) => drop(bound.options.insert(option, value)),
                (None, None) => {
                    let text = format!(
                        "the kernel `{}` has no argument `{name}` for its heuristic",
                        kernel.def.name
                    );
                    return Err(self.at_decorator(kernel, call, text));
                }
            }
        }
        Ok(())
    }

    /// Arguments of a decorator, evaluated at the top level of its file.
    fn decorator_args(&mut self, module: usize, call: &'a ExprCall) -> Result<CallArgs<'a>> {
        let mut args = CallArgs::of(Vec::new(), call.range());
        for arg in &call.arguments.args {
            args.positional.push(self.in_module(module, arg)?);
        }
        for keyword in &call.arguments.keywords {
            let Some(name) = &keyword.arg else {
                return Err(self
                    .modules
                    .source(module)
                    .at(keyword.range(), "name the arguments of a decorator one by one"));
            };
            // How long Triton would measure is not asked here.
            if !matches!(
                name.as_str(),
                "warmup" | "rep" | "use_cuda_graph" | "do_bench" | "cache_results"
            ) {
                args.named.push((name.to_string(), self.in_module(module, &keyword.value)?));
            }
        }
        Ok(args)
    }

    fn at_decorator(
        &self,
        kernel: FunctionRef<'a>,
        at: &impl Ranged,
        text: String,
    ) -> passnet_graph::Diagnostic {
        self.modules.source(kernel.module).at(at.range(), text)
    }
}

/// Keywords for a pruning function: Triton hands over the keywords of the call, which it may take by `**`.
fn options_of<'a>(function: &Value<'a>, bound: &Bound<'a>) -> Vec<(String, Value<'a>)> {
    match function {
        Value::Function(f, _) if f.def.parameters.kwarg.is_some() => bound.named(),
        _ => Vec::new(),
    }
}
