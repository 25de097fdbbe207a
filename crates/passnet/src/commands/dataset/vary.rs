//! `passnet dataset vary`

use super::measure::MeasureArgs;
use super::{KindArg, PIECES, StoreArgs, kinds, show_sweep, sweep_json};
use crate::error::{CommandError, Outcome};
use crate::output::Output;
use crate::progress::Bar;
use clap::Args;
use passnet_dataset::store::Kind;
use passnet_dataset::vary::run::{VaryOptions, vary};
use passnet_graph::DType;

#[derive(Debug, Args)]
pub struct VaryArgs {
    #[command(flatten)]
    store: StoreArgs,

    /// Vary these kinds of pieces only
    #[arg(long, value_enum, value_delimiter = ',')]
    kind: Vec<KindArg>,

    #[command(flatten)]
    choice: VariantChoice,

    #[command(flatten)]
    measure: MeasureArgs,
}

/// Which variants to make.
#[derive(Debug, Args)]
pub(super) struct VariantChoice {
    /// Make no shape variants
    #[arg(long)]
    no_shapes: bool,

    /// Dtypes to make besides the original
    #[arg(long, value_delimiter = ',', default_value = "float16,bfloat16", value_parser = dtype)]
    dtypes: Vec<DType>,

    /// Elements that the inputs of a variant may have together; larger ones are not made
    #[arg(long, default_value_t = 1 << 28, value_name = "N")]
    max_elements: u64,
}

fn dtype(name: &str) -> Result<DType, String> {
    match DType::from_name(name) {
        Some(dtype @ (DType::Float16 | DType::BFloat16 | DType::Float64)) => Ok(dtype),
        _ => Err("expected float16, bfloat16 or float64".into()),
    }
}

impl VariantChoice {
    pub(super) fn options(&self, kinds: Vec<Kind>) -> VaryOptions {
        VaryOptions {
            kinds,
            shapes: !self.no_shapes,
            dtypes: self.dtypes.clone(),
            max_elements: self.max_elements,
        }
    }
}

pub fn run(args: VaryArgs, output: &mut Output) -> Result<Outcome, CommandError> {
    if args.kind.contains(&KindArg::Full) {
        return Err(CommandError::input("whole models are not varied themselves")
            .with_hint("pieces are cut out of their shape variants: name kinds of pieces"));
    }
    let mut store = args.store.write()?;
    let options = args.choice.options(kinds(&args.kind, &PIECES));
    let workers = args.store.workers.count();
    let report =
        args.measure.with(|measure| vary(&mut store, &options, measure, workers, &Bar::new()))?;
    if output.is_json() {
        output.json(&sweep_json(&report))?;
    } else {
        show_sweep(output, &report)?;
    }
    Ok(Outcome::Done)
}
