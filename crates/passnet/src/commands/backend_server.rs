//! `passnet backend-server`: answers the backend of `torch.compile`, one frame for each question, until the pipe closes.

use super::engine::own_runner;
use crate::cache::cache_folder;
use crate::error::{CommandError, Outcome};
use clap::Args;
use passnet_engine::torch::frames;
use passnet_engine::{Engine, EngineChoice, EngineName};
use passnet_library::Session;
use passnet_library::session::SessionOptions;
use std::io::{BufReader, BufWriter, ErrorKind};
use std::path::PathBuf;

/// Questions carry no raw bytes.
const MAX_BYTES: u64 = 0;

#[derive(Debug, Args)]
pub struct BackendServerArgs {
    /// The Python that asks: it has PyTorch, and Triton where there is a GPU
    #[arg(long, default_value = "python3")]
    python: PathBuf,

    /// The native plan runner; else the one that this program carries, or that lies beside it
    #[arg(long, env = "PASSNET_RUNNER", value_name = "FILE")]
    runner: Option<PathBuf>,
}

pub fn run(args: BackendServerArgs) -> Result<Outcome, CommandError> {
    let runner = args.runner.or_else(own_runner);
    let choice = EngineChoice {
        engine: EngineName::Torch,
        python: args.python.clone(),
        runner: runner.clone(),
        ..EngineChoice::default()
    };
    let start_engine = move |device: &str| -> Result<Box<dyn Engine>, String> {
        let choice = EngineChoice { device: device.to_string(), ..choice.clone() };
        let engines = choice
            .start(&cache_folder().join("cubins"), None)
            .map_err(|error| error.to_string())?;
        engines.into_iter().next().ok_or_else(|| "no engine was started".into())
    };
    let mut session = Session::new(SessionOptions {
        python: args.python,
        cache: cache_folder().join("cubins"),
        runner,
        start_engine: Box::new(start_engine),
    });
    let mut input = BufReader::new(std::io::stdin());
    let mut output = BufWriter::new(std::io::stdout());
    loop {
        let question = match frames::read_up_to(&mut input, MAX_BYTES) {
            Ok(question) => question,
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(Outcome::Done),
            Err(error) => return Err(error.into()),
        };
        let (message, parts) = session.answer(&question);
        frames::write(&mut output, &message, &parts)?;
    }
}
