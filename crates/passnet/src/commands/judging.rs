//! Arguments that say how passes are judged, for every command that judges.

use clap::Args;
use passnet_bench::evaluate::EvaluateOptions;
use passnet_bench::secret::Secret;
use passnet_bench::timing::TimingOptions;

/// How passes are judged.
#[derive(Debug, Args)]
pub struct Judging {
    /// Calls of each side before timing
    #[arg(long, default_value_t = 25)]
    warmup: usize,

    /// Timed calls of each side; more where the result is not clear yet
    #[arg(long, default_value_t = 100)]
    trials: usize,

    /// Seconds of timing for one graph, about
    #[arg(long, default_value_t = 0.4, value_name = "S")]
    seconds: f64,

    /// Only what the reference asks: no extreme inputs, no watched kernels
    #[arg(long)]
    quick: bool,

    /// Draw inputs as they were drawn for the graph whose result records this secret, to see that result again
    #[arg(long, value_name = "HEX")]
    secret: Option<Secret>,

    /// Let passes through that the integrity rules refuse
    #[arg(long)]
    no_rules: bool,
}

impl Judging {
    pub fn options(&self) -> EvaluateOptions {
        let timing = TimingOptions {
            warmup: self.warmup,
            trials: self.trials,
            seconds: self.seconds,
            ..TimingOptions::default()
        };
        EvaluateOptions {
            timing,
            thorough: !self.quick,
            replayed: self.secret.clone(),
            ..EvaluateOptions::default()
        }
    }

    pub fn rules(&self) -> bool {
        !self.no_rules
    }
}

/// How an agent's passes are judged.
#[derive(Debug, Args)]
pub struct AgentJudging {
    #[command(flatten)]
    pub(super) judging: Judging,

    /// Seconds for one evaluation; the graphs behind it time out
    #[arg(long, default_value_t = 600.0, value_name = "S")]
    pub(super) evaluation_seconds: f64,
}
