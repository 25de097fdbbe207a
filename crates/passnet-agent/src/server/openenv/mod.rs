//! The same episodes for clients of OpenEnv: sessions over WebSocket (`/ws`, `/mcp`), the requests over HTTP (`/reset`,
//! `/step`, `/state`, `/schema`, `/metadata`, `/health`, `/openapi.json`) and tools over the Model Context Protocol.
//!
//! A session holds one episode at a time. One that a WebSocket opened ends with it; one that `openenv/session/create` or
//! `initialize` made has an id and lives until it is closed, or idle when room is needed.

mod documents;
mod rpc;

use super::episodes::Episodes;
use super::http::{Answer, Failure, Request};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Instant;

/// The longest name that a client may give to an episode.
const MAX_NAME_BYTES: usize = 255;

/// What a client is in the middle of.
#[derive(Debug, Default)]
pub(super) struct Session {
    /// The episode, as the server knows it.
    episode: Option<String>,
    /// As the client would like to call it.
    name: Option<String>,
    task: Option<String>,
    steps: u64,
    is_done: bool,
    rewards: Rewards,
}

/// Which reward a session's steps give.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Rewards {
    /// With what the passes reached for the first time.
    #[default]
    Tiered,
    /// The growth of ln(best AS) alone.
    Score,
}

#[derive(Debug)]
struct Kept {
    session: Arc<Mutex<Session>>,
    used: Instant,
}

/// What OpenEnv's clients see of a server.
#[derive(Debug)]
pub(super) struct OpenEnv {
    episodes: Arc<Episodes>,
    sessions: Mutex<BTreeMap<String, Kept>>,
    /// Whose turn it is where no task is named.
    turn: AtomicUsize,
}

impl OpenEnv {
    pub(super) fn new(episodes: Arc<Episodes>) -> Self {
        OpenEnv { episodes, sessions: Mutex::default(), turn: AtomicUsize::new(0) }
    }

    /// The answer to a request over HTTP; `None` where the address is none of OpenEnv's.
    pub(super) fn answer(&self, request: &Request) -> Option<Result<Answer, Failure>> {
        let answer = match (request.method.as_str(), request.path.as_str()) {
            ("GET", "/health") => Ok(json!({ "status": "healthy" })),
            ("GET", "/metadata") => Ok(documents::metadata(&self.episodes)),
            ("GET", "/schema") => Ok(documents::schema()),
            ("GET", "/openapi.json") => Ok(documents::openapi()),
            ("GET", "/state") => self.bare_state(request.query("episode_id")),
            ("POST", "/reset") => self.bare_reset(request),
            ("POST", "/step") => self.bare_step(request),
            ("POST", "/mcp") => return Some(Ok(self.rpc_over_http(request))),
            ("DELETE", "/mcp") => {
                let closed = request.mcp_session.as_deref().is_some_and(|id| self.forget(id));
                match closed {
                    true => Ok(json!({ "closed": true })),
                    false => Err(Failure::new(404, "there is no such session")),
                }
            }
            ("GET", "/mcp") => {
                Err(Failure::new(405, "requests of MCP are sent by POST, or over WebSocket"))
            }
            _ => return None,
        };
        Some(answer.map(Answer::from))
    }

    /// Requests over HTTP have no session: the answer to a reset names the episode, a step names it back.
    fn bare_reset(&self, request: &Request) -> Result<Value, Failure> {
        let body = if request.body.is_empty() { json!({}) } else { request.json()? };
        self.reset(&mut Session::default(), &body)
    }

    fn bare_step(&self, request: &Request) -> Result<Value, Failure> {
        let body = request.json()?;
        let episode = body.get("episode_id").and_then(Value::as_str);
        let episode = episode.ok_or_else(|| {
            Failure::new(
                422,
                "`episode_id` is missing: the metadata of the reset has it; a WebSocket needs none",
            )
        })?;
        let action = body.get("action").ok_or_else(|| Failure::new(422, "`action` is missing"))?;
        let rewards = rewards(&body)?;
        let mut session =
            Session { episode: Some(episode.to_string()), rewards, ..Session::default() };
        self.step(&mut session, action)
    }

    fn bare_state(&self, episode: Option<&str>) -> Result<Value, Failure> {
        let Some(episode) = episode else { return Ok(self.state(&Session::default())) };
        let score = self.episodes.score(&json!({ "episode": episode }))?;
        Ok(json!({
            "episode_id": episode,
            "step_count": score["steps"],
            "done": score["done"],
            "best": score["score"],
        }))
    }

    /// A new episode, in place of the one before.
    fn reset(&self, session: &mut Session, data: &Value) -> Result<Value, Failure> {
        let task = self.choose(data)?;
        let name = match data.get("episode_id") {
            None | Some(Value::Null) => None,
            Some(Value::String(name)) if name.len() <= MAX_NAME_BYTES => Some(name.clone()),
            Some(_) => {
                return Err(Failure::bad(format!(
                    "`episode_id` is a text of at most {MAX_NAME_BYTES} bytes"
                )));
            }
        };
        let rewards = rewards(data)?;
        let calls = data.get("calls").cloned().unwrap_or_else(|| "text".into());
        self.end(session);
        let begun = self.episodes.reset(&json!({ "task": task, "calls": calls }))?;
        let episode = begun["episode"].as_str().map(str::to_string);
        *session =
            Session { episode, name, task: Some(task.clone()), rewards, ..Session::default() };
        let mut observation = json!({
            "text": "",
            "task": task,
            "messages": begun["messages"],
            "max_steps": begun["max_steps"],
        });
        if begun["tools"].as_array().is_some_and(|tools| !tools.is_empty()) {
            observation["functions"] = begun["tools"].clone();
        }
        let metadata =
            json!({ "episode_id": begun["episode"], "task": task, "engine": begun["engine"] });
        Ok(told(observation, Value::Null, false, metadata))
    }

    /// The task that is named, the one that a seed chooses, or the next in turn.
    fn choose(&self, data: &Value) -> Result<String, Failure> {
        let index = match (data.get("task"), data.get("seed")) {
            (Some(Value::String(task)), _) => return Ok(task.clone()),
            (Some(Value::Null) | None, Some(Value::Number(seed))) => {
                seed.as_u64().ok_or_else(|| Failure::bad("`seed` is a whole number from 0"))?
            }
            (Some(Value::Null) | None, Some(Value::Null) | None) => {
                self.turn.fetch_add(1, Ordering::Relaxed) as u64
            }
            _ => return Err(Failure::bad("`task` is a text, `seed` a whole number")),
        };
        self.episodes.task_at(index).ok_or_else(|| Failure::new(404, "there are no tasks"))
    }

    /// Does what an action asks.
    fn step(&self, session: &mut Session, action: &Value) -> Result<Value, Failure> {
        if action.get("type").and_then(Value::as_str) == Some("list_tools") {
            let observation = json!({ "tools": documents::tools("input_schema") });
            return Ok(told(observation, Value::Null, session.is_done, json!({})));
        }
        let episode = session
            .episode
            .clone()
            .ok_or_else(|| Failure::new(409, "there is no episode yet; reset first"))?;
        let (field, asked) = asked(action)?;
        let mut body = json!({ "episode": episode });
        body[field] = asked;
        let step = self.episodes.step(&body)?;
        session.steps += 1;
        session.is_done = step["done"] == true;
        let reward = match session.rewards {
            Rewards::Tiered => &step["tiered_reward"],
            Rewards::Score => &step["reward"],
        };
        let results = step["results"].as_array().map(Vec::as_slice).unwrap_or_default();
        let said: Vec<&str> =
            results.iter().filter_map(|result| result["observation"].as_str()).collect();
        let mut observation = json!({
            "text": said.join("\n\n"),
            "results": results,
            "tier": step["tier"],
            "best": step["best"],
            "steps_remaining": step["steps_remaining"],
        });
        if action.get("type").and_then(Value::as_str) == Some("call_tool") {
            observation["tool_name"] = action["tool_name"].clone();
            observation["result"] = observation["text"].clone();
            observation["error"] = Value::Null;
        }
        let metadata = json!({
            "episode_id": episode,
            "score_reward": step["reward"],
            "tiered_reward": step["tiered_reward"],
            "seconds": step["seconds"],
            "waited_seconds": step["waited_seconds"],
        });
        Ok(told(observation, reward.clone(), session.is_done, metadata))
    }

    fn state(&self, session: &Session) -> Value {
        json!({
            "episode_id": session.name.as_ref().or(session.episode.as_ref()),
            "step_count": session.steps,
            "task": session.task,
            "done": session.is_done,
        })
    }

    /// Forgets the episode of a session.
    fn end(&self, session: &mut Session) {
        if let Some(episode) = session.episode.take() {
            // It may have been forgotten for being idle.
            let _ = self.episodes.close(&json!({ "episode": episode }));
        }
    }

    fn sessions(&self) -> MutexGuard<'_, BTreeMap<String, Kept>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A session that outlives its connection.
    fn keep(&self, session: Session) -> Result<String, Failure> {
        let limits = self.episodes.limits();
        let mut idle = Vec::new();
        let mut sessions = self.sessions();
        if sessions.len() >= limits.episodes {
            let old: Vec<String> = sessions
                .iter()
                .filter(|(_, kept)| kept.used.elapsed() >= limits.idle)
                .map(|(id, _)| id.clone())
                .collect();
            idle = old.iter().filter_map(|id| sessions.remove(id)).collect();
        }
        let is_full = sessions.len() >= limits.episodes;
        let id = super::episodes::fresh_id();
        if !is_full {
            let session = Arc::new(Mutex::new(session));
            sessions.insert(id.clone(), Kept { session, used: Instant::now() });
        }
        drop(sessions);
        idle.iter().for_each(|kept| self.release(kept));
        match is_full {
            true => Err(Failure::busy("too many sessions; close some")),
            false => Ok(id),
        }
    }

    fn kept(&self, id: &str) -> Result<Arc<Mutex<Session>>, Failure> {
        let mut sessions = self.sessions();
        let kept = sessions.get_mut(id);
        let kept = kept.ok_or_else(|| Failure::new(404, "there is no such session"))?;
        kept.used = Instant::now();
        Ok(kept.session.clone())
    }

    /// Whether there was such a session.
    fn forget(&self, id: &str) -> bool {
        let kept = self.sessions().remove(id);
        kept.inspect(|kept| self.release(kept)).is_some()
    }

    fn release(&self, kept: &Kept) {
        self.end(&mut kept.session.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// The session that a WebSocket speaks for, and whether it ends with it.
    pub(super) fn attach(&self, request: &Request) -> Result<(Arc<Mutex<Session>>, bool), Failure> {
        match request.query("session_id") {
            Some(id) => Ok((self.kept(id)?, false)),
            None => Ok((Arc::default(), true)),
        }
    }

    pub(super) fn detach(&self, session: &Mutex<Session>) {
        self.end(&mut session.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// The answer to a message on `/ws`; `None` ends the connection.
    pub(super) fn message(&self, session: &Mutex<Session>, text: &str) -> Option<String> {
        let message: Value = match serde_json::from_str(text) {
            Ok(message) => message,
            Err(error) => return Some(failed("INVALID_JSON", &format!("not JSON: {error}"))),
        };
        let none = json!({});
        let data = message.get("data").unwrap_or(&none);
        let observed = |data: Value| json!({ "type": "observation", "data": data });
        let answer = match message.get("type").and_then(Value::as_str) {
            Some("close") => return None,
            Some("reset") => {
                use_session(session).and_then(|mut it| self.reset(&mut it, data)).map(observed)
            }
            Some("step") => {
                use_session(session).and_then(|mut it| self.step(&mut it, data)).map(observed)
            }
            Some("state") => {
                use_session(session).map(|it| json!({ "type": "state", "data": self.state(&it) }))
            }
            Some("mcp") => {
                let answer = self.rpc(Some(session), data).unwrap_or_else(|| json!({}));
                Ok(json!({ "type": "mcp", "data": answer }))
            }
            _ => {
                let kinds = "`type` is reset, step, state, mcp or close";
                return Some(failed("UNKNOWN_TYPE", kinds));
            }
        };
        Some(match answer {
            Ok(answer) => answer.to_string(),
            Err(failure) => failed(code(&failure), &failure.message),
        })
    }
}

fn use_session(session: &Mutex<Session>) -> Result<MutexGuard<'_, Session>, Failure> {
    match session.try_lock() {
        Ok(session) => Ok(session),
        Err(TryLockError::Poisoned(session)) => Ok(session.into_inner()),
        Err(TryLockError::WouldBlock) => {
            Err(Failure::new(409, "another request of this session is under way"))
        }
    }
}

/// An observation in OpenEnv's form.
fn told(mut observation: Value, reward: Value, done: bool, metadata: Value) -> Value {
    observation["metadata"] = metadata.clone();
    json!({ "observation": observation, "reward": reward, "done": done, "metadata": metadata })
}

fn failed(code: &str, message: &str) -> String {
    json!({ "type": "error", "data": { "message": message, "code": code } }).to_string()
}

fn code(failure: &Failure) -> &'static str {
    match failure.status {
        400 | 404 | 422 => "VALIDATION_ERROR",
        503 => "CAPACITY_REACHED",
        _ => "EXECUTION_ERROR",
    }
}

fn rewards(data: &Value) -> Result<Rewards, Failure> {
    match data.get("reward") {
        None | Some(Value::Null) => Ok(Rewards::Tiered),
        Some(Value::String(name)) if name == "tiered" => Ok(Rewards::Tiered),
        Some(Value::String(name)) if name == "score" => Ok(Rewards::Score),
        Some(_) => Err(Failure::bad("`reward` is `tiered` or `score`")),
    }
}

/// An action as a step of ours: which of its fields, and what is in it.
fn asked(action: &Value) -> Result<(&'static str, Value), Failure> {
    let unknown = || {
        Failure::new(
            422,
            "an action has `text`, a reply with calls in it, or `calls`, a list, or is itself a call",
        )
    };
    let Value::Object(fields) = action else { return Err(unknown()) };
    if fields.get("type").and_then(Value::as_str) == Some("call_tool") {
        let name = fields.get("tool_name").and_then(Value::as_str);
        let name = name.ok_or_else(|| Failure::new(422, "`tool_name` is missing"))?;
        let arguments = fields.get("arguments").cloned().unwrap_or_else(|| json!({}));
        return Ok(("calls", json!([{ "name": name, "arguments": arguments }])));
    }
    match (fields.get("text"), fields.get("calls")) {
        (Some(text @ Value::String(_)), None) => Ok(("text", text.clone())),
        (None, Some(calls @ Value::Array(_))) => Ok(("calls", calls.clone())),
        // A reply that is nothing but a call, which some clients take apart before they send it.
        (None, None) if fields.contains_key("tool") || fields.contains_key("name") => {
            Ok(("text", action.to_string().into()))
        }
        _ => Err(unknown()),
    }
}
