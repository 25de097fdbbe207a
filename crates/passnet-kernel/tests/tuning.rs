//! `@triton.autotune` and `@triton.heuristics` mean what Triton means by them.

use passnet_graph::syntax::Source;
use passnet_graph::{DType, Device, Diagnostic};
use passnet_kernel::plan::{
    ArgValue, Choices, HostArg, Launch, LaunchPlan, PlanLimits, Step, TensorSpec, plan_chosen,
};
use passnet_kernel::{Const, ModuleSet};

/// A kernel with these decorators, launched by `run`.
fn text(decorators: &str, call: &str) -> String {
    format!(
        r#"
import torch
import triton
import triton.language as tl

def keep_small(configs, named_args, **kwargs):
    return [c for c in configs if c.kwargs["BLOCK"] <= named_args["n"]]

def keep_none(configs, named_args, **kwargs):
    return []

def model(n, BLOCK, num_warps, **kwargs):
    return abs(BLOCK * num_warps - n)

def clear(args):
    args["out_ptr"].zero_()

CONFIGS = [triton.Config({{"BLOCK": b, "num_warps": 1}}, num_warps=w) for b, w in ((16, 1), (64, 2), (256, 4))]

{decorators}
@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)

def run(x):
    out = torch.empty_like(x)
    grid = lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)
    kernel[grid](x, out, x.numel(){call})
    return out
"#
    )
}

fn planned(decorators: &str, call: &str, choices: &Choices) -> Result<LaunchPlan, Diagnostic> {
    let source = Source::new("pass.py", text(decorators, call));
    let modules = ModuleSet::new(vec![("pass".into(), source)]).unwrap();
    let x = HostArg::Tensor(TensorSpec::contiguous(&[100], DType::Float32, Device::CPU));
    plan_chosen(&modules, "run", &[x], PlanLimits::default(), choices)
}

fn launch(plan: &LaunchPlan) -> &Launch {
    let mut launches = plan.steps.iter().rev().filter_map(|step| match step {
        Step::Launch(launch) => Some(launch),
        _ => None,
    });
    launches.next().unwrap()
}

fn block(launch: &Launch) -> i64 {
    match &launch.args.iter().find(|arg| arg.name == "BLOCK").unwrap().value {
        ArgValue::Const(Const::Int(block)) => *block,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_plan_holds_every_configuration_and_runs_with_the_chosen_one() {
    let decorators = "@triton.autotune(configs=CONFIGS, key=['n'])";
    let first = planned(decorators, "", &Choices::default()).unwrap();
    let open = first.open(&Choices::default()).unwrap();
    assert_eq!((open.key.as_str(), open.configs.len()), ("kernel(n=100, float32, float32)", 3));
    assert_eq!((block(open), open.grid[0], open.num_warps), (16, 7, 1));

    let choices = Choices::default().with(&open.key, 2);
    let chosen = planned(decorators, "", &choices).unwrap();
    assert!(chosen.open(&choices).is_none());
    let chosen = launch(&chosen);
    // What stands in the dict as `num_warps` is nothing to Triton: the argument of `triton.Config` counts.
    assert_eq!((block(chosen), chosen.grid[0], chosen.num_warps), (256, 1, 4));
}

#[test]
fn configurations_are_pruned_as_the_pass_says() {
    let blocks = |prune: &str| {
        let decorators =
            format!("@triton.autotune(configs=CONFIGS, key=['n'], prune_configs_by={prune})");
        planned(&decorators, "", &Choices::default()).map(|plan| {
            let configs = &launch(&plan).configs;
            let block = |c: &passnet_kernel::plan::Config| c.values[0].1.as_int().unwrap();
            configs.iter().map(block).collect::<Vec<_>>()
        })
    };
    assert_eq!(blocks("{'early_config_prune': keep_small}").unwrap(), [16, 64]);
    // Estimates are 84, 28 and 924.
    assert_eq!(blocks("{'perf_model': model, 'top_k': 2}").unwrap(), [64, 16]);
    assert_eq!(blocks("{'perf_model': model, 'top_k': 0.4}").unwrap(), [64]);
    let empty = blocks("{'early_config_prune': keep_none}").unwrap_err();
    assert!(empty.to_string().contains("leaves no configuration"), "{empty}");
}

#[test]
fn a_hook_of_the_chosen_configuration_runs_before_its_launch() {
    let decorators = "@triton.autotune(configs=[triton.Config({'BLOCK': 64}, pre_hook=clear)], key=[], \
                      reset_to_zero=['out_ptr'], restore_value=['x_ptr'])";
    let plan = planned(decorators, "", &Choices::default()).unwrap();
    assert_eq!(plan.buffers[1].init, passnet_kernel::plan::Init::Fill(Const::Int(0)));
    assert!(plan.open(&Choices::default()).is_none(), "one configuration leaves nothing open");
}

#[test]
fn heuristics_see_the_configuration_and_win() {
    let decorators = "@triton.autotune(configs=CONFIGS, key=['n'])\n@triton.heuristics({'num_warps': \
                      lambda args: args['BLOCK'] // 16, 'BLOCK': lambda args: args['BLOCK'] * 2})";
    let plan = planned(decorators, "", &Choices::default()).unwrap();
    assert_eq!((block(launch(&plan)), launch(&plan).num_warps), (32, 1));
}

#[test]
fn what_triton_refuses_is_refused_at_its_line() {
    for (decorators, call, message) in [
        ("@triton.autotune(configs=CONFIGS, key=['n'])", ", BLOCK=8", "`BLOCK` is set by the call"),
        ("@triton.autotune(configs=CONFIGS, key=['n'])", ", num_warps=8", "`num_warps` is set by"),
        (
            "@triton.autotune(configs=CONFIGS, key=['n'], reset_to_zero=['y'])",
            "",
            "`reset_to_zero` names str y, which is no argument",
        ),
        (
            "@triton.autotune(configs=[triton.Config({'BLOCK': 16})] * 300, key=['n'])",
            "",
            "have 300 configurations together; 256 is the most",
        ),
        ("@triton.autotune(configs=[3], key=['n'])", "", "`configs` holds int 3"),
        ("@triton.autotune(configs=CONFIGS, key=['x_ptr'])", "", "`x_ptr` in `key` is a tensor"),
        (
            "@triton.autotune(configs=CONFIGS, key=['n'], pre_hook=clear)",
            "",
            "`pre_hook` of `triton.autotune`",
        ),
        ("@triton.heuristics({'SIZE': lambda args: 4})", ", BLOCK=8", "no argument `SIZE`"),
        (
            "@triton.autotune(configs=[triton.Config({}, BLOCK=8)], key=[])",
            "",
            "no argument `BLOCK`",
        ),
    ] {
        let error = planned(decorators, call, &Choices::default()).expect_err(decorators);
        assert!(error.to_string().contains(message), "{decorators}\n{error}");
        assert!(error.line >= 20, "{error}");
    }
}
