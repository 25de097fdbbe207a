//! `passnet reference`: the command lines of the reference's harness, so that scripts written for it run as they are.
//!
//! `python3 -m pass_bench.torch.test_compiler …` is `passnet reference test-compiler …`, and `python3 -m
//! pass_bench.aggregate_es_scores …` is `passnet reference aggregate …`; `python/pass_bench` forwards the former to the latter.

mod aggregate;
mod config;
mod custom;
mod test_compiler;

use crate::error::{CommandError, Outcome};
use crate::output::Output;
use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub enum ReferenceCommand {
    /// Evaluate graphs and print the reference's log (`pass_bench.torch.test_compiler`)
    #[command(after_help = "\
Example:
  passnet reference test-compiler --model-path-prefix SAMPLE --allow-list SAMPLE/graph_list.txt --compiler pass_mgr \\
      --device cuda --warmup 25 --trials 100 --config $(base64 -w 0 config.json) 2>&1 | tee out/validation.log

The configuration has `output_pass_rule_dir`, `input_pass_rule_dir` and `pass_match_result_file_path`; limits on patterns
and functions are not needed here and ignored. PASSNET_CUSTOM_PASS_SOURCE_CHECKER_PATH names Python files, with colons
between them, whose `validate_pass_source(source)` may refuse a pass.

`--device cuda` on a machine where no GPU can be used measures on the CPU and says so first; with PASSNET_REQUIRE_GPU=1 it
ends with exit code 3 instead.")]
    TestCompiler(Box<test_compiler::TestCompilerArgs>),
    /// Score a log as the reference does (`pass_bench.aggregate_es_scores`)
    #[command(after_help = "\
Example:
  passnet reference aggregate --benchmark-path out/validation.log --sample-id 1 --disable-aggregation-mode \\
      --output-json-file-path out/aggregated_score.json

PASSNET_CUSTOM_WEIGHT_FUNC_PATH names a Python file whose `get_weights()` gives the weights of t = -10 to 4.")]
    Aggregate(aggregate::AggregateArgs),
}

pub fn run(command: ReferenceCommand, output: &mut Output) -> Result<Outcome, CommandError> {
    match command {
        ReferenceCommand::TestCompiler(args) => test_compiler::run(*args, output),
        ReferenceCommand::Aggregate(args) => aggregate::run(args, output),
    }
}
