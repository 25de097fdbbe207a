//! The one door to Python syntax: nothing outside this module names the parser crate.
//!
//! Input is hostile. [`parse`] refuses texts that are too large or too deeply nested before the parser
//! sees them, because dropping a tree that is ten thousand levels deep overflows the stack.

pub mod arithmetic;
pub mod calling;
mod depth;
mod own_folder;
mod program;
pub mod sequence;
mod source;

pub use program::drop_program;
pub use ruff_python_ast as ast;
pub use ruff_text_size::{Ranged, TextRange, TextSize};
pub use source::Source;

use crate::Diagnostic;

/// Files larger than this are refused: the largest real graph is 3 MB.
pub const MAX_SOURCE_BYTES: usize = 64 << 20;

/// Parses a Python module, or says where and why it cannot.
pub fn parse(source: &Source) -> Result<ast::ModModule, Diagnostic> {
    let text = source.text();
    if text.len() > MAX_SOURCE_BYTES {
        return Err(Diagnostic::file(
            source.path(),
            format!("file has {} bytes, more than the limit of {MAX_SOURCE_BYTES}", text.len()),
        ));
    }
    if let Some(offset) = depth::first_too_deep(text) {
        return Err(source
            .at_offset(offset, format!("nested more than {} levels deep", depth::MAX_DEPTH))
            .with_hint("split the expression over several statements"));
    }
    match ruff_python_parser::parse_module(text) {
        Ok(parsed) => Ok(parsed.into_syntax()),
        Err(error) => Err(source.at(error.location, format!("syntax error: {}", error.error))),
    }
}

/// Parses a file as its importers see it: without what it does when it is started as a program, and without the lines
/// that make files of its folder importable, which they are.
pub fn parse_imported(source: &Source) -> Result<ast::ModModule, Diagnostic> {
    let mut syntax = parse(source)?;
    drop_program(&mut syntax);
    own_folder::find_own_files(&mut syntax);
    Ok(syntax)
}
