//! `passnet completions`: small scripts for shells; what can come next is worked out here, from the commands themselves.

use crate::error::{CommandError, Outcome};
use crate::output::Output;
use clap::{Arg, Args, Command, ValueEnum};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  source <(passnet completions bash)                            in ~/.bashrc
  source <(passnet completions zsh)                             in ~/.zshrc, after compinit
  passnet completions fish > ~/.config/fish/completions/passnet.fish")]
pub struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

#[derive(Debug, Args)]
pub struct CompleteArgs {
    /// What stands in the line, the program's name left out; the last word is the one to be completed
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

const BASH: &str = r#"_passnet() {
    local IFS=$'\n'
    COMPREPLY=($(passnet complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f1))
}
complete -o bashdefault -o default -F _passnet passnet
"#;

const ZSH: &str = r#"#compdef passnet
_passnet() {
    local -a found
    local line
    for line in "${(@f)$(passnet complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
        [[ -n $line ]] && found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
    done
    if (( $#found )); then _describe passnet found; else _files; fi
}
compdef _passnet passnet
"#;

const FISH: &str = r#"function __passnet_complete
    set -l words (commandline -opc) (commandline -ct)
    passnet complete -- $words[2..-1] 2>/dev/null
end
complete -c passnet -a '(__passnet_complete)'
"#;

pub fn run(args: &CompletionsArgs, out: &mut Output) -> Result<Outcome, CommandError> {
    let script = match args.shell {
        Shell::Bash => BASH,
        Shell::Zsh => ZSH,
        Shell::Fish => FISH,
    };
    out.line(script.trim_end())?;
    out.flush()?;
    Ok(Outcome::Done)
}

/// One candidate a line, with what it means behind a tab.
pub fn complete(
    args: &CompleteArgs,
    root: &Command,
    out: &mut Output,
) -> Result<Outcome, CommandError> {
    for (name, about) in candidates(root, &args.words) {
        out.line(format!("{name}\t{about}"))?;
    }
    out.flush()?;
    Ok(Outcome::Done)
}

/// What the last word can become. Nothing means that it is a path, or free text.
fn candidates(root: &Command, words: &[String]) -> Vec<(String, String)> {
    // Global options and `--help` are added to every command by building it.
    let mut root = root.clone();
    root.build();
    let Some((last, before)) = words.split_last() else { return Vec::new() };
    let mut command = &root;
    let mut waiting: Option<&Arg> = None;
    for word in before {
        if waiting.take().is_some() {
            continue;
        }
        if word.starts_with('-') {
            waiting = option(command, word).filter(|arg| takes_value(arg) && !word.contains('='));
        } else if let Some(below) = command.find_subcommand(word) {
            command = below;
        }
    }
    let values = |arg: &Arg| -> Vec<(String, String)> {
        let possible = arg.get_possible_values();
        let about = |value: &clap::builder::PossibleValue| {
            value.get_help().map(ToString::to_string).unwrap_or_default()
        };
        possible.iter().map(|value| (value.get_name().to_string(), about(value))).collect()
    };
    let found: Vec<(String, String)> = match waiting {
        Some(arg) => values(arg),
        None if last.starts_with('-') => options(command),
        None if command.has_subcommands() => {
            let shown = command.get_subcommands().filter(|below| !below.is_hide_set());
            shown
                .map(|below| (below.get_name().to_string(), first_line(below.get_about())))
                .collect()
        }
        None => command.get_positionals().flat_map(values).collect(),
    };
    found.into_iter().filter(|(name, _)| name.starts_with(last.as_str())).collect()
}

fn options(command: &Command) -> Vec<(String, String)> {
    let shown = command.get_arguments().filter(|arg| !arg.is_hide_set());
    shown
        .filter_map(|arg| Some((format!("--{}", arg.get_long()?), first_line(arg.get_help()))))
        .collect()
}

fn option<'a>(command: &'a Command, word: &str) -> Option<&'a Arg> {
    let name = word.split('=').next().unwrap_or(word);
    command.get_arguments().find(|arg| {
        let is_long = arg.get_long().is_some_and(|long| name == format!("--{long}"));
        is_long || arg.get_short().is_some_and(|short| name == format!("-{short}"))
    })
}

fn takes_value(arg: &Arg) -> bool {
    arg.get_action().takes_values()
}

fn first_line(text: Option<&clap::builder::StyledStr>) -> String {
    let text = text.map(ToString::to_string).unwrap_or_default();
    text.lines().next().unwrap_or_default().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn names(line: &str) -> Vec<String> {
        let words: Vec<String> = line.split(' ').map(str::to_string).collect();
        let found = candidates(&crate::Cli::command(), &words);
        found.into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn commands_options_and_values_are_named() {
        assert_eq!(names("gr"), ["graph"]);
        assert!(
            names("").contains(&"bench".to_string()) && !names("").contains(&"rejudge".to_string())
        );
        assert_eq!(names("agent re"), ["resume"]);
        assert_eq!(names("bench tasks --engi"), ["--engine"]);
        assert_eq!(names("bench --engine t"), ["torch"]);
        assert_eq!(names("bench --engine torch --device c"), ["cpu", "cuda"]);
        assert!(names("graph show --js").contains(&"--json".to_string()));
        assert_eq!(names("completions z"), ["zsh"]);
    }

    #[test]
    fn paths_are_left_to_the_shell() {
        assert!(names("bench be").is_empty());
        assert!(names("bench --out ").is_empty());
        assert!(names("bench --passes graph ").is_empty(), "the value of an option is no command");
    }
}
