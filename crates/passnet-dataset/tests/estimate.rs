//! What a build will take is said before it begins.

mod common;

use common::corpus;
use passnet_dataset::estimate::Estimate;
use std::num::NonZeroUsize;
use tempfile::TempDir;

const TWO: NonZeroUsize = NonZeroUsize::new(2).unwrap();

#[test]
fn models_of_a_folder_are_counted_and_those_of_an_archive_guessed() {
    let source = corpus();
    let found = Estimate::of_source(source.path(), TWO).unwrap();
    assert_eq!(found.models, 10);
    assert_eq!(found, Estimate::of_models(10, TWO));
    assert!(found.graphs > 10 && found.store_bytes > 0);
    // Half the workers take twice the time.
    let one = Estimate::of_models(10, NonZeroUsize::MIN);
    assert!((one.seconds - 2.0 * found.seconds).abs() < 1e-9);

    let folder = TempDir::new().unwrap();
    let archive = folder.path().join("models.tar");
    let mut builder = tar::Builder::new(std::fs::File::create(&archive).unwrap());
    builder.append_dir_all("samples", source.path().join("samples")).unwrap();
    builder.finish().unwrap();
    assert!(Estimate::of_source(&archive, TWO).unwrap().models >= 1);
}

#[test]
fn a_source_that_is_not_there_is_an_error() {
    let error = Estimate::of_source("/no/such/corpus".as_ref(), TWO).unwrap_err();
    assert!(error.message.contains("cannot be read"), "{error}");
}
