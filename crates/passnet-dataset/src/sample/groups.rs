//! Groups: which graphs make one task.
//!
//! Two policies, applied one after the other; every graph belongs to at most one group and some to none.
//!
//! *First policy.* The **head** of a bucket is its smallest uid. Rule 1: within a bucket, ordered by uid, every
//! 16th member but the head is a task of its own, so that crowded buckets get a few single-graph tasks. Rule 2: the
//! heads of all buckets with one op sequence are one task, which spans all orders of magnitude.
//!
//! *Second policy*, over graphs that the first left. Rule 4: for one op sequence, up to three members of each
//! bucket, of different element types, are one task. Rule 3: of what still remains, ordered by uid, the first three
//! of every fifteen are one task.

use super::buckets::{BucketKey, Member, PieceKind};
use super::identity::{SampleId, Uid};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Rule 1 takes one member in so many.
const STRIDE: usize = 16;
/// Element types that one bucket contributes to a task: float32, float16, bfloat16.
const DTYPES: usize = 3;
/// Rule 3 takes the first [`DTYPES`] of so many.
const WINDOW: usize = 5 * DTYPES;

/// The rule that made a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// First policy, rule 1.
    EverySixteenth,
    /// First policy, rule 2.
    BucketHeads,
    /// Second policy, rule 4.
    DtypeCoverage,
    /// Second policy, rule 3.
    SparseRemainder,
    /// Grouped by whoever published the task.
    Published,
}

impl Rule {
    /// What files call it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::EverySixteenth => "every_sixteenth",
            Self::BucketHeads => "bucket_heads",
            Self::DtypeCoverage => "dtype_coverage",
            Self::SparseRemainder => "sparse_remainder",
            Self::Published => "published",
        }
    }
}

/// One task: graphs of one kind with one op sequence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PieceGroup {
    pub rule: Rule,
    pub kind: PieceKind,
    pub ops: Vec<String>,
    /// Ascending.
    pub members: Vec<Uid>,
}

impl PieceGroup {
    pub fn id(&self) -> SampleId {
        SampleId::of(&self.members)
    }
}

/// The members of one bucket, ascending by uid.
type Bucket<'m> = Vec<&'m Member>;
/// The buckets of one kind and op sequence, by key.
type Family<'m> = Vec<Bucket<'m>>;

/// Groups members by the first policy and then by the second. Members with an uid already seen are passed over.
/// The groups come by kind, op sequence and rule.
pub fn group_members(members: &[Member]) -> Vec<PieceGroup> {
    families(members).iter().flat_map(group_family).collect()
}

fn families(members: &[Member]) -> Vec<Family<'_>> {
    let mut distinct: Vec<&Member> = members.iter().collect();
    distinct.sort_by_key(|member| member.uid);
    distinct.dedup_by_key(|member| member.uid);

    let mut buckets: BTreeMap<BucketKey<'_>, Bucket<'_>> = BTreeMap::new();
    for member in distinct {
        buckets.entry(member.bucket()).or_default().push(member);
    }
    let mut families: BTreeMap<(PieceKind, &[String]), Family<'_>> = BTreeMap::new();
    for (key, bucket) in buckets {
        families.entry((key.kind, key.ops)).or_default().push(bucket);
    }
    families.into_values().collect()
}

fn group_family(family: &Family<'_>) -> Vec<PieceGroup> {
    let Some(&any) = family.iter().flatten().next() else { return Vec::new() };
    let mut groups = Vec::new();
    let mut used = BTreeSet::new();
    let mut add = |rule: Rule, mut members: Vec<Uid>, used: &mut BTreeSet<Uid>| {
        members.sort_unstable();
        used.extend(&members);
        if !members.is_empty() {
            groups.push(PieceGroup { rule, kind: any.kind, ops: any.ops.clone(), members });
        }
    };

    for member in family.iter().flat_map(|bucket| bucket.iter().step_by(STRIDE).skip(1)) {
        add(Rule::EverySixteenth, vec![member.uid], &mut used);
    }
    let heads = family.iter().filter_map(|bucket| bucket.first()).map(|head| head.uid);
    add(Rule::BucketHeads, heads.collect(), &mut used);

    let covering = family.iter().flat_map(|bucket| one_for_each_dtype(bucket, &used));
    let covering: Vec<Uid> = covering.map(|member| member.uid).collect();
    add(Rule::DtypeCoverage, covering, &mut used);

    let mut remainder: Vec<Uid> = family.iter().flatten().map(|member| member.uid).collect();
    remainder.retain(|uid| !used.contains(uid));
    remainder.sort_unstable();
    let sparse = remainder.chunks(WINDOW).flat_map(|window| window.iter().take(DTYPES));
    add(Rule::SparseRemainder, sparse.copied().collect(), &mut used);
    groups
}

/// The first unused member of each list of element types, for up to [`DTYPES`] lists in order of their names.
fn one_for_each_dtype<'m>(bucket: &Bucket<'m>, used: &BTreeSet<Uid>) -> Vec<&'m Member> {
    let mut unused: Bucket<'m> =
        bucket.iter().copied().filter(|member| !used.contains(&member.uid)).collect();
    unused.sort_by(|a, b| a.by_dtypes(b));
    unused.dedup_by(|later, first| later.dtypes == first.dtypes);
    unused.truncate(DTYPES);
    unused
}

#[cfg(test)]
mod tests {
    use super::*;
    use passnet_graph::DType;
    use proptest::prelude::*;

    fn uid(number: u8) -> Uid {
        let mut digest = [0; 32];
        digest[15] = number;
        Uid::from_digest(&digest)
    }

    fn member(number: u8, op: &str, dim: i64, dtype: DType) -> Member {
        Member {
            uid: uid(number),
            kind: PieceKind::Fusible,
            ops: vec![op.to_string()],
            shapes: vec![vec![dim]],
            dtypes: vec![dtype],
        }
    }

    /// Rule, op and members of each group, in a form that can be read.
    fn shown(groups: &[PieceGroup]) -> Vec<(Rule, &str, Vec<u8>)> {
        let number = |uid: &Uid| {
            let text = uid.to_string();
            u8::from_str_radix(&text[30..], 16).unwrap()
        };
        let show = |group: &PieceGroup| group.members.iter().map(number).collect();
        groups.iter().map(|group| (group.rule, group.ops[0].as_str(), show(group))).collect()
    }

    #[test]
    fn heads_of_one_op_sequence_make_one_task_across_magnitudes() {
        let f32 = DType::Float32;
        let members = [
            member(4, "relu", 1, f32),
            member(1, "relu", 16, f32),
            member(2, "relu", 256, f32),
            member(3, "gelu", 1, f32),
        ];
        assert_eq!(
            shown(&group_members(&members)),
            [(Rule::BucketHeads, "gelu", vec![3]), (Rule::BucketHeads, "relu", vec![1, 2, 4])]
        );
    }

    #[test]
    fn a_crowded_bucket_gives_single_graph_tasks_and_a_sparse_remainder() {
        let members: Vec<_> = (0..40).map(|i| member(i, "relu", 8, DType::Float32)).collect();
        assert_eq!(
            shown(&group_members(&members)),
            [
                (Rule::EverySixteenth, "relu", vec![16]),
                (Rule::EverySixteenth, "relu", vec![32]),
                (Rule::BucketHeads, "relu", vec![0]),
                (Rule::DtypeCoverage, "relu", vec![1]),
                // Of 2..=39 without 16 and 32: positions 0 to 2, 15 to 17, 30 to 32.
                (Rule::SparseRemainder, "relu", vec![2, 3, 4, 18, 19, 20, 34, 35, 36]),
            ]
        );
    }

    #[test]
    fn each_bucket_brings_one_member_of_each_dtype() {
        use DType::{BFloat16, Float16, Float32, Float64};
        let mut members = Vec::new();
        for (i, dtype) in
            [Float32, Float64, Float32, Float16, BFloat16, Float16].into_iter().enumerate()
        {
            members.push(member(i as u8, "relu", 8, dtype));
            members.push(member(i as u8 + 10, "relu", 100, dtype));
        }
        let groups = group_members(&members);
        // 0 and 10 are heads; of the rest bfloat16, float16 and float32 come before float64.
        assert_eq!(shown(&groups)[0], (Rule::BucketHeads, "relu", vec![0, 10]));
        assert_eq!(shown(&groups)[1], (Rule::DtypeCoverage, "relu", vec![2, 3, 4, 12, 13, 14]));
    }

    fn any_members() -> impl Strategy<Value = Vec<Member>> {
        let dtypes = prop::sample::select(vec![DType::Float32, DType::Float16, DType::BFloat16]);
        let kinds = prop::sample::select(vec![PieceKind::Fusible, PieceKind::Typical]);
        let one = (any::<u8>(), kinds, prop::sample::select(vec!["a", "b"]), 0i64..600, dtypes);
        let build =
            |(number, kind, op, dim, dtype)| Member { kind, ..member(number, op, dim, dtype) };
        prop::collection::vec(one.prop_map(build), 0..120)
    }

    proptest! {
        #[test]
        fn groups_are_disjoint_uniform_and_independent_of_order(members in any_members()) {
            let mut distinct = members.clone();
            distinct.sort_by_key(|member| member.uid);
            distinct.dedup_by_key(|member| member.uid);
            let groups = group_members(&distinct);

            let mut seen = BTreeSet::new();
            for group in &groups {
                prop_assert!(!group.members.is_empty());
                for uid in &group.members {
                    prop_assert!(seen.insert(*uid), "{uid} is in two groups");
                    let member = distinct.iter().find(|member| member.uid == *uid).unwrap();
                    prop_assert_eq!((member.kind, &member.ops), (group.kind, &group.ops));
                }
            }
            distinct.reverse();
            prop_assert_eq!(group_members(&distinct), groups);
        }
    }
}
