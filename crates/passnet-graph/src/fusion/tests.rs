//! Counts against what TorchInductor itself schedules, and the published ranges of resnet18.
//!
//! `tests/fusion/schedule.txt` was made by `python -m passnet.fusion.kernel_counts --by schedule` (PyTorch 2.11) over the
//! folders beside it; `?` stands for a prefix it could not schedule without a GPU.

use super::*;
use crate::files::{FileName, GraphFiles};
use crate::infer::infer_folder;
use crate::read::{GraphFolder, read_folder};
use std::path::{Path, PathBuf};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fusion")
}

fn fixture(name: &str) -> GraphFolder {
    let folder = fixtures().join(name);
    let files = [FileName::Model, FileName::WeightMeta]
        .into_iter()
        .fold(GraphFiles::new(name), |files, file| {
            files.with(file, std::fs::read(folder.join(file.as_str())).unwrap())
        });
    read_folder(&files).unwrap()
}

fn counts(name: &str, settings: Settings) -> Vec<u32> {
    let folder = fixture(name);
    let types = infer_folder(&folder);
    assert!(types.failures.is_empty(), "{name}: {:?}", types.failures);
    kernel_counts_with(&folder.graph, &types, settings)
}

fn recorded() -> Vec<(String, Vec<Option<u32>>)> {
    let text = std::fs::read_to_string(fixtures().join("schedule.txt")).unwrap();
    text.lines()
        .map(|line| {
            let (name, counts) = line.split_once(':').unwrap();
            (name.to_string(), counts.split_whitespace().map(|word| word.parse().ok()).collect())
        })
        .collect()
}

/// Prefixes on which the model is known to differ. `views`: the schedule copies a view of a permuted value that
/// is not stored yet.
const DIFFERENT: &[(&str, &[usize])] = &[("views", &[6, 7, 8])];

#[test]
fn counts_are_those_of_the_schedule() {
    let mut report = String::new();
    for (name, truth) in recorded() {
        let known =
            DIFFERENT.iter().find(|(other, _)| *other == name).map_or(&[][..], |known| known.1);
        let model = counts(&name, Settings::default());
        assert_eq!(model.len(), truth.len(), "{name}");
        for (index, (model, truth)) in model.iter().zip(&truth).enumerate() {
            let ops = index + 1;
            if truth.is_some_and(|truth| (truth == *model) == known.contains(&ops)) {
                report += &format!("{name}: {ops} ops, model {model}, schedule {truth:?}\n");
            }
        }
    }
    assert!(report.is_empty(), "\n{report}");
}

/// The schedule of some prefixes of resnet18 with `loop_ordering_after_fusion = False`.
const WITHOUT_REORDERING: &[(usize, u32)] = &[
    (7, 9),
    (8, 12),
    (9, 12),
    (10, 11),
    (11, 11),
    (20, 21),
    (21, 21),
    (22, 24),
    (23, 24),
    (24, 25),
    (25, 25),
    (26, 24),
    (27, 25),
];

#[test]
fn without_loop_reordering_second_layouts_cost_a_kernel() {
    let counts = counts("resnet18", Settings { reorder_loops: false });
    let some: Vec<_> = WITHOUT_REORDERING.iter().map(|(ops, _)| (*ops, counts[ops - 1])).collect();
    assert_eq!(some, WITHOUT_REORDERING);
}

/// One line a group: what runs it and the operations it computes, by name.
fn shown(name: &str) -> Vec<String> {
    let folder = fixture(name);
    let name = |op: &usize| &*folder.graph.node(folder.graph.op_node(*op)).name;
    let groups = groups(&folder.graph, &infer_folder(&folder));
    let show = |group: &KernelGroup| {
        let names: Vec<&str> = group.ops.iter().map(name).collect();
        format!("{:?} {}", group.kind, names.join(" "))
    };
    groups.iter().map(show).collect()
}

#[test]
fn groups_name_their_operations() {
    assert_eq!(
        shown("conv_block"),
        ["Library a", "Pointwise n r", "Library c", "Pointwise c d s o", "Pointwise p"]
    );
    assert_eq!(shown("rotary"), ["Pointwise a r m o"]);
    assert_eq!(
        shown("layer_norm_mlp"),
        ["Reduction a n", "Library h", "Pointwise k", "Library o", "Pointwise r"]
    );
}

#[test]
fn groups_know_their_traffic() {
    let folder = fixture("layer_norm_mlp");
    let groups = groups(&folder.graph, &infer_folder(&folder));
    let traffic: Vec<_> =
        groups.iter().map(|group| (group.bytes_read, group.bytes_written)).collect();
    let (x, wide, vector, matrix) = (8 * 64 * 256 * 4, 8 * 64 * 1024 * 4, 256 * 4, 1024 * 256 * 4);
    assert_eq!(
        traffic,
        [
            (2 * x + 2 * vector, x),
            (x + matrix + 4 * vector, wide),
            (wide, wide),
            (wide + matrix + vector, x),
            // The sum is cheap enough to be computed again from `x` and `residual`.
            (3 * x, x),
        ]
    );
}

#[test]
fn a_graph_of_unknown_operations_is_counted_all_the_same() {
    let files = GraphFiles::new("unknown").with(
        FileName::Model,
        "import torch\n\nclass GraphModule(torch.nn.Module):\n    def forward(self, x):\n        a = torch.mystery(x)\n        b = a + 1\n        return (b,)\n",
    );
    let folder = read_folder(&files).unwrap();
    assert_eq!(kernel_counts(&folder.graph, &infer_folder(&folder)).len(), 2);
}
