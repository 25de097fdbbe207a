//! The card of a dataset: what people read, and in its front matter what `datasets` reads.

use super::hub::Counts;
use crate::hub::{DATA, ENDING, FILES, GRAPHS, SPLITS, TASKS};
use std::fmt::Write;

const ABOUT: &str = "\
Computational graphs of PyTorch models, cut into subgraphs and grouped into tasks for people and programs that write \
compiler passes. No weights, no images, no text: a graph is code, sizes, dtypes, and mean and spread of each argument.
";

const USE: &str = "\
## Use

```python
from datasets import load_dataset

graphs = load_dataset(\"PATH\", \"graphs\")    # splits are below; PATH is this folder, or its name on the hub
tasks = load_dataset(\"PATH\", \"tasks\")
graph = graphs[\"SPLIT\"][0]
exec(graph[\"model_py\"])                     # defines GraphModule
```

`passnet dataset import PATH --store dataset.pnds` brings all of it back into a store, equal by content.
";

const COLUMNS: &str = "\
## Columns

| configuration | column | meaning |
|---|---|---|
| `graphs` | `path` | the graph's name; unique |
| | `kind` | `fusible` (a compiler runs it as one kernel), `typical` (recurs in models), `sole_op`, `full` (a whole model) |
| | `family`, `dtype`, `shape_index` | where its model comes from; its variant: 9 is the size as extracted, 0 to 8 are others |
| | `uid`, `full` | its identity: code, sizes and dtypes |
| | `literals`, `structure` | its identity without sizes and dtypes, and without numbers |
| | `op_count` | operations |
| | `model_py`, `weight_meta_py`, … | its files |
| `tasks` | `id`, `kind`, `side`, `rule` | its name, and how it was made |
| | `ops` | the sequence of operations that its graphs share |
| | `graphs`, `uids` | its graphs, by `path` and `uid` of `graphs` |

`test` is for evaluation: no structure of its tasks stands in a task of `train`. `withheld` shares structures with it and is \
for neither side; `other` is in no task that was split.
";

/// The text of the card.
pub(super) fn card(counts: &Counts, content: &str) -> String {
    let mut text = front_matter(counts);
    let _ = write!(text, "\n# PassNet graphs\n\n{ABOUT}\n{}\n", table(counts));
    let split = SPLITS.into_iter().find(|split| counts.contains_key(&(GRAPHS, *split)));
    text.push_str(&USE.replace("SPLIT", split.unwrap_or("train")));
    let _ =
        write!(text, "\n{COLUMNS}\nKey of the content that this was exported from: `{content}`.\n");
    text
}

fn front_matter(counts: &Counts) -> String {
    let rows: u64 = counts.iter().filter(|((of, _), _)| *of == GRAPHS).map(|(_, rows)| rows).sum();
    let mut text = String::from("---\npretty_name: PassNet graphs\n");
    let _ = writeln!(text, "size_categories:\n- {}", size_category(rows));
    text.push_str("tags:\n- pytorch\n- compilers\n- computational-graphs\n- triton\nconfigs:\n");
    for config in [GRAPHS, TASKS, FILES] {
        let splits: Vec<&str> = splits(counts, config).map(|(split, _)| split).collect();
        if splits.is_empty() {
            continue;
        }
        let _ = writeln!(text, "- config_name: {config}");
        if config == GRAPHS {
            text.push_str("  default: true\n");
        }
        text.push_str("  data_files:\n");
        for split in splits {
            let files = if config == GRAPHS { "-*" } else { "" };
            let path = format!("{DATA}/{config}/{split}{files}.{ENDING}");
            let _ = writeln!(text, "  - split: {split}\n    path: {path}");
        }
    }
    text.push_str("---\n");
    text
}

/// The splits of a configuration in the order of the card, with their rows.
fn splits<'a>(
    counts: &'a Counts,
    config: &'a str,
) -> impl Iterator<Item = (&'static str, u64)> + 'a {
    let rows = move |split| counts.iter().find(|((of, at), _)| *of == config && *at == split);
    let names = SPLITS.into_iter().chain(["all"]);
    names.filter_map(move |split| rows(split).map(|(_, rows)| (split, *rows)))
}

fn table(counts: &Counts) -> String {
    let mut text = String::from("| configuration | split | rows |\n|---|---|---|\n");
    for config in [GRAPHS, TASKS, FILES] {
        for (split, rows) in splits(counts, config) {
            let _ = writeln!(text, "| `{config}` | `{split}` | {rows} |");
        }
    }
    text
}

/// The hub's words for a size.
fn size_category(rows: u64) -> &'static str {
    match rows {
        0..1_000 => "n<1K",
        1_000..10_000 => "1K<n<10K",
        10_000..100_000 => "10K<n<100K",
        100_000..1_000_000 => "100K<n<1M",
        _ => "1M<n<10M",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_front_matter_names_what_is_there() {
        let counts = Counts::from([
            ((GRAPHS, "test"), 3),
            ((GRAPHS, "train"), 1_200),
            ((TASKS, "train"), 7),
        ]);
        let card = card(&counts, "abc");
        let begins = "---\npretty_name: PassNet graphs\nsize_categories:\n- 1K<n<10K\ntags:\n";
        assert!(card.starts_with(begins), "{card}");
        let configs = "configs:\n- config_name: graphs\n  default: true\n  data_files:\n\
            \x20 - split: train\n    path: data/graphs/train-*.parquet\n\
            \x20 - split: test\n    path: data/graphs/test-*.parquet\n\
            - config_name: tasks\n  data_files:\n  - split: train\n    path: data/tasks/train.parquet\n---\n";
        assert!(card.contains(configs), "{card}");
        assert!(card.contains("| `graphs` | `test` | 3 |") && card.contains("graphs[\"train\"]"));
    }
}
