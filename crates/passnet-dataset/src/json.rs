//! JSON files that others wrote: read with errors that say where.

use passnet_graph::Diagnostic;
use passnet_graph::syntax::Source;
use serde::de::DeserializeOwned;

/// Reads one JSON value that fills the whole text.
pub(crate) fn parse<T: DeserializeOwned>(source: &Source) -> Result<T, Diagnostic> {
    serde_json::from_str(source.text()).map_err(|error| {
        let full = error.to_string();
        let place = format!(" at line {} column {}", error.line(), error.column());
        let message = full.strip_suffix(&place).unwrap_or(&full);
        source.at_offset(offset_of(source.text(), error.line(), error.column()), message)
    })
}

/// The byte offset of a line and column as `serde_json` counts them: both from 1, columns in bytes.
fn offset_of(text: &str, line: usize, column: usize) -> usize {
    let line_start: usize =
        text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let mut offset = (line_start + column.saturating_sub(1)).min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_points_at_its_place_even_after_wide_characters() {
        let source = Source::new("x.json", "[1,\n \"ü\", 7 7]");
        let error = parse::<Vec<serde_json::Value>>(&source).unwrap_err();
        assert_eq!(error.to_string(), "x.json:2:9: expected `,` or `]`");
    }
}
