//! What a build will take is said before it begins.

mod common;

use common::corpus;
use passnet_dataset::estimate::Estimate;
use passnet_dataset::store::Kind;
use std::num::NonZeroUsize;
use tempfile::TempDir;

const TWO: NonZeroUsize = NonZeroUsize::new(2).unwrap();
const KINDS: [Kind; 2] = [Kind::Typical, Kind::Fusible];

#[test]
fn models_of_a_folder_are_counted_and_those_of_an_archive_guessed() {
    let source = corpus();
    let found = Estimate::of_source(source.path(), &KINDS, TWO).unwrap();
    assert_eq!(found.models, 10);
    assert_eq!(found, Estimate::of_models(10, &KINDS, TWO));
    assert!(found.graphs > 10 && found.store_bytes > 0);
    // Half the workers take twice the time.
    let one = Estimate::of_models(10, &KINDS, NonZeroUsize::MIN);
    assert!((one.seconds() - 2.0 * found.seconds()).abs() < 1e-9);

    let folder = TempDir::new().unwrap();
    let archive = folder.path().join("models.tar");
    let mut builder = tar::Builder::new(std::fs::File::create(&archive).unwrap());
    builder.append_dir_all("samples", source.path().join("samples")).unwrap();
    builder.finish().unwrap();
    assert!(Estimate::of_source(&archive, &KINDS, TWO).unwrap().models >= 1);
}

#[test]
fn a_source_that_is_not_there_is_an_error() {
    let error = Estimate::of_source("/no/such/corpus".as_ref(), &KINDS, TWO).unwrap_err();
    assert!(error.message.contains("cannot be read"), "{error}");
}

#[test]
fn more_kinds_of_pieces_take_longer() {
    let all = [Kind::SoleOp, Kind::Typical, Kind::Fusible];
    let (two, three) = (Estimate::of_models(100, &KINDS, TWO), Estimate::of_models(100, &all, TWO));
    assert!(three.seconds() > 1.2 * two.seconds());
    assert!(three.graphs > two.graphs && three.store_bytes > two.store_bytes);
}

#[test]
fn steps_that_took_longer_make_the_rest_longer() {
    let estimate = Estimate::of_models(100, &KINDS, TWO);
    let first: f64 = estimate.steps[..4].iter().sum();
    assert!((estimate.seconds_after(4, first) - estimate.seconds()).abs() < 1e-9);
    assert!((estimate.seconds_after(4, 2.0 * first) - 2.0 * estimate.seconds()).abs() < 1e-9);
    // What was done before takes no time now, and says nothing about the rest.
    let rest = estimate.seconds() - first;
    assert!((estimate.seconds_after(4, 0.0) - rest / 4.0).abs() < 1e-9);
    let steps = estimate.steps.len();
    assert!(
        (estimate.seconds_after(steps, 7.0) - 7.0).abs() < 1e-9,
        "when all is done, that is it"
    );
}
