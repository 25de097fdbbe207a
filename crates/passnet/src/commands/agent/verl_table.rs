//! Lines for verl as the table that its recipes name: columns as its own preprocessing writes them.

use crate::error::CommandError;
use passnet_dataset::export::table::{
    Int64Type, ParquetError, RowGroup, Table, lists, required, strings,
};
use serde_json::Value;
use std::path::Path;

/// Rows that are written together.
const GROUP_ROWS: usize = 4_096;

const SCHEMA: &str = "message verl {
  REQUIRED BYTE_ARRAY data_source (UTF8);
  REQUIRED GROUP prompt (LIST) { REPEATED GROUP list { REQUIRED GROUP element {
    REQUIRED BYTE_ARRAY role (UTF8);
    REQUIRED BYTE_ARRAY content (UTF8);
  } } }
  REQUIRED BYTE_ARRAY ability (UTF8);
  REQUIRED GROUP reward_model {
    REQUIRED BYTE_ARRAY style (UTF8);
    REQUIRED BYTE_ARRAY ground_truth (UTF8);
  }
  REQUIRED GROUP extra_info {
    REQUIRED INT64 index;
    REQUIRED BYTE_ARRAY task (UTF8);
    REQUIRED BYTE_ARRAY split (UTF8);
    REQUIRED INT64 tokens;
  }
}";

/// Writes the lines of `--to verl`, whole or not at all.
pub(super) fn write(path: &Path, lines: &[Value]) -> Result<(), CommandError> {
    let mut table = Table::create(path.to_owned(), SCHEMA)?;
    for rows in lines.chunks(GROUP_ROWS) {
        table.group(|group| write_rows(group, rows))?;
    }
    Ok(table.close()?)
}

fn write_rows(group: &mut RowGroup<'_>, rows: &[Value]) -> Result<(), ParquetError> {
    let text = |group: &mut RowGroup<'_>, place: &str| {
        strings(
            group,
            rows.iter().map(|row| row.pointer(place).and_then(Value::as_str).unwrap_or("")),
        )
    };
    let number = |group: &mut RowGroup<'_>, place: &str| {
        let values = rows.iter().map(|row| row.pointer(place).and_then(Value::as_i64).unwrap_or(0));
        required::<Int64Type>(group, values)
    };
    let messages = |group: &mut RowGroup<'_>, field: &str| {
        let prompts = rows.iter().map(|row| row["prompt"].as_array().map(Vec::as_slice));
        let texts = prompts.map(move |prompt| {
            let messages = prompt.unwrap_or_default().iter();
            messages.map(move |message| message[field].as_str().unwrap_or(""))
        });
        lists(group, texts)
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
