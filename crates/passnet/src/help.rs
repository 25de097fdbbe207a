//! Help as wide as the terminal: paragraphs flow, columns hang, commands to be copied stay in one line.

use clap::error::{Error, ErrorKind};
use std::io::{IsTerminal, Write};

/// Wider lines are hard to read.
const WIDEST: usize = 120;
/// Narrower ones are no help.
const NARROWEST: usize = 40;
/// A column of descriptions that begins further right than this leaves too little room.
const MOST_INDENT: usize = 60;

/// Prints what clap has to say. Errors are short and stay as they are.
pub fn print(error: &Error) {
    let is_help = matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    );
    let width = width_of(error.use_stderr()).filter(|_| is_help);
    // Printing fails only when nobody listens any more.
    let _ = match width {
        None => error.print(),
        Some(width) => write(&wrapped(&text_of(error), width), error.use_stderr()),
    };
}

/// With colours where a person looks.
fn text_of(error: &Error) -> String {
    let is_terminal = match error.use_stderr() {
        true => std::io::stderr().is_terminal(),
        false => std::io::stdout().is_terminal(),
    };
    let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let text = error.render();
    if is_terminal && !is_plain { text.ansi().to_string() } else { text.to_string() }
}

fn write(text: &str, is_stderr: bool) -> std::io::Result<()> {
    match is_stderr {
        true => std::io::stderr().write_all(text.as_bytes()),
        false => std::io::stdout().write_all(text.as_bytes()),
    }
}

/// The columns of the terminal that the help goes to. `None` where nobody looks.
fn width_of(is_stderr: bool) -> Option<usize> {
    let (is_terminal, descriptor) = match is_stderr {
        true => (std::io::stderr().is_terminal(), libc::STDERR_FILENO),
        false => (std::io::stdout().is_terminal(), libc::STDOUT_FILENO),
    };
    // As for other tools, the variable wins over the terminal; it also serves where the output goes to a file.
    let named = std::env::var("COLUMNS").ok().and_then(|text| text.parse::<usize>().ok());
    let asked = || {
        // SAFETY: the structure is plain numbers and outlives the call, which writes nothing else.
        let size = unsafe {
            let mut size: libc::winsize = std::mem::zeroed();
            (libc::ioctl(descriptor, libc::TIOCGWINSZ, &raw mut size) == 0).then_some(size)
        };
        size.map(|size| usize::from(size.ws_col))
    };
    let width = named.or_else(|| is_terminal.then(asked).flatten())?;
    Some(width.clamp(NARROWEST, WIDEST))
}

/// The same text in lines of at most so many columns, as far as words allow.
fn wrapped(text: &str, width: usize) -> String {
    let mut out = String::new();
    let mut paragraph = String::new();
    for line in text.lines() {
        if is_running_text(line) {
            if !paragraph.is_empty() {
                paragraph.push(' ');
            }
            paragraph.push_str(line);
            continue;
        }
        if !paragraph.is_empty() {
            wrap(&std::mem::take(&mut paragraph), width, &mut out);
        }
        wrap(line, width, &mut out);
    }
    if !paragraph.is_empty() {
        wrap(&paragraph, width, &mut out);
    }
    out
}

/// Lines that belong together: not indented, no heading, no columns.
fn is_running_text(line: &str) -> bool {
    !line.is_empty()
        && !line.starts_with([' ', '\x1b'])
        && !line.ends_with(':')
        && !line.contains("  ")
}

/// One line, cut between words; what follows hangs below the last column.
fn wrap(line: &str, width: usize, out: &mut String) {
    let is_command = line.trim_start().starts_with("passnet ");
    if columns(line) <= width || is_command {
        out.push_str(line.trim_end());
        out.push('\n');
        return;
    }
    let indent = hanging(line);
    let lead: String = line.chars().take_while(|c| *c == ' ').collect();
    let mut used = columns(&lead);
    out.push_str(&lead);
    let mut is_first = true;
    for word in line[lead.len()..].split_inclusive(' ') {
        let length = columns(word.trim_end());
        if !is_first && length > 0 && used + length > width {
            while out.ends_with(' ') {
                out.pop();
            }
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            used = indent;
        }
        out.push_str(word);
        used += columns(word);
        is_first = false;
    }
    while out.ends_with(' ') {
        out.pop();
    }
    out.push('\n');
}

/// Where the last column of a line begins, or its text where it has no columns.
fn hanging(line: &str) -> usize {
    let lead = line.len() - line.trim_start().len();
    let place = line[lead..].find("  ").map(|at| {
        let gap = &line[lead + at..];
        let text = gap.len() - gap.trim_start().len();
        columns(&line[..lead + at + text])
    });
    place.filter(|place| *place <= MOST_INDENT).unwrap_or(lead)
}

/// Columns that a text takes: escape sequences take none.
fn columns(text: &str) -> usize {
    let mut count = 0;
    let mut is_escape = false;
    for c in text.chars() {
        match (is_escape, c) {
            (false, '\x1b') => is_escape = true,
            (true, 'm') => is_escape = false,
            (false, _) => count += 1,
            (true, _) => {}
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_hang_paragraphs_flow_and_commands_stay() {
        let text = "Options:\n      --out <DIR>  Keep the results in this folder, and go on with what is there\n\n\
                    One sentence that goes on\nin the next line and ends there.\n\n\
                    Examples:\n  passnet bench bench/tasks --passes bench/passes --out runs/one   all of them\n";
        let found = wrapped(text, 44);
        assert_eq!(
            found,
            "Options:\n      --out <DIR>  Keep the results in this\n                   folder, and go on with\n                   \
             what is there\n\nOne sentence that goes on in the next line\nand ends there.\n\n\
             Examples:\n  passnet bench bench/tasks --passes bench/passes --out runs/one   all of them\n"
        );
    }

    #[test]
    fn colours_take_no_room_and_words_are_never_cut() {
        let line = format!("  \x1b[1m{}\x1b[0m end", "x".repeat(50));
        assert_eq!(columns(&line), 56);
        let found = wrapped(&line, 44);
        assert_eq!(found.lines().count(), 2, "{found:?}");
        assert!(found.contains(&"x".repeat(50)));
        assert_eq!(wrapped("", 44), "");
    }
}
