//! A store built from the small models, with variants and tasks of typical pieces.

use crate::common::corpus;
use passnet_dataset::decompose::run::Method;
use passnet_dataset::decompose::typical::TypicalOptions;
use passnet_dataset::dedup::Level;
use passnet_dataset::pipeline::{BuildOptions, build};
use passnet_dataset::source::{self, Limits};
use passnet_dataset::store::Store;
use passnet_dataset::vary::run::VaryOptions;
use passnet_work::progress::Silent;
use std::num::NonZeroUsize;
use tempfile::TempDir;

pub fn built(folder: &TempDir, evaluation: usize) -> Store {
    let source = corpus();
    let mut store = Store::open_for_writing(&folder.path().join("all"), NonZeroUsize::MIN).unwrap();
    let options = BuildOptions {
        workers: NonZeroUsize::MIN,
        methods: vec![Method::Typical(TypicalOptions::default())],
        level: Level::Full,
        vary: VaryOptions::default(),
        measure: None,
        evaluation,
    };
    let source = source::open(source.path(), Limits::default()).unwrap();
    build(&mut store, source, &options, &Silent, |_| {}).unwrap();
    store
}
