//! The forms in which well-known trainers read conversations. `docs/learning.md` has a table of them.
//!
//! Where a trainer can be told which replies to learn from, it is; where it cannot, every line ends with a reply that is worth
//! learning, and only that one is learned.

use super::chat_lines::{chosen, tokens};
use super::guard::is_ours;
use super::preference::pairs;
use super::{Arguments, ChatFilter, PairFilter, plain, spoken, tool_list, worth_learning};
use crate::chat::{Assistant, Message, Usage};
use crate::prompt::CallStyle;
use crate::run::AttemptRecord;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// A trainer and what it is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is named by the trainer and the form that it reads")]
pub enum Framework {
    Trl,
    TrlPromptCompletion,
    TrlPrompt,
    TrlPreference,
    TrlKto,
    LlamaFactory,
    Axolotl,
    Verl,
    OpenAi,
}

impl Framework {
    /// In the order in which help lists them.
    pub const ALL: [Framework; 9] = [
        Framework::Trl,
        Framework::TrlPromptCompletion,
        Framework::TrlPrompt,
        Framework::TrlPreference,
        Framework::TrlKto,
        Framework::LlamaFactory,
        Framework::Axolotl,
        Framework::Verl,
        Framework::OpenAi,
    ];

    /// As commands name it.
    pub const fn name(self) -> &'static str {
        match self {
            Framework::Trl => "trl",
            Framework::TrlPromptCompletion => "trl-prompt-completion",
            Framework::TrlPrompt => "trl-prompt",
            Framework::TrlPreference => "trl-preference",
            Framework::TrlKto => "trl-kto",
            Framework::LlamaFactory => "llama-factory",
            Framework::Axolotl => "axolotl",
            Framework::Verl => "verl",
            Framework::OpenAi => "openai",
        }
    }

    /// What its lines are, in a few words.
    pub const fn about(self) -> &'static str {
        match self {
            Framework::Trl => "TRL, SFT: whole conversations with tools",
            Framework::TrlPromptCompletion => "TRL, SFT: a prompt and one reply worth learning",
            Framework::TrlPrompt => "TRL, GRPO: prompts alone",
            Framework::TrlPreference => "TRL, DPO: pairs with tools",
            Framework::TrlKto => "TRL, KTO: replies, good or bad",
            Framework::LlamaFactory => {
                "LLaMA-Factory: sharegpt with tools, up to each reply worth learning"
            }
            Framework::Axolotl => "axolotl: chat_template, with the replies worth learning marked",
            Framework::Verl => "verl: prompts for reinforcement learning",
            Framework::OpenAi => "OpenAI's fine-tuning, with weights of replies",
        }
    }
}

/// What LLaMA-Factory puts between answers that came together.
const BETWEEN_ANSWERS: &str = "\n</tool_response>\n<tool_response>\n";

/// The lines of an export, in the order of the attempts.
pub fn framework_lines(
    attempts: &[AttemptRecord],
    framework: Framework,
    filter: &ChatFilter,
    pair_filter: PairFilter,
) -> Vec<Value> {
    if framework == Framework::TrlPreference {
        return pairs(attempts, pair_filter, Arguments::Object)
            .into_iter()
            .map(with_tools)
            .collect();
    }
    let chosen = chosen(attempts, filter);
    let talks = chosen.into_iter().map(|(attempt, until)| Talk::of(attempt, until));
    match framework {
        Framework::Trl => talks.map(|talk| talk.whole(Arguments::Object, None)).collect(),
        Framework::Axolotl => {
            talks.map(|talk| talk.whole(Arguments::Object, Some(axolotl))).collect()
        }
        Framework::OpenAi => {
            let bare = |mut line: Value| {
                keep_only(&mut line, &["messages", "tools"]);
                line
            };
            talks.map(|talk| bare(talk.whole(Arguments::Text, Some(openai)))).collect()
        }
        Framework::TrlPromptCompletion => {
            talks.flat_map(|talk| talk.replies(|worth| worth.then(|| json!({})))).collect()
        }
        Framework::TrlKto => {
            talks.flat_map(|talk| talk.replies(|worth| Some(json!({ "label": worth })))).collect()
        }
        Framework::LlamaFactory => talks.flat_map(|talk| talk.sharegpt()).collect(),
        Framework::TrlPrompt => distinct_prompts(talks).map(|talk| talk.prompt_line()).collect(),
        Framework::Verl => {
            distinct_prompts(talks).enumerate().map(|(index, talk)| talk.verl(index)).collect()
        }
        Framework::TrlPreference => Vec::new(),
    }
}

/// The tools beside a pair, unless its conversations call them in the text.
fn with_tools(mut pair: Value) -> Value {
    let calls = |messages: &Value| {
        let messages = messages.as_array().map(Vec::as_slice).unwrap_or_default();
        messages.iter().any(|message| message.get("tool_calls").is_some())
    };
    if calls(&pair["chosen"]) || calls(&pair["rejected"]) {
        pair["tools"] = tool_list();
    }
    pair
}

fn keep_only(line: &mut Value, names: &[&str]) {
    if let Value::Object(map) = line {
        map.retain(|name, _| names.contains(&name.as_str()));
    }
}

fn axolotl(message: &mut Value, is_worth: Option<bool>) {
    message["training"] = is_worth.unwrap_or(false).into();
}

/// Replies have weights; a tool's answer has no name there.
fn openai(message: &mut Value, is_worth: Option<bool>) {
    match is_worth {
        Some(is_worth) => message["weight"] = u8::from(is_worth).into(),
        None => {
            if let Value::Object(map) = message {
                map.remove("name");
            }
        }
    }
}

/// One conversation, up to its last reply.
struct Talk<'a> {
    attempt: &'a AttemptRecord,
    messages: Vec<Message>,
    /// For each message, whether it is worth learning; `None` where it is not the model's.
    worth: Vec<Option<bool>>,
}

impl<'a> Talk<'a> {
    fn of(attempt: &'a AttemptRecord, until: Option<u32>) -> Self {
        let mut messages = spoken(attempt, until);
        let is_reply = |message: &Message| matches!(message, Message::Assistant(_));
        let last = messages.iter().rposition(is_reply).map_or(0, |last| last + 1);
        messages.truncate(last.max(prompt_length(&messages)));
        let mut replies = worth_learning(attempt, until).into_iter();
        let worth = messages
            .iter()
            .map(|message| match message {
                // A call of a tool that does not exist is nobody's example.
                Message::Assistant(reply) => Some(
                    replies.next().unwrap_or(false)
                        && reply.tool_calls.iter().all(|call| is_ours(&call.name)),
                ),
                _ => None,
            })
            .collect();
        Talk { attempt, messages, worth }
    }

    fn prompt_length(&self) -> usize {
        prompt_length(&self.messages)
    }

    fn said(&self, range: std::ops::Range<usize>) -> Vec<Value> {
        self.messages[range].iter().map(|message| plain(message, Arguments::Object)).collect()
    }

    /// What every line says beside its messages.
    fn about(&self, mut line: Value) -> Value {
        line["task"] = self.attempt.start.task.as_str().into();
        line["score"] = self.attempt.best_score().into();
        line["tokens"] = tokens(self.attempt).into();
        if self.attempt.start.calls == CallStyle::Native {
            line["tools"] = tool_list();
        }
        line
    }

    fn whole(&self, arguments: Arguments, mark: Option<fn(&mut Value, Option<bool>)>) -> Value {
        let message = |(message, worth): (&Message, &Option<bool>)| {
            let mut value = plain(message, arguments);
            if let Some(mark) = mark {
                mark(&mut value, *worth);
            }
            value
        };
        let messages: Vec<Value> = self.messages.iter().zip(&self.worth).map(message).collect();
        self.about(json!({ "messages": messages }))
    }

    /// A line for each reply of which the given function makes one.
    fn replies(&self, line: impl Fn(bool) -> Option<Value>) -> Vec<Value> {
        let worth = self.worth.iter().enumerate();
        let reply = |(index, worth): (usize, &Option<bool>)| {
            let mut line = line((*worth)?)?;
            line["prompt"] = self.said(0..index).into();
            line["completion"] = self.said(index..index + 1).into();
            Some(self.about(line))
        };
        worth.filter_map(reply).collect()
    }

    fn prompt_line(&self) -> Value {
        let mut line = self.about(json!({ "prompt": self.said(0..self.prompt_length()) }));
        line["tokens"] = self.prompt_tokens().into();
        line
    }

    /// Tokens of the prompt, as we estimate: nobody was asked yet.
    fn prompt_tokens(&self) -> u64 {
        Usage::estimate(&self.messages[..self.prompt_length()], &Assistant::default()).input
    }

    fn verl(&self, index: usize) -> Value {
        let task = &self.attempt.start.task;
        json!({
            "data_source": "passnet",
            "prompt": self.said(0..self.prompt_length()),
            "ability": "compiler_pass",
            "reward_model": { "style": "rule", "ground_truth": task },
            "extra_info": { "index": index, "task": task, "split": "train", "tokens": self.prompt_tokens() },
        })
    }

    /// A line up to each reply worth learning; the trainer learns the last turn alone (`mask_history`).
    fn sharegpt(&self) -> Vec<Value> {
        let mut turns: Vec<(&'static str, String)> = Vec::new();
        let mut system = String::new();
        let mut lines = Vec::new();
        for (message, worth) in self.messages.iter().zip(&self.worth) {
            match message {
                Message::System { content } => system.clone_from(content),
                Message::User { content } => turns.push(("human", content.clone())),
                Message::Tool { content, .. } => match turns.last_mut() {
                    Some(("observation", last)) => {
                        last.push_str(BETWEEN_ANSWERS);
                        last.push_str(content);
                    }
                    _ => turns.push(("observation", content.clone())),
                },
                Message::Assistant(reply) if reply.tool_calls.is_empty() => {
                    turns.push(("gpt", reply.content.clone()));
                }
                Message::Assistant(reply) => {
                    let calls = plain(&Message::Assistant(reply.clone()), Arguments::Object);
                    let calls = calls["tool_calls"].as_array().cloned().unwrap_or_default();
                    let calls: Vec<&Value> = calls.iter().map(|call| &call["function"]).collect();
                    turns.push(("function_call", json!(calls).to_string()));
                }
            }
            if *worth == Some(true) {
                let said: Vec<Value> = turns
                    .iter()
                    .map(|(from, value)| json!({ "from": from, "value": value }))
                    .collect();
                let mut line = self.about(json!({ "conversations": said, "system": system }));
                let tools = line.get("tools").map_or(String::new(), Value::to_string);
                // Text in the file, read by the trainer's own templates.
                line["tools"] = tools.into();
                lines.push(line);
            }
        }
        lines
    }
}

/// How many messages come before the model's first word.
fn prompt_length(messages: &[Message]) -> usize {
    let is_reply = |message: &Message| matches!(message, Message::Assistant(_));
    messages.iter().position(is_reply).unwrap_or(messages.len())
}

/// Several attempts at one task ask the same.
fn distinct_prompts<'a>(talks: impl Iterator<Item = Talk<'a>>) -> impl Iterator<Item = Talk<'a>> {
    let mut seen = BTreeSet::new();
    talks.filter(move |talk| {
        let prompt: Vec<Value> = talk.said(0..talk.prompt_length());
        seen.insert(Value::from(prompt).to_string())
    })
}
