//! The judge against torch, and against plain sense where torch's rules are wrong.

use half::{bf16, f16};
use passnet_bench::compare::{
    Comparison, Rules, TensorData, TensorView, compare, ladder, ladders_by_format,
};
use passnet_bench::number::Number;
use passnet_bench::tolerance::{BASELINE, Ladder, Tolerance, levels};
use passnet_bench::verdict::{Evidence, VerdictKind};
use passnet_graph::DType;
use proptest::prelude::*;

fn one<'a>(shape: &'a [usize], data: TensorData<'a>) -> [TensorView<'a>; 1] {
    [TensorView { shape, data }]
}

fn compare_f32(expected: &[f32], actual: &[f32], rules: Rules) -> Comparison {
    let (e, a) = ([expected.len()], [actual.len()]);
    compare(&one(&e, TensorData::F32(expected)), &one(&a, TensorData::F32(actual)), rules).unwrap()
}

/// `tests/data/allclose.txt` holds what `torch.allclose` answered (see `tools/allclose_goldens.py`).
#[test]
fn reference_rules_are_those_of_torch() {
    let mut pairs = 0;
    for line in include_str!("data/allclose.txt").lines().filter(|l| !l.starts_with('#')) {
        let mut fields = line.split(' ');
        let mut next = || fields.next().unwrap();
        let (dtype, e, a, first) = (next(), next(), next(), next());
        let bits = |text| u64::from_str_radix(text, 16).unwrap();
        let (e, a) = (bits(e), bits(a));
        let ladder = match dtype {
            "float16" => {
                let value = |b: u64| [f16::from_bits(b as u16)];
                scalar(TensorData::F16(&value(e)), TensorData::F16(&value(a)))
            }
            "bfloat16" => {
                let value = |b: u64| [bf16::from_bits(b as u16)];
                scalar(TensorData::BF16(&value(e)), TensorData::BF16(&value(a)))
            }
            "float32" => {
                let value = |b: u64| [f32::from_bits(b as u32)];
                scalar(TensorData::F32(&value(e)), TensorData::F32(&value(a)))
            }
            _ => {
                let value = |b: u64| [f64::from_bits(b)];
                scalar(TensorData::F64(&value(e)), TensorData::F64(&value(a)))
            }
        };
        assert_eq!(ladder, Ladder::right_from(first.parse().unwrap_or(6)), "{line}");
        pairs += 1;
    }
    assert!(pairs > 1500);
}

fn scalar(expected: TensorData<'_>, actual: TensorData<'_>) -> Ladder {
    let (expected, actual) = (one(&[], expected), one(&[], actual));
    let full = compare(&expected, &actual, Rules::Reference).unwrap().ladder;
    assert_eq!(ladder(&expected, &actual, Rules::Reference).unwrap(), Some(full));
    full
}

#[test]
fn nan_is_right_only_where_nan_is_expected() {
    let nan = f32::NAN;
    let other_nan = f32::from_bits(0xffc0_0001);
    for (expected, actual, strict) in [
        ([1.0, nan], [1.0, nan], true),
        ([1.0, nan], [1.0, other_nan], true),
        ([1.0, nan], [nan, 1.0], false),
        ([1.0, 2.0], [1.0, nan], false),
        ([1.0, nan], [1.0, 2.0], false),
    ] {
        let is_right = |rules| compare_f32(&expected, &actual, rules).ladder == Ladder::ALL;
        assert_eq!(is_right(Rules::Strict), strict, "{expected:?} {actual:?}");
        assert!(!is_right(Rules::Reference), "{expected:?} {actual:?}");
    }
}

#[test]
fn infinities_are_right_only_where_expected() {
    let inf = f32::INFINITY;
    for rules in [Rules::Strict, Rules::Reference] {
        assert_eq!(compare_f32(&[inf, -inf], &[inf, -inf], rules).ladder, Ladder::ALL);
        assert_eq!(compare_f32(&[inf], &[-inf], rules).ladder, Ladder::NONE);
        assert_eq!(compare_f32(&[inf], &[f32::MAX], rules).ladder, Ladder::NONE);
        assert_eq!(
            compare_f32(&[1.0], &[inf], rules).ladder,
            Ladder::NONE,
            "inf <= inf proves nothing"
        );
    }
}

#[test]
fn integers_and_bools_have_no_tolerance() {
    fn exact(e: TensorData<'_>, a: TensorData<'_>) -> Ladder {
        compare(&one(&[2], e), &one(&[2], a), Rules::Strict).unwrap().ladder
    }
    let near = i64::MAX - 1;
    assert_eq!(
        exact(TensorData::I64(&[7, i64::MAX]), TensorData::I64(&[7, i64::MAX])),
        Ladder::ALL
    );
    assert_eq!(exact(TensorData::I64(&[7, i64::MAX]), TensorData::I64(&[7, near])), Ladder::NONE);
    assert_eq!(exact(TensorData::U8(&[0, 255]), TensorData::U8(&[0, 254])), Ladder::NONE);
    assert_eq!(exact(TensorData::I8(&[0, -128]), TensorData::I8(&[0, -128])), Ladder::ALL);
    assert_eq!(exact(TensorData::I16(&[0, 1]), TensorData::I16(&[0, 2])), Ladder::NONE);
    assert_eq!(exact(TensorData::I32(&[0, 1]), TensorData::I32(&[0, 2])), Ladder::NONE);
    assert_eq!(
        exact(TensorData::Bool(&[true, false]), TensorData::Bool(&[true, true])),
        Ladder::NONE
    );
    let c = |x| [[1.0f32, x], [0.0, f32::NAN]];
    assert_eq!(exact(TensorData::C64(&c(2.0)), TensorData::C64(&c(2.0))), Ladder::ALL);
    assert_eq!(exact(TensorData::C64(&c(2.0)), TensorData::C64(&c(2.001))), Ladder::NONE);
}

#[test]
fn structure_is_compared_before_numbers() {
    let data = [1.0f32; 6];
    let view = |shape| TensorView { shape, data: TensorData::F32(&data) };
    let kind = |e: &[_], a: &[_]| {
        let comparison = compare(e, a, Rules::Strict).unwrap();
        assert_eq!(comparison.ladder, Ladder::NONE);
        (comparison.verdict.kind, comparison.verdict.to_string())
    };
    // A shape that would broadcast is still a wrong shape.
    let (verdict, text) = kind(&[view(&[6])], &[view(&[1, 6])]);
    assert_eq!(verdict, VerdictKind::ShapeMismatch);
    assert_eq!(text, "shape_mismatch: output 0 has shape [1, 6], expected [6]");
    let (verdict, text) = kind(&[view(&[6])], &[view(&[6]), view(&[6])]);
    assert_eq!(verdict, VerdictKind::ShapeMismatch);
    assert_eq!(text, "shape_mismatch: 2 outputs, expected 1");
    let wide = [1.0f64; 6];
    let double = TensorView { shape: &[2, 3], data: TensorData::F64(&wide) };
    let (verdict, text) = kind(&[view(&[6])], &[double]);
    assert_eq!(verdict, VerdictKind::DtypeMismatch);
    assert_eq!(text, "dtype_mismatch: output 0 is float64, expected float32");
}

#[test]
fn a_shape_that_does_not_fit_its_data_is_the_callers_fault() {
    let data = [1.0f32; 6];
    let good = TensorView { shape: &[6], data: TensorData::F32(&data) };
    for shape in [&[5][..], &[], &[usize::MAX, usize::MAX]] {
        let bad = TensorView { shape, data: TensorData::F32(&data) };
        assert!(compare(&[bad], &[good], Rules::Strict).is_err());
        assert!(compare(&[good], &[bad], Rules::Strict).is_err());
    }
}

#[test]
fn empty_outputs_are_right() {
    let comparison = compare(
        &one(&[0, 3], TensorData::F16(&[])),
        &one(&[0, 3], TensorData::F16(&[])),
        Rules::Reference,
    );
    let comparison = comparison.unwrap();
    assert_eq!(comparison.ladder, Ladder::ALL);
    assert_eq!((comparison.outputs[0].mean_error, comparison.outputs[0].max_error()), (0.0, 0.0));
}

#[test]
fn evidence_names_the_first_wrong_element_and_the_worst_errors() {
    let mut expected = vec![1.0f32; 200];
    let mut actual = expected.clone();
    actual[3] = 1.000_001; // within the baseline tolerance
    (expected[70], actual[70]) = (1000.0, 1001.0); // worst absolute error
    (expected[150], actual[150]) = (0.25, 0.5); // worst relative error
    let comparison = compare(
        &one(&[2, 100], TensorData::F32(&expected)),
        &one(&[2, 100], TensorData::F32(&actual)),
        Rules::Strict,
    )
    .unwrap();
    assert_eq!(comparison.verdict.kind, VerdictKind::Accuracy);
    let [Evidence::Values(found)] = &comparison.verdict.evidence[..] else { panic!() };
    assert_eq!((found.elements, found.unequal, found.wrong), (200, 3, 2));
    let first = found.first_wrong.as_ref().unwrap();
    assert_eq!(first.index, [0, 70]);
    assert_eq!((first.expected.as_str(), first.actual.as_str()), ("1000.0", "1001.0"));
    let worst = found.worst_absolute.as_ref().unwrap();
    assert_eq!((worst.error.0, &worst.at.index[..]), (1.0, &[0, 70][..]));
    let worst = found.worst_relative.as_ref().unwrap();
    assert_eq!((worst.error.0, &worst.at.index[..]), (1.0, &[1, 50][..]));
}

#[test]
fn a_nan_outranks_every_other_error() {
    let comparison = compare_f32(&[1.0, 2.0, 3.0], &[f32::INFINITY, f32::NAN, 0.0], Rules::Strict);
    let output = &comparison.outputs[0];
    assert!(output.max_error().is_nan());
    assert_eq!(output.worst_absolute.as_ref().unwrap().at.index, [1]);
    assert_eq!((output.nan_expected, output.nan_actual, output.wrong), (0, 1, 3));
}

/// A log lists every output under the tolerances of all four float types.
#[test]
fn the_four_ladders_of_a_log() {
    let (e, a) = ([1.0f32], [1.001f32]);
    let (e, a) = (one(&[1], TensorData::F32(&e)), one(&[1], TensorData::F32(&a)));
    let ladders = ladders_by_format(&e[0], &a[0], Rules::Reference).unwrap();
    assert_eq!(ladders.map(|l| l.first_right().unwrap()), [-5, -8, -3, -2]);
    let wide = [1.0f64];
    let other = TensorView { shape: &[1], data: TensorData::F64(&wide) };
    assert_eq!(ladders_by_format(&e[0], &other, Rules::Reference), None);
}

fn any_float() -> impl Strategy<Value = f64> {
    prop_oneof![
        8 => -10.0f64..10.0,
        1 => prop::num::f64::ANY,
        1 => prop_oneof![Just(0.0), Just(-0.0), Just(f64::NAN), Just(f64::INFINITY)],
    ]
}

proptest! {
    /// The one-pass ladder is what checking every level on its own gives.
    #[test]
    fn one_pass_equals_sixteen(
        pairs in prop::collection::vec((any_float(), any_float(), -14.0f64..2.0, any::<bool>()), 0..150),
    ) {
        let expected: Vec<f64> = pairs.iter().map(|p| p.0).collect();
        let actual: Vec<f64> = pairs
            .iter()
            .map(|&(e, other, exponent, near)| if near { e + e * 10f64.powf(exponent) } else { other })
            .collect();
        let shape = [expected.len()];
        let comparison = compare(
            &one(&shape, TensorData::F64(&expected)),
            &one(&shape, TensorData::F64(&actual)),
            Rules::Strict,
        )
        .unwrap();
        let right = |e: f64, a: f64, t| {
            let tolerance = Tolerance::of(DType::Float64, t).unwrap();
            let error = (e - a).abs();
            e == a
                || (e.is_nan() && a.is_nan())
                || (error.is_finite() && error <= tolerance.atol + tolerance.rtol * a.abs())
        };
        let (e, a) = (one(&shape, TensorData::F64(&expected)), one(&shape, TensorData::F64(&actual)));
        prop_assert_eq!(ladder(&e, &a, Rules::Strict).unwrap(), Some(comparison.ladder));
        for t in levels() {
            let all = expected.iter().zip(&actual).all(|(&e, &a)| right(e, a, t));
            prop_assert_eq!(comparison.ladder.is_right_at(t), all, "t = {}", t);
        }
        let wrong: Vec<usize> = (0..expected.len())
            .filter(|&i| !right(expected[i], actual[i], BASELINE))
            .collect();
        let output = &comparison.outputs[0];
        prop_assert_eq!(output.wrong, wrong.len());
        let first = output.first_wrong.as_ref().map(|f| f.index[0]);
        prop_assert_eq!(first, wrong.first().copied());
    }

    /// Blocks that are right are looked at as a whole, others element by element; the report is the same.
    #[test]
    fn errors_are_those_of_the_elements(
        pairs in prop::collection::vec((any_float(), -12.0f64..-3.0, 0..3), 1..300),
        is_right in any::<bool>(),
    ) {
        // Where all is right every block is looked at as a whole; one element that is not is enough for the other way.
        let is_small = |e: f64| e.abs() < 1e6;
        let value = |e: f64| if is_right && !is_small(e) { 0.0 } else { e as f32 };
        let expected: Vec<f32> = pairs.iter().map(|p| value(p.0)).collect();
        let changed = |&(e, exponent, kind): &(f64, f64, i32)| match (kind, is_right) {
            (0, _) => value(e),
            (1, true) => value(e) + 1e-9,
            (1, false) => -0.0 - e.abs().min(1e-6) as f32,
            (_, true) => value(e) * (1.0 + 10f64.powf(exponent.min(-6.0))) as f32,
            _ => (e + e * 10f64.powf(exponent)) as f32,
        };
        let actual: Vec<f32> = pairs.iter().map(changed).collect();
        let ladder = compare_f32(&expected, &actual, Rules::Strict).ladder;
        prop_assert!(!is_right || ladder.is_right_at(BASELINE), "{}", ladder);
        let output = &compare_f32(&expected, &actual, Rules::Strict).outputs[0];
        let pairs = expected.iter().zip(&actual).map(|(e, a)| (f64::from(*e), f64::from(*a)));
        let unequal: Vec<(usize, f64, f64)> = pairs
            .enumerate()
            .filter(|(_, (e, a))| e != a && !(e.is_nan() && a.is_nan()))
            .map(|(at, (e, a))| (at, (e - a).abs(), (e - a).abs() / e.abs()))
            .collect();
        prop_assert_eq!(output.unequal, unequal.len());
        let worst = |error: fn(&(usize, f64, f64)) -> f64| {
            let nan = unequal.iter().find(|found| error(found).is_nan());
            nan.or_else(|| unequal.iter().rev().max_by(|a, b| error(a).total_cmp(&error(b))))
                .map(|found| (Number(error(found)), found.0))
        };
        for (found, error) in [
            (&output.worst_absolute, (|e| e.1) as fn(&(usize, f64, f64)) -> f64),
            (&output.worst_relative, |e| e.2),
        ] {
            let found = found.as_ref().map(|worst| (worst.error, worst.at.index[0]));
            prop_assert_eq!(found, worst(error));
        }
        let mean = unequal.iter().map(|found| found.1).sum::<f64>() / expected.len() as f64;
        let is_close = (output.mean_error - mean).abs() <= 1e-12 * mean;
        prop_assert!(is_close || Number(output.mean_error) == Number(mean), "{output:?} {mean}");
    }

    #[test]
    fn half_precision_agrees_with_itself(bits in prop::collection::vec(any::<u16>(), 1..200)) {
        let halves: Vec<f16> = bits.iter().map(|&b| f16::from_bits(b)).collect();
        let shape = [halves.len()];
        let view = one(&shape, TensorData::F16(&halves));
        prop_assert_eq!(compare(&view, &view, Rules::Strict).unwrap().ladder, Ladder::ALL);
        let has_nan = halves.iter().any(|h| h.is_nan());
        let reference = compare(&view, &view, Rules::Reference).unwrap().ladder;
        prop_assert_eq!(reference, if has_nan { Ladder::NONE } else { Ladder::ALL });
    }

    /// The short way to the ladder and the long way agree for every type, and on structure.
    #[test]
    fn the_fast_ladder_is_the_ladder(
        bits in prop::collection::vec((any::<u16>(), -3i16..3), 1..200),
        is_strict in any::<bool>(),
    ) {
        let rules = if is_strict { Rules::Strict } else { Rules::Reference };
        let near = |(b, d): &(u16, i16)| b.wrapping_add_signed(*d);
        let shape = [bits.len()];
        macro_rules! agree {
            ($kind:ident, $value:expr) => {
                let e: Vec<_> = bits.iter().map(|p| $value(p.0)).collect();
                let a: Vec<_> = bits.iter().map(near).map($value).collect();
                let (e, a) = (one(&shape, TensorData::$kind(&e)), one(&shape, TensorData::$kind(&a)));
                let full = compare(&e, &a, rules).unwrap().ladder;
                prop_assert_eq!(ladder(&e, &a, rules).unwrap(), Some(full));
            };
        }
        agree!(F16, f16::from_bits);
        agree!(BF16, bf16::from_bits);
        agree!(F32, |b: u16| f16::from_bits(b).to_f32());
        agree!(I16, |b: u16| b as i16 / 8);
        agree!(C64, |b: u16| [f16::from_bits(b).to_f32(), 1.0]);
        let (e, a) = (one(&[], TensorData::I32(&[1])), one(&[], TensorData::I64(&[1])));
        prop_assert_eq!(ladder(&e, &a, rules).unwrap(), None);
    }
}
