//! Lines for verl as the table that its recipes name: columns as its own preprocessing writes them.

use crate::error::CommandError;
use passnet_dataset::parquet::{Field, RowGroup, Table, Type};
use serde_json::Value;
use std::io;
use std::path::Path;

/// Rows that are written together.
const GROUP_ROWS: usize = 4_096;

fn fields() -> Vec<Field> {
    let text = |name: &str| Field::required(name, Type::Text);
    let number = |name: &str| Field::required(name, Type::Int64);
    vec![
        text("data_source"),
        Field::groups("prompt", vec![text("role"), text("content")]),
        text("ability"),
        Field::group("reward_model", vec![text("style"), text("ground_truth")]),
        Field::group(
            "extra_info",
            vec![number("index"), text("task"), text("split"), number("tokens")],
        ),
    ]
}

/// Writes the lines of `--to verl`, whole or not at all.
pub(super) fn write(path: &Path, lines: &[Value]) -> Result<(), CommandError> {
    let written = Table::create(path, fields()).and_then(|mut table| {
        for rows in lines.chunks(GROUP_ROWS) {
            table.group(|group| write_rows(group, rows))?;
        }
        table.close()
    });
    written.map_err(|error| CommandError::input(format!("{}: {error}", path.display())))
}

fn write_rows(group: &mut RowGroup<'_>, rows: &[Value]) -> io::Result<()> {
    let text = |group: &mut RowGroup<'_>, place: &str| {
        group.texts(rows.iter().map(|row| row.pointer(place).and_then(Value::as_str).unwrap_or("")))
    };
    let number = |group: &mut RowGroup<'_>, place: &str| {
        group
            .numbers(rows.iter().map(|row| row.pointer(place).and_then(Value::as_i64).unwrap_or(0)))
    };
    let messages = |group: &mut RowGroup<'_>, field: &str| {
        group.lists(rows.iter().map(|row| {
            let messages = row["prompt"].as_array().map(Vec::as_slice).unwrap_or_default();
            messages.iter().map(|message| message[field].as_str().unwrap_or(""))
        }))
    };
    text(group, "/data_source")?;
    messages(group, "role")?;
    messages(group, "content")?;
    text(group, "/ability")?;
    text(group, "/reward_model/style")?;
    text(group, "/reward_model/ground_truth")?;
    number(group, "/extra_info/index")?;
    text(group, "/extra_info/task")?;
    text(group, "/extra_info/split")?;
    number(group, "/extra_info/tokens")
}
