//! The curve of resnet18, then random curves against the seven steps of the analysis written out one by one.

use super::*;
use passnet_graph::syntax::Source;
use proptest::prelude::*;

/// Start and end of each range.
fn ends(ranges: Vec<Range<usize>>) -> Vec<(usize, usize)> {
    ranges.into_iter().map(|range| (range.start, range.end)).collect()
}

fn ranges(kernels: &[u64]) -> Vec<(usize, usize)> {
    ends(KernelCounts::of_every_prefix(0, kernels.iter().copied()).ranges_in_original())
}

#[test]
fn ops_that_add_no_kernel_belong_to_the_one_before() {
    assert_eq!(ranges(&[1, 1, 1, 2, 3, 3]), [(0, 3), (4, 6)]);
    assert_eq!(ranges(&[1, 2, 3]), []);
    assert_eq!(ranges(&[]), []);
}

#[test]
fn a_kernel_that_a_later_op_makes_unnecessary_does_not_split_a_piece() {
    assert_eq!(ranges(&[1, 2, 2, 1, 2]), [(0, 4)]);
    assert_eq!(ranges(&[5, 3, 5]), [(0, 2)]);
}

#[test]
fn a_missing_prefix_breaks_only_its_own_piece() {
    let curve = [(1, 1), (2, 1), (3, 2), (5, 2), (6, 3), (7, 3)]
        .map(|(ops, kernels)| PrefixCount { ops, kernels });
    assert_eq!(ends(fusible_ranges(&curve, 0)), [(0, 2), (5, 7)]);
}

/// The 69 ops of resnet18 and the kernels by which each one changes the count of the prefix it ends. A convolution
/// or a pooling launches one; batch norm, addition and ReLU are absorbed by it, with two exceptions where blocks
/// change size and the shortcut has a convolution too: the addition merges both branches (one kernel less; not so
/// in the last such block), and the ReLU after it is counted on its own. These changes are not a recording: they
/// were chosen to mean what the published ranges mean.
const RESNET18: &[(&str, i64)] = &[
    ("conv bn relu", 1),
    ("maxpool", 1),
    ("conv bn relu", 1),
    ("conv bn add relu", 1),
    ("conv bn relu", 1),
    ("conv bn add relu", 1),
    ("conv bn relu", 1),
    ("conv bn", 1),
    ("conv bn", 1),
    ("add", -1),
    ("relu", 1),
    ("conv bn relu", 1),
    ("conv bn add relu", 1),
    ("conv bn relu", 1),
    ("conv bn", 1),
    ("conv bn", 1),
    ("add", -1),
    ("relu", 1),
    ("conv bn relu", 1),
    ("conv bn add relu", 1),
    ("conv bn relu", 1),
    ("conv bn", 1),
    ("conv bn add", 1),
    ("relu", 1),
    ("conv bn relu", 1),
    ("conv bn add relu avgpool flatten", 1),
    ("linear", 1),
];

#[test]
fn resnet18_gives_the_published_ranges() {
    let mut kernels = Vec::new();
    let mut count = 0;
    for (ops, change) in RESNET18 {
        count += change;
        kernels.extend(ops.split(' ').map(|_| count.unsigned_abs()));
    }
    assert_eq!(kernels.len(), 69);
    #[rustfmt::skip]
    let published = [
        (0, 3), (4, 7), (7, 11), (11, 14), (14, 18), (18, 21), (21, 26), (27, 30), (30, 34), (34, 37), (37, 42), (43, 46), (46, 50), (50, 53),
        (53, 55), (55, 58), (59, 62), (62, 68),
    ];
    assert_eq!(ranges(&kernels), published);
}

/// The analysis as its seven steps, nothing simplified.
fn seven_steps(prefixes: &[PrefixCount], offset: usize) -> Vec<Range<usize>> {
    let kernels = |ops: usize| prefixes.iter().find(|p| p.ops == ops).unwrap().kernels;
    // 1. Runs of equal counts.
    let runs: Vec<&[PrefixCount]> = prefixes.chunk_by(|a, b| a.kernels == b.kernels).collect();
    // 2. A value that comes back claims everything between; the lowest claim wins.
    let mut claims: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
    for run in &runs {
        let value = run[0].kernels;
        let first = runs.iter().position(|run| run[0].kernels == value).unwrap();
        let last = runs.iter().rposition(|run| run[0].kernels == value).unwrap();
        for prefix in runs[first..=last].concat() {
            claims.entry(prefix.ops).or_default().push(value);
        }
    }
    let claimed: Vec<(usize, u64)> =
        claims.into_iter().map(|(ops, values)| (ops, values.into_iter().min().unwrap())).collect();
    // 3. Proposals: consecutive prefixes with equal value.
    let mut proposals: Vec<Vec<usize>> = claimed
        .chunk_by(|a, b| a.1 == b.1)
        .map(|group| group.iter().map(|(ops, _)| *ops).collect())
        .collect();
    // 4. Merge the first pair that does not rise, again and again.
    while let Some(i) = (1..proposals.len())
        .find(|&i| kernels(*proposals[i - 1].last().unwrap()) >= kernels(proposals[i][0]))
    {
        let right = proposals.remove(i);
        proposals[i - 1].extend(right);
    }
    // 5. Keep what is long enough, contiguous, and does not rise.
    proposals.retain(|ops| {
        let (first, last) = (ops[0], *ops.last().unwrap());
        let rises = |ops: &Vec<usize>| {
            ops.windows(2)
                .rev()
                .map(|pair| (kernels(pair[0]), kernels(pair[1])))
                .find(|(a, b)| a != b)
                .is_some_and(|(a, b)| b > a)
        };
        ops.len() >= 2
            && last - first + 1 == ops.len()
            && kernels(first) >= kernels(last)
            && !rises(ops)
    });
    // 6. Ranges.
    let mut found: Vec<Range<usize>> =
        proposals.iter().map(|ops| ops[0] - 1 + offset..ops.last().unwrap() + offset).collect();
    // 7. Sort, drop what overlaps its predecessor in the sorted list (kept or not).
    found.sort_by_key(|range| (range.start, std::cmp::Reverse(range.end)));
    let sorted = found.clone();
    let mut i = 0;
    found.retain(|range| {
        i += 1;
        i == 1 || range.start >= sorted[i - 2].end
    });
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn equals_the_seven_steps(
        curve in prop::collection::vec((0u64..6, prop::bool::weighted(0.05)), 0..40),
        offset in 0usize..5,
    ) {
        let mut prefixes = Vec::new();
        for (i, (kernels, missing)) in curve.into_iter().enumerate() {
            if !missing {
                prefixes.push(PrefixCount { ops: i + 1, kernels });
            }
        }
        prop_assert_eq!(fusible_ranges(&prefixes, offset), seven_steps(&prefixes, offset));
    }

    #[test]
    fn a_recording_reads_back_as_written(
        offset in 0usize..10_000,
        kernels in prop::collection::vec(any::<u64>(), 0..20),
    ) {
        let text = serde_json::json!({
            "start_offset_in_original_graph": offset,
            "num_subgraph_kernels": kernels,
            "num_subgraph_ops": (1..=kernels.len()).collect::<Vec<_>>(),
        });
        let read = KernelCounts::parse(&Source::new("counts.json", text.to_string())).unwrap();
        prop_assert_eq!(read, KernelCounts::of_every_prefix(offset, kernels));
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[\\[\\]{}:,0-9a-z_\" \n-]{0,80}") {
        _ = KernelCounts::parse(&Source::new("counts.json", text));
    }
}

/// Where and why a recording is refused.
fn refusal(text: &str) -> String {
    KernelCounts::parse(&Source::new("counts.json", text)).unwrap_err().to_string()
}

#[test]
fn entries_may_come_in_any_order_and_with_other_keys() {
    let text = r#"{"note": [], "num_subgraph_ops": [2, 1], "num_subgraph_kernels": [4, 3],
        "start_offset_in_original_graph": 7}"#;
    let counts = KernelCounts::parse(&Source::new("counts.json", text)).unwrap();
    assert_eq!(counts, KernelCounts::of_every_prefix(7, [3, 4]));
}

#[test]
fn refusals_say_where_and_why() {
    assert_eq!(
        refusal("{\n  \"num_subgraph_ops\": [1, -2]\n}"),
        "counts.json:2:28: invalid value: integer `-2`, expected u64"
    );
    assert_eq!(
        refusal(r#"{"num_subgraph_ops": [1], "num_subgraph_kernels": [1]}"#),
        "counts.json:1:54: missing field `start_offset_in_original_graph`"
    );
    let recording = |kernels: &str, ops: &str| {
        format!(
            "{{\"start_offset_in_original_graph\": 0,\n\"num_subgraph_kernels\": {kernels},\n\"num_subgraph_ops\": {ops}}}"
        )
    };
    assert_eq!(
        refusal(&recording("[1, 2]", "[1]")),
        "counts.json:3:24: `num_subgraph_kernels` has 2 entries and `num_subgraph_ops` has 1"
    );
    assert_eq!(
        refusal(&recording("[1, 2]", "[3, 3]")),
        "counts.json:3:27: `num_subgraph_ops` holds 3 twice"
    );
    assert_eq!(
        refusal(&recording("[1]", "[0]")),
        "counts.json:3:24: `num_subgraph_ops` holds 0; a prefix has at least one op"
    );
    assert!(refusal("{\"num_subgraph_ops\": [1").starts_with("counts.json:1:"));
    assert!(refusal("").starts_with("counts.json:1:1: EOF"));
    assert!(refusal("[1]").contains("expected an object with"));
}
