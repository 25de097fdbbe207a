//! How a command ends, and how errors are shown.

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use passnet_bench::event_log::LogError;
use passnet_graph::Diagnostic;
use std::io::{IsTerminal, Write};

/// A command that ran to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Done,
    /// Something under test failed; the results say what.
    SomethingFailed,
    /// Something could not be judged, through no fault of what is under test; the results say what.
    NotJudged,
    /// Ctrl-C came before all was done.
    Interrupted,
}

impl Outcome {
    pub fn failed_if(failed: bool) -> Self {
        if failed { Outcome::SomethingFailed } else { Outcome::Done }
    }
}

/// A command that could not do what was asked.
#[derive(Debug)]
pub enum CommandError {
    /// Bad usage or input (exit code 2).
    Input { message: String, hint: Option<String> },
    /// Bad input with places (exit code 2).
    Located(Vec<Diagnostic>),
    /// This machine or this build lacks what was asked for (exit code 3).
    Lacking { message: String, hint: String },
    /// Reading or writing failed (exit code 2).
    Io(std::io::Error),
    /// Our own mistake (exit code 70).
    Bug(String),
}

impl CommandError {
    pub fn input(message: impl Into<String>) -> Self {
        CommandError::Input { message: message.into(), hint: None }
    }

    pub fn with_hint(self, text: impl Into<String>) -> Self {
        match self {
            CommandError::Input { message, .. } => {
                CommandError::Input { message, hint: Some(text.into()) }
            }
            other => other,
        }
    }

    /// No room left: nobody's fault who is under test.
    pub fn full_disk(message: impl Into<String>) -> Self {
        let hint = "make room and run the same command again: it goes on where it stopped".into();
        CommandError::Lacking { message: message.into(), hint }
    }

    pub fn bug(message: impl Into<String>) -> Self {
        CommandError::Bug(message.into())
    }

    pub fn exit_code(&self) -> u8 {
        match self {
            CommandError::Input { .. } | CommandError::Located(_) | CommandError::Io(_) => 2,
            CommandError::Lacking { .. } => 3,
            CommandError::Bug(_) => 70,
        }
    }

    /// `passnet ... | head` closes our stdout early: that is no error.
    pub fn is_broken_pipe(&self) -> bool {
        matches!(self, CommandError::Io(error) if error.kind() == std::io::ErrorKind::BrokenPipe)
    }

    pub fn print(&self) {
        let text = match self {
            CommandError::Input { message, hint } => {
                let hint = hint.as_ref().map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
                format!("error: {message}{hint}")
            }
            CommandError::Lacking { message, hint } => format!("error: {message}\nhint: {hint}"),
            CommandError::Located(diagnostics) => {
                diagnostics.iter().map(render_diagnostic).collect::<Vec<_>>().join("\n")
            }
            CommandError::Io(error) => format!("error: {error}"),
            CommandError::Bug(message) => format!("bug in passnet: {message}"),
        };
        // If stderr is gone there is nobody left to tell.
        let _ = writeln!(std::io::stderr(), "{text}");
    }
}

impl From<std::io::Error> for CommandError {
    fn from(error: std::io::Error) -> Self {
        CommandError::Io(error)
    }
}

impl From<LogError> for CommandError {
    fn from(error: LogError) -> Self {
        match &error {
            LogError::Broken { .. } => CommandError::input(error.to_string())
                .with_hint("its results are not believed; begin a run in another folder"),
            _ if error.is_full_disk() => CommandError::full_disk(error.to_string()),
            _ => CommandError::input(error.to_string()),
        }
    }
}

impl From<passnet_web::Error> for CommandError {
    fn from(error: passnet_web::Error) -> Self {
        let passnet_web::Error { kind, message, hint } = error;
        match (kind, hint) {
            (passnet_web::ErrorKind::Lacking, hint) => {
                let hint =
                    hint.unwrap_or_else(|| "`passnet doctor` says what this machine has".into());
                CommandError::Lacking { message, hint }
            }
            (_, hint) => CommandError::Input { message, hint },
        }
    }
}

impl From<Diagnostic> for CommandError {
    fn from(error: Diagnostic) -> Self {
        CommandError::Located(vec![error])
    }
}

/// A diagnostic with its source line, the place marked, and the hint.
pub fn render_diagnostic(diagnostic: &Diagnostic) -> String {
    let mut text = match &diagnostic.source_line {
        Some(line) => {
            let snippet = Snippet::source(&*line.text)
                .path(&*diagnostic.file)
                .line_start(diagnostic.line)
                .annotation(AnnotationKind::Primary.span(line.start..line.end));
            let group = Level::ERROR.primary_title(&*diagnostic.message).element(snippet);
            let renderer = if use_color() { Renderer::styled() } else { Renderer::plain() };
            renderer.render(&[group])
        }
        None if diagnostic.line == 0 => {
            format!("error: {}\n --> {}", diagnostic.message, diagnostic.file)
        }
        None => format!(
            "error: {}\n --> {}:{}:{}",
            diagnostic.message, diagnostic.file, diagnostic.line, diagnostic.column
        ),
    };
    if let Some(hint) = &diagnostic.hint {
        text.push_str("\nhint: ");
        text.push_str(hint);
    }
    text
}

/// Colour only where a person looks, and never against `NO_COLOR`.
pub fn use_color() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && std::io::stderr().is_terminal()
}
