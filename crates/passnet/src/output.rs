//! Where results go: tables for people or JSON lines for machines, decided once.

use crate::error::{CommandError, render_diagnostic};
use comfy_table::{ContentArrangement, Table, presets};
use passnet_graph::Diagnostic;
use serde_json::Value;
use std::io::{BufWriter, Stdout, Write};

/// The one writer of stdout.
#[derive(Debug)]
pub struct Output {
    json: bool,
    stdout: BufWriter<Stdout>,
}

impl Output {
    pub fn new(json: bool) -> Self {
        Output { json, stdout: BufWriter::with_capacity(1 << 16, std::io::stdout()) }
    }

    pub fn is_json(&self) -> bool {
        self.json
    }

    /// One JSON object on a line of its own.
    pub fn json(&mut self, value: &Value) -> Result<(), CommandError> {
        serde_json::to_writer(&mut self.stdout, value).map_err(std::io::Error::from)?;
        Ok(writeln!(self.stdout)?)
    }

    pub fn line(&mut self, text: impl AsRef<str>) -> Result<(), CommandError> {
        Ok(writeln!(self.stdout, "{}", text.as_ref())?)
    }

    pub fn table(&mut self, table: &Table) -> Result<(), CommandError> {
        for line in table.lines() {
            writeln!(self.stdout, "{}", line.trim_end())?;
        }
        Ok(())
    }

    pub fn flush(&mut self) -> Result<(), CommandError> {
        Ok(self.stdout.flush()?)
    }
}

/// A table without frame: readable without colour, easy to cut with other tools.
pub fn table<T: Into<comfy_table::Row>>(header: T) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_content_arrangement(ContentArrangement::Disabled).set_header(header);
    table
}

/// A message for the person who watches, beside the results.
pub fn warn(text: &str) {
    // If stderr is gone there is nobody left to tell.
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Says on stderr what is wrong, each with its place.
pub fn warn_located(errors: &[Diagnostic]) {
    errors.iter().for_each(|error| warn(&render_diagnostic(error)));
}
