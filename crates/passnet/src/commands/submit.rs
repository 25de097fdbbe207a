//! `passnet submit`: a bundle goes to a leaderboard.

use crate::error::{CommandError, Outcome};
use crate::output::Output;
use clap::Args;
use passnet_web::client::{Client, Said};
use passnet_web::store::Token;
use serde_json::{Value, json};
use std::path::PathBuf;

/// The variable that holds the token.
const TOKEN: &str = "PASSNET_TOKEN";

#[derive(Debug, Args)]
#[command(after_help = "\
The token comes from PASSNET_TOKEN; the board's owner gives it. It is sent over https or to this machine. The same bundle
may be sent again: it is known by its content. The exit code is 1 where the server refuses.

Examples:
  export PASSNET_TOKEN=…
  passnet submit one.bundle --to https://board.example.org
  passnet submit two.bundle --to https://board.example.org --replaces 0123456789abcdef
  passnet submit --withdraw 0123456789abcdef --to https://board.example.org")]
pub struct SubmitArgs {
    /// A bundle that `passnet bundle` made
    #[arg(required_unless_present = "withdraw", value_name = "FILE")]
    file: Option<PathBuf>,

    /// Address of the leaderboard
    #[arg(long, value_name = "URL")]
    to: String,

    /// An earlier entry of yours that this one supersedes
    #[arg(long, value_name = "ID")]
    replaces: Option<String>,

    /// Take an entry of yours back; it stays visible as withdrawn
    #[arg(long, value_name = "ID", conflicts_with_all = ["file", "replaces"])]
    withdraw: Option<String>,
}

pub fn run(args: SubmitArgs, out: &mut Output) -> Result<Outcome, CommandError> {
    let token = std::env::var(TOKEN).ok().filter(|token| !token.is_empty()).ok_or_else(|| {
        CommandError::input(format!("{TOKEN} holds no token"))
            .with_hint("the board's owner gives tokens: `passnet leaderboard token NAME`")
    })?;
    let client = Client::new(&args.to, Token::given(token.trim()))?;
    let said = match (&args.withdraw, &args.file) {
        (Some(id), _) => client.withdraw(id)?,
        (None, Some(file)) => client.submit(file, args.replaces.as_deref())?,
        (None, None) => return Err(CommandError::bug("nothing to submit")),
    };
    let is_done = (200..300).contains(&said.status);
    match out.is_json() {
        true => out.json(&json!({ "status": said.status, "answer": said.answer }))?,
        false => out.line(sentence(&said, &args.to))?,
    }
    out.flush()?;
    Ok(Outcome::failed_if(!is_done))
}

fn sentence(said: &Said, url: &str) -> String {
    let url = url.trim_end_matches('/');
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    match (said.status, said.answer.get("id").and_then(Value::as_i64)) {
        (200 | 202, Some(id)) => format!(
            "submission {id} is {}; {url}/api/v1/submissions/{id} says what becomes of it",
            text(&said.answer["state"])
        ),
        (200, None) => {
            format!("{} is {}", text(&said.answer["run"]["id"]), text(&said.answer["run"]["state"]))
        }
        (status, _) => {
            let hint = said.answer["hint"].as_str().map(|hint| format!(" ({hint})"));
            format!(
                "refused ({status}): {}{}",
                text(&said.answer["error"]),
                hint.unwrap_or_default()
            )
        }
    }
}
