use super::*;
use proptest::prelude::*;

#[test]
fn order_statistics_interpolate_linearly() {
    assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
    assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
    // numpy.percentile([1, 2, 3, 4], [25, 75]) is 1.75 and 3.25.
    assert_eq!(interquartile_range(&[1.0, 2.0, 3.0, 4.0]), Some(1.5));
    assert_eq!(median(&[]), None);
    assert_eq!(median(&[1.0, f64::NAN]), None);
    let summary = TimingSummary::of(&[1.0, 2.0, 3.0, 4.0]).unwrap();
    assert_eq!(summary.std, 1.11803);
    assert_eq!((summary.mean, summary.min, summary.max), (2.5, 1.0, 4.0));
    let one = TimingSummary::of(&[0.25]).unwrap();
    assert_eq!((one.median, one.iqr, one.std), (0.25, 0.0, 0.0));
}

#[test]
fn six_significant_digits() {
    let cases = [
        (123_456.789, 123_457.0),
        (0.000_123_456_789, 0.000_123_457),
        (0.0, 0.0),
        (999_999.9, 1_000_000.0),
        (-2.000_000_4, -2.0),
    ];
    for (value, expected) in cases {
        assert_eq!(round_significant(value, 6), expected);
    }
    assert!(round_significant(f64::NAN, 6).is_nan());
}

/// First outputs of the authors' C code for the state 1, 2, 3, 4.
#[test]
fn the_generator_is_xoshiro256_plus_plus() {
    let mut random = Xoshiro256 { state: [1, 2, 3, 4] };
    let expected = [41_943_041, 58_720_359, 3_588_806_011_781_223, 3_591_011_842_654_386];
    assert_eq!(std::array::from_fn(|_| random.next_u64()), expected);
}

fn noisy(center: f64, seed: u64, n: usize) -> Vec<f64> {
    let mut random = Xoshiro256::seeded(seed);
    (0..n).map(|_| center * (1.0 + random.below(1000) as f64 / 10_000.0)).collect()
}

fn interval(eager: &[f64], candidate: &[f64]) -> RatioInterval {
    Bootstrap::default().ratio_of_medians(eager, candidate).unwrap().interval(CONFIDENCE)
}

/// Where both sides of a round are slow together, their ratio is known better than either time.
#[test]
fn what_disturbs_both_sides_of_a_round_does_not_widen_the_interval() {
    let eager = noisy(2.0, 1, 101);
    let together: Vec<f64> = eager.iter().map(|time| time / 2.0).collect();
    let apart = noisy(1.0, 2, 101);
    let width = |i: RatioInterval| i.high - i.low;
    assert!(width(interval(&eager, &together)) < 1e-12);
    assert!(width(interval(&eager, &apart)) > 0.01);
}

/// Counted over all draws at once, in a type that depends on how many timings there are.
#[test]
fn medians_are_those_of_the_drawn_rounds() {
    for n in [1, 2, 7, 100, 255, 256, 301] {
        let timings = noisy(1.0, 3, n);
        let draws = Bootstrap { resamples: 50, seed: 9 }.draws(n);
        let found = Ranked::new(&timings).unwrap().medians_of(&draws);
        for (draw, found) in found.into_iter().enumerate() {
            let times = |round: usize| usize::from(draws.of_round(round)[draw]);
            let drawn: Vec<f64> =
                (0..n).flat_map(|round| vec![timings[round]; times(round)]).collect();
            assert_eq!(drawn.len(), n);
            let expected = median(&drawn).unwrap();
            assert!((found - expected).abs() < 1e-12, "draw {draw} of {n}: {found} {expected}");
        }
    }
}

#[test]
fn more_confidence_takes_a_wider_interval() {
    let resampled =
        Bootstrap::default().ratio_of_medians(&noisy(2.0, 1, 60), &noisy(1.0, 2, 60)).unwrap();
    let (sure, surer) = (resampled.interval(0.95), resampled.interval(0.99));
    assert!(surer.low < sure.low && sure.high < surer.high, "{sure:?} {surer:?}");
}

#[test]
fn a_real_difference_is_seen_and_a_tie_is_called_a_tie() {
    let eager = noisy(2.0, 1, 100);
    let twice = interval(&eager, &noisy(1.0, 2, 100));
    assert!(twice.low > 1.9 && twice.high < 2.1, "{twice:?}");
    assert_eq!(twice.decide(0.02), Decision::Faster);
    let half = interval(&eager, &noisy(4.0, 3, 100));
    assert_eq!(half.decide(0.02), Decision::Slower);
    let same = interval(&eager, &noisy(2.0, 4, 100));
    assert_eq!(same.decide(0.0), Decision::Tie, "{same:?}");
    let narrow = RatioInterval { low: 1.011, ratio: 1.012, high: 1.013 };
    assert_eq!(narrow.decide(0.0), Decision::Faster);
    assert_eq!(narrow.decide(0.02), Decision::Tie, "below the noise floor");
}

/// Against sums of binomial coefficients as exact fractions.
#[test]
fn the_sign_test_is_exact() {
    for (better, worse, expected) in [
        (0, 0, 1.0),
        (5, 5, 1.0),
        (10, 0, 0.001_953_125),
        (2, 8, 0.109_375),
        (60, 40, 0.056_887_933_640_980_79),
        (1100, 900, 8.457_089_535_5e-6),
    ] {
        let found = sign_test(better, worse);
        assert!((found - expected).abs() < 1e-12, "{better} {worse}: {found}");
        assert_eq!(found, sign_test(worse, better));
    }
}

#[test]
fn groups_are_drawn_whole() {
    let bootstrap = Bootstrap::default();
    let apart: Vec<Vec<f64>> = (0..40).map(|i| vec![f64::from(i % 4)]).collect();
    let together: Vec<Vec<f64>> = (0..4).map(|i| vec![f64::from(i); 10]).collect();
    let apart = bootstrap.mean_of_groups(&apart).unwrap();
    let together = bootstrap.mean_of_groups(&together).unwrap();
    assert_eq!((apart.mean, together.mean), (1.5, 1.5));
    assert!(together.high - together.low > 2.0 * (apart.high - apart.low));
    assert_eq!(bootstrap.mean_of_groups(&[]), None);
    assert_eq!(bootstrap.mean_of_groups(&[vec![]]), None);
}

#[test]
fn bad_timings_have_no_interval() {
    let bootstrap = Bootstrap::default();
    for bad in [&[][..], &[0.0], &[1.0, f64::INFINITY], &[-1.0]] {
        assert_eq!(bootstrap.ratio_of_medians(bad, &[1.0]), None);
        assert_eq!(bootstrap.ratio_of_medians(&[1.0], bad), None);
    }
    assert_eq!(bootstrap.ratio_of_medians(&[1.0, 2.0], &[1.0]), None, "a round has two calls");
    let one = interval(&[3.0], &[2.0]);
    assert_eq!((one.low, one.ratio, one.high), (1.5, 1.5, 1.5));
}

proptest! {
    #[test]
    fn intervals_are_ordered_repeatable_and_scale_free(
        rounds in prop::collection::vec((0.1f64..10.0, 0.1f64..10.0), 1..40),
    ) {
        let (eager, candidate): (Vec<f64>, Vec<f64>) = rounds.into_iter().unzip();
        let bootstrap = Bootstrap { resamples: 200, ..Bootstrap::default() };
        let found = |eager: &[f64], candidate: &[f64]| {
            bootstrap.ratio_of_medians(eager, candidate).unwrap().interval(CONFIDENCE)
        };
        let a = found(&eager, &candidate);
        prop_assert!(a.low <= a.high);
        prop_assert_eq!(a, found(&eager, &candidate));
        let scaled = |v: &[f64]| v.iter().map(|x| x * 4.0).collect::<Vec<_>>();
        prop_assert_eq!(a, found(&scaled(&eager), &scaled(&candidate)));
    }
}
