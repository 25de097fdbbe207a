//! `passnet extract`: PyTorch models become graph folders, captured in Python, checked and identified here.

mod check;
pub(super) mod listing;
pub(super) mod package;
pub(super) mod python;
mod show;

pub use check::{REASONS, REFUSED, SAMPLES, check, refused};
pub use python::{RESULTS, Record, record_lines, records};
pub use show::failures;

use crate::commands::cluster::{self, ClusterArgs};
use crate::commands::shard::Part;
use crate::error::{CommandError, Outcome};
use crate::output::Output;
use clap::{Args, ValueEnum};
use passnet_bench::shard::Shard;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  passnet extract my_model.py:factory --out graphs/
  passnet extract --catalogue timm --only 'timm/resnet*' --out graphs/ --jobs 8
  passnet extract --configs mirror/ --out graphs/                   config.json files, without their weights
  passnet extract --catalogue all --out graphs/ --seconds 3600      run again to continue
  passnet extract --catalogue all --cluster auto --out graphs/      on the nodes of a Ray cluster
  passnet extract --catalogue all --shard 0/8 --out parts/0      one of eight parts, for `passnet merge`
  passnet extract --catalogue timm --list-only --out models.jsonl   which models there are, one a line
  passnet extract --list models.jsonl --out graphs/                 those of a list, as it was or cut down

A factory returns (module, inputs): a tensor, a tuple of them, or a dictionary of arguments. Graphs go to
OUT/samples/FAMILY/MODEL, with a folder subgraph_K for each graph where the model's graph breaks; what was
tried, and why a model failed, is in OUT/results.jsonl. Nothing is downloaded, no weights are loaded.
Graphs that do not meet the dataset's constraints are moved to OUT/refused, with reasons in refused.jsonl.
Exit code 1 means that some models gave no graph or a refused one; the others are there.")]
pub struct ExtractArgs {
    /// Factories of modules with inputs
    #[arg(value_name = "FILE.py:FACTORY", required_unless_present_any = ["catalogue", "configs", "list"])]
    models: Vec<String>,

    /// Models of these packages, as far as they are installed
    #[arg(long, value_enum, value_delimiter = ',')]
    catalogue: Vec<Catalogue>,

    /// Models of published configurations: a folder with `config.json` files, or `hub` (`hub:N` for the N most used)
    #[arg(long, value_name = "DIR|hub")]
    configs: Option<String>,

    /// Models of a list that `--list-only` wrote, or of some of its lines
    #[arg(long, value_name = "FILE.jsonl")]
    list: Option<PathBuf>,

    /// Write the list of models that are asked for to `--out`, a line each, and capture nothing
    #[arg(long, conflicts_with_all = ["shard", "cluster"])]
    list_only: bool,

    /// The folder for samples/ and results.jsonl
    #[arg(long, value_name = "DIR")]
    out: PathBuf,

    #[command(flatten)]
    pub(super) capture: CaptureArgs,
}

/// How models are captured.
#[derive(Debug, Args)]
pub struct CaptureArgs {
    /// Of the catalogue and of configurations, models whose FAMILY/NAME matches
    #[arg(long, default_value = "*", value_name = "PATTERN")]
    pub only: String,

    /// A Python with PyTorch and the packages; else PASSNET_PYTHON, the environment of `passnet doctor`, python3
    #[arg(long, value_name = "PATH")]
    pub python: Option<PathBuf>,

    /// Models at a time (default: one for each core)
    #[arg(long, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,

    /// Seconds that one model may take
    #[arg(long, default_value_t = 240, value_name = "SECONDS")]
    pub time_limit: u64,

    /// MiB that one model may hold
    #[arg(long, default_value_t = 6144, value_name = "MIB")]
    pub memory_limit: u64,

    /// Begin no model after so many seconds
    #[arg(long, value_name = "SECONDS")]
    pub seconds: Option<u64>,

    /// Try models again that failed before
    #[arg(long)]
    pub retry_failed: bool,

    /// Capture one of N parts (I from 0 to N-1): models go to parts by their names; `passnet merge` puts them together
    #[arg(long, value_name = "I/N", conflicts_with = "cluster")]
    pub shard: Option<Shard>,

    #[command(flatten)]
    pub cluster: ClusterArgs,

    /// Keep sizes symbolic where the model allows it
    #[arg(long)]
    pub dynamic: bool,

    /// Refuse models whose graph breaks
    #[arg(long)]
    pub full_graph: bool,
}

/// A source of the catalogue, as `python/passnet/extract/catalogue` names it: mostly a package of PyPI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Catalogue {
    All,
    Timm,
    Torchvision,
    Transformers,
    Torchaudio,
    TorchGeometric,
    Diffusers,
    OpenClip,
    SegmentationModelsPytorch,
    Pytorchcv,
    TransformersForms,
    VitPytorch,
    XTransformers,
    Monai,
    Tabular,
    DeepctrTorch,
    Esm,
}

impl Catalogue {
    fn source(self) -> String {
        let value = self.to_possible_value().expect("every source has a name");
        value.get_name().to_string()
    }
}

/// Which models are captured.
#[derive(Debug, Clone, Copy, Default)]
pub struct Chosen<'a> {
    /// Factories, as `FILE.py:FACTORY`.
    pub models: &'a [String],
    pub catalogue: &'a [Catalogue],
    /// A folder with published configurations, or the hub.
    pub configs: Option<&'a str>,
    /// A file that lists them.
    pub list: Option<&'a Path>,
}

/// Captures models, all of them or one part. What was done is in `results.jsonl`.
pub fn capture(chosen: Chosen<'_>, out: &Path, args: &CaptureArgs) -> Result<(), CommandError> {
    match args.shard {
        None if args.cluster.is_asked() => cluster::capture(chosen, out, args),
        Some(_) => listing::capture_part(chosen, out, args),
        None => {
            Part::begin(None, Some(out), "extract", [], Vec::new)?;
            python::capture(chosen, out, args)
        }
    }
}

pub fn run(args: ExtractArgs, output: &mut Output) -> Result<Outcome, CommandError> {
    let chosen = Chosen {
        models: &args.models,
        catalogue: &args.catalogue,
        configs: args.configs.as_deref(),
        list: args.list.as_deref(),
    };
    if args.list_only {
        python::list(chosen, &args.out, &args.capture)?;
        return Ok(Outcome::Done);
    }
    capture(chosen, &args.out, &args.capture)?;
    let records = records(&args.out)?;
    let graphs = check(&args.out)?;
    show::show(output, &records, &graphs)?;
    let failed = records.values().any(|record| !record.is_captured());
    Ok(Outcome::failed_if(failed || graphs.iter().any(|graph| graph.problem.is_some())))
}

#[cfg(test)]
mod tests {
    use super::Catalogue;
    use clap::ValueEnum as _;
    use std::collections::BTreeSet;

    #[test]
    fn every_source_of_the_extractor_can_be_asked_for() {
        let text = include_str!("../../../../../python/passnet/extract/catalogue/__init__.py");
        let (_, table) = text.split_once("\nSOURCES = {\n").unwrap();
        let (table, _) = table.split_once("\n}").unwrap();
        let listed = table.lines().map(|line| line.split('"').nth(1).unwrap().to_string());
        let offered = Catalogue::value_variants().iter().map(|one| one.source());
        let all = std::iter::once("all".to_string());
        assert_eq!(offered.collect::<BTreeSet<_>>(), listed.chain(all).collect());
    }
}
