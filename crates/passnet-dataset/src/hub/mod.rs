//! A dataset as a folder of the Hugging Face hub, which `datasets.load_dataset` opens as it is:
//!
//! ```text
//! README.md                                card; its front matter names the tables of each configuration and split
//! data/graphs/<split>-<number>.parquet     a row for each graph: what it is, and its files as columns of text
//! data/tasks/<split>.parquet               a row for each task: its graphs, by path and uid
//! data/files/all.parquet                   files that came with a checkout, as they came
//! data/training_structures.txt             of a benchmark set: what stands in training tasks, and in no task of the set
//! data/version.txt                         of a benchmark set: which version it is
//! ```
//!
//! [`export`](crate::export::hub) writes it and [`import_hub`] reads it again: nothing is lost on the way.

mod read;

pub use read::{Hub, HubReport, import_hub, is_hub};

use crate::parquet::{Field, Type};
use crate::sample::tasks::SplitSide;
use passnet_graph::FileName;

pub(crate) const GRAPHS: &str = "graphs";
pub(crate) const TASKS: &str = "tasks";
pub(crate) const FILES: &str = "files";
pub(crate) const DATA: &str = "data";
pub(crate) const ENDING: &str = "parquet";
pub(crate) const TRAINING_STRUCTURES: &str = "training_structures.txt";
pub(crate) const VERSION: &str = "version.txt";

/// Columns of text that every graph has, before the numbers and the files.
pub(crate) const GRAPH_TEXTS: [&str; 8] =
    ["path", "kind", "family", "dtype", "uid", "structure", "literals", "full"];

/// The column that holds a file of a graph; dots would read as nesting.
pub(crate) fn column_of(file: FileName) -> String {
    file.as_str().replace('.', "_")
}

pub(crate) fn graph_fields() -> Vec<Field> {
    let mut fields: Vec<Field> =
        GRAPH_TEXTS.iter().map(|name| Field::required(name, Type::Text)).collect();
    fields.push(Field::optional("shape_index", Type::Int32));
    fields.push(Field::required("op_count", Type::Int32));
    fields.extend(FileName::ALL.map(|file| Field::optional(&column_of(file), Type::Text)));
    fields
}

pub(crate) fn task_fields() -> Vec<Field> {
    let texts = ["id", "kind", "side", "rule"];
    let mut fields: Vec<Field> = texts.map(|name| Field::required(name, Type::Text)).into();
    fields.push(Field::optional("path", Type::Text));
    fields.extend(["ops", "graphs", "uids"].map(Field::texts));
    fields
}

pub(crate) fn file_fields() -> Vec<Field> {
    vec![
        Field::required("path", Type::Text),
        Field::required("kind", Type::Text),
        Field::required("body", Type::Bytes),
    ]
}

/// The split that the tasks of a side are in, and the graphs of such tasks; `other` is neither for training nor for
/// evaluation. Names are those that users of the hub expect.
pub(crate) fn split_of(side: Option<SplitSide>) -> &'static str {
    match side {
        Some(SplitSide::Training) => "train",
        Some(SplitSide::Evaluation) => "test",
        Some(SplitSide::Withheld) => "withheld",
        None => "other",
    }
}

/// All splits, in the order in which a card names them.
pub(crate) const SPLITS: [&str; 4] = ["train", "test", "withheld", "other"];
