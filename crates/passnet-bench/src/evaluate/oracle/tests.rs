use super::judge as judge_moved;
use super::*;

/// As of a graph whose results do not depend on the last bit of its inputs.
fn judge(eager: &[Flat<'_>], candidate: &[Flat<'_>], truth: &[Flat<'_>]) -> Judgement {
    judge_moved(eager, candidate, truth, Some(&Moves::none(truth)))
}

/// As of a graph without jumps: a thousandth of the last bit moves nothing.
fn smoothly(truth: &[Flat<'_>], by_bit: Vec<Flat<'static>>) -> Moves {
    let mut moves = Moves::none(truth);
    moves.add(truth, &by_bit, truth);
    moves
}

/// A sum that comes back to zero is only as exact as the sums before it.
#[test]
fn an_element_may_be_off_by_a_few_units_of_the_largest() {
    let truth = flat(&[1e6, 100.0]);
    assert_eq!(judge(&truth, &flat(&[1e6, 100.3]), &truth), Judgement::Right);
    assert_eq!(judge(&truth, &flat(&[1e6, 101.0]), &truth), Judgement::Wrong);
}

/// Half types are computed in float32: so much is left where large products cancel.
#[test]
fn an_element_of_a_half_type_may_be_off_by_units_of_float32() {
    let half = |values: &[f32]| -> Vec<Flat<'static>> {
        let tensor = Tensor::from_slice(values, &[values.len()]).unwrap();
        let half = tensor.to_dtype(DType::Float16).unwrap();
        vec![Flat::of(Box::leak(Box::new(half))).unwrap()]
    };
    let (eager, truth) = (half(&[900.0, -0.000412]), flat(&[900.0, -0.00042]));
    assert_eq!(judge(&eager, &half(&[900.0, -0.000488]), &truth), Judgement::Right);
    assert_eq!(judge(&eager, &half(&[900.0, -0.001]), &truth), Judgement::Wrong);
}

/// What a half type rounded stays rounded when it is widened.
#[test]
fn a_widened_output_is_judged_as_the_type_it_was_rounded_to() {
    let exact: Vec<f32> = (0..64).map(|i| 1.0 + i as f32 * 0.013).collect();
    let rounded: Vec<f32> = exact.iter().map(|x| half::bf16::from_f32(*x).to_f32()).collect();
    let with_first = |value: f32| {
        let mut values = rounded.clone();
        values[0] = value;
        flat(&values)
    };
    let (eager, truth) = (flat(&rounded), flat(&exact));
    // The next value of bfloat16, and one that is three further.
    assert_eq!(judge(&eager, &with_first(1.0078125), &truth), Judgement::Right);
    assert_eq!(judge(&eager, &with_first(1.0625), &truth), Judgement::Wrong);
    // Values that are exact, such as counts, are those of float32.
    let counts = flat(&std::array::from_fn::<f32, 64, _>(|i| i as f32));
    let mut off: [f32; 64] = std::array::from_fn(|i| i as f32);
    off[40] = 40.25;
    assert_eq!(judge(&counts, &flat(&off), &counts), Judgement::Wrong);
}

/// Tests may leak a few bytes.
fn flat(values: &[f32]) -> Vec<Flat<'static>> {
    let tensor = Tensor::from_slice(values, &[values.len()]).unwrap();
    vec![Flat::of(Box::leak(Box::new(tensor))).unwrap()]
}

#[test]
fn a_candidate_close_to_the_truth_is_right_whatever_eager_gives() {
    let truth = flat(&[1.0, 2.0]);
    for eager in [[1.01, 2.0], [f32::INFINITY, 2.0], [f32::NAN, 2.0]] {
        assert_eq!(judge(&flat(&eager), &flat(&[1.0, 2.0]), &truth), Judgement::Right);
    }
    let eager = flat(&[1.01, 2.0]);
    assert_eq!(judge(&eager, &flat(&[1.0, 2.01]), &truth), Judgement::Wrong, "elsewhere");
    assert_eq!(judge(&eager, &flat(&[f32::NAN, 2.0]), &truth), Judgement::Wrong);
}

/// An eager result that overflowed must not excuse whatever the candidate gives there.
#[test]
fn what_eager_has_no_number_for_forgives_nothing() {
    let truth = flat(&[1.0, 2.0]);
    for eager in [f32::INFINITY, f32::NAN] {
        let eager = flat(&[eager, 2.00005]);
        assert_eq!(judge(&eager, &flat(&[1.00002, 2.0]), &truth), Judgement::Wrong);
        assert_eq!(judge(&eager, &flat(&[7.0, 2.0]), &truth), Judgement::Wrong);
    }
    let nowhere = flat(&[f32::NAN, f32::INFINITY]);
    assert_eq!(judge(&nowhere, &flat(&[0.0, f32::INFINITY]), &nowhere), Judgement::Wrong);
    assert_eq!(judge(&nowhere, &flat(&[f32::NAN, 1e30]), &nowhere), Judgement::Wrong);
    assert_eq!(judge(&nowhere, &nowhere, &nowhere), Judgement::Right);
}

/// One tolerance of float32 at 1000 is 1.31e-3.
#[test]
fn rounding_is_forgiven_as_often_and_as_far_as_eager_rounds() {
    let truth = flat(&[1000.0; 100]);
    let off = |count: usize, by: f32| {
        flat(&std::array::from_fn::<f32, 100, _>(|i| if i < count { 1000.0 + by } else { 1000.0 }))
    };
    // Eager is off by two tolerances at ten elements, on the other side.
    let eager = off(10, -2.62e-3);
    let found = judge(&eager, &off(10, 5.2e-3), &truth);
    assert!(matches!(found, Judgement::Forgiven { elements: 10, .. }), "{found:?}");
    assert_eq!(judge(&eager, &off(10, 0.2), &truth), Judgement::Wrong, "too far");
    assert_eq!(judge(&eager, &off(90, 5.2e-3), &truth), Judgement::Wrong, "too often");
    assert_eq!(judge(&truth, &off(1, 2.7e-3), &truth), Judgement::Wrong, "eager is exact");
    // However far eager is off, there is a limit.
    assert_eq!(judge(&off(100, -5.01), &off(100, 0.2), &truth), Judgement::Wrong);
}

/// An exponential of 50 moves by six millionths with the last bit of 50.
#[test]
fn an_element_may_be_as_far_off_as_the_last_bit_of_the_inputs_moves_it() {
    let truth = flat(&[1.0, 2.0]);
    let candidate = flat(&[1.0, 2.0 + 2e-5]);
    let judge = |moved: &[f32], candidate| {
        judge_moved(&truth, candidate, &truth, Some(&smoothly(&truth, flat(moved))))
    };
    assert_eq!(judge_moved(&truth, &candidate, &truth, None), Judgement::Unexplained);
    assert_eq!(judge(&[1.0, 2.0], &candidate), Judgement::Wrong);
    assert_eq!(judge(&[1.1, 2.0], &candidate), Judgement::Wrong, "another element moves");
    assert_eq!(judge(&[1.0, 2.0 - 3e-5], &candidate), Judgement::Right);
    assert_eq!(judge(&[1.0, f32::INFINITY], &candidate), Judgement::Wrong);
}

/// Two sides that round alike are off at other elements.
#[test]
fn few_elements_may_be_off_where_eager_is_a_quarter_as_far_off() {
    let half = |values: &[f32]| -> Vec<Flat<'static>> {
        let tensor = Tensor::from_slice(values, &[values.len()]).unwrap();
        let half = tensor.to_dtype(DType::BFloat16).unwrap();
        vec![Flat::of(Box::leak(Box::new(half))).unwrap()]
    };
    let off = |count: usize, by: f32| {
        half(&[0, 1, 2, 3, 4, 5].map(|i| if i < count { 100.0 + by } else { 100.0 }))
    };
    let truth = flat(&[100.0; 6]);
    // One tolerance is 1.6: eager is off by a good half, the candidate by two and a half.
    let eager = off(3, 1.0);
    let found = judge(&eager, &off(3, -4.0), &truth);
    assert!(matches!(found, Judgement::Forgiven { elements: 3, .. }), "{found:?}");
    assert_eq!(judge(&eager, &off(4, -4.0), &truth), Judgement::Wrong, "more than few");
    assert_eq!(judge(&off(1, 1.0), &off(2, -4.0), &truth), Judgement::Wrong, "more than eager");
    assert_eq!(judge(&off(0, 0.0), &off(1, -4.0), &truth), Judgement::Wrong, "eager is exact");
    assert_eq!(judge(&eager, &off(1, -8.0), &truth), Judgement::Wrong, "beyond the limit");
}

#[test]
fn one_of_many_elements_may_be_two_tolerances_off() {
    let off = |count: usize, by: f32| {
        let value = |i| if i < count { 1000.0 + by } else { 1000.0 };
        flat(&(0..2 * NEAR_ONE_IN).map(value).collect::<Vec<_>>())
    };
    let truth = off(0, 0.0);
    let found = judge(&truth, &off(2, 2e-3), &truth);
    assert!(matches!(found, Judgement::Forgiven { elements: 2, .. }), "{found:?}");
    assert_eq!(judge(&truth, &off(3, 2e-3), &truth), Judgement::Wrong, "too many");
    assert_eq!(judge(&truth, &off(1, 3e-3), &truth), Judgement::Wrong, "too far");
}

/// A quotient whose divisor cancels may be anything; a whole output of them is no result of the graph.
#[test]
fn few_elements_may_be_undetermined() {
    let values = |count: usize, value: f32| {
        flat(&std::array::from_fn::<f32, 128, _>(|i| if i < count { value } else { 1.0 }))
    };
    let truth = values(2, 1000.0);
    let judge = |count, value, moved: Option<&Moves>| {
        judge_moved(&truth, &values(count, value), &truth, moved)
    };
    let moved = smoothly(&truth, values(2, 1010.0));
    let found = judge(2, 1015.0, Some(&moved));
    assert!(matches!(found, Judgement::Forgiven { elements: 2, .. }), "{found:?}");
    assert_eq!(judge(2, 1015.0, None), Judgement::Unexplained, "to be asked");
    assert_eq!(judge(2, 1050.0, Some(&moved)), Judgement::Wrong, "further than it moves");
    assert_eq!(judge(3, 1015.0, Some(&moved)), Judgement::Wrong, "an element that does not move");
    let moved = smoothly(&truth, values(128, 2000.0));
    assert_eq!(judge(3, 1015.0, Some(&moved)), Judgement::Wrong, "too many of them");
    assert_eq!(judge(2, f32::NAN, Some(&moved)), Judgement::Wrong);
}

/// A value that is compared with the very number it holds is on one side, however little moves it to the other.
#[test]
fn a_jump_explains_nothing() {
    let (truth, other) = (flat(&[0.0; 64]), flat(&[0.3; 64]));
    let one =
        |value| flat(&std::array::from_fn::<f32, 64, _>(|i| if i == 5 { value } else { 0.0 }));
    let moves = |by_less: &[Flat<'_>]| {
        let mut moves = Moves::none(&truth);
        moves.add(&truth, &other, by_less);
        moves
    };
    let judge = |moves| judge_moved(&truth, &one(0.3), &truth, Some(&moves));
    assert_eq!(judge(moves(&other)), Judgement::Wrong);
    let found = judge(moves(&flat(&[0.0003; 64])));
    assert!(matches!(found, Judgement::Forgiven { elements: 1, .. }), "{found:?}");
}

#[test]
fn moved_values_differ_in_their_last_bit() {
    let wide = Tensor::from_slice(&[1.0f64, -3.0, 0.0, 5.0, 7.0, 9.0, 11.0, 13.0], &[8]).unwrap();
    let values = wide.to_vec::<f64>().unwrap();
    let found = |key| moved(&wide, Move::Bit, key).unwrap().to_vec::<f64>().unwrap();
    let is_close = |(one, two): (&f64, &f64)| (one - two).abs() <= two.abs() * 1.2e-7;
    assert!(found(None).iter().zip(&values).all(is_close));
    assert!(found(Some(3)).iter().zip(&values).all(is_close));
    assert_ne!(found(None), values);
    assert_ne!(found(Some(3)), found(None));
}

#[test]
fn accuracy_is_in_units_of_the_tolerance() {
    let found = accuracy(&flat(&[1.0]), &flat(&[1.0 + 11.3e-6]), &flat(&[1.0])).unwrap();
    assert_eq!(found.eager, 0.0);
    assert!((found.candidate - 1.0).abs() < 0.02, "{found:?}");
}

/// JSON has no infinity: a stored run must still be readable.
#[test]
fn an_infinite_distance_is_read_back() {
    let found = accuracy(&flat(&[1.0]), &flat(&[f32::NAN]), &flat(&[1.0])).unwrap();
    assert_eq!(found.candidate, f64::INFINITY);
    let json = serde_json::to_string(&found).unwrap();
    assert_eq!(serde_json::from_str::<Accuracy>(&json).unwrap(), found);
}
