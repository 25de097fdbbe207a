//! JSON-RPC: the tools of a session over the Model Context Protocol.

use super::documents::{self, NAME, VERSION};
use super::{OpenEnv, Session, use_session};
use crate::server::http::{Answer, Failure, Request};
use serde_json::{Value, json};
use std::sync::Mutex;

/// The protocol that is agreed on where the client names none.
const PROTOCOL: &str = "2025-06-18";

const PARSE_ERROR: i32 = -32700;
const INVALID_REQUEST: i32 = -32600;
const METHOD_NOT_FOUND: i32 = -32601;
const INVALID_PARAMS: i32 = -32602;
const INTERNAL_ERROR: i32 = -32603;
const SERVER_ERROR: i32 = -32000;

/// A request that fails, as JSON-RPC numbers it.
struct Fault {
    code: i32,
    message: String,
}

impl From<Failure> for Fault {
    fn from(failure: Failure) -> Self {
        let code = match failure.status {
            400 | 404 | 422 => INVALID_PARAMS,
            409 => INVALID_REQUEST,
            503 => SERVER_ERROR,
            _ => INTERNAL_ERROR,
        };
        Fault { code, message: failure.message }
    }
}

fn fault(code: i32, message: &str) -> Fault {
    Fault { code, message: message.to_string() }
}

fn finished(id: Value, result: Result<Value, Fault>) -> Value {
    match result {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err(Fault { code, message }) => {
            json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
        }
    }
}

impl OpenEnv {
    /// A request by POST: in the session that its parameters or its headers name, or in none.
    pub(super) fn rpc_over_http(&self, request: &Request) -> Answer {
        let body: Value = match serde_json::from_slice(&request.body) {
            Ok(body) => body,
            Err(_) => return finished(Value::Null, Err(fault(PARSE_ERROR, "not JSON"))).into(),
        };
        let id = body.get("id").cloned().unwrap_or(Value::Null);
        if body["method"] == "initialize" {
            return match self.initialize(request.query("task"), &body["params"]) {
                Ok((session, result)) => {
                    Answer { mcp_session: Some(session), ..finished(id, Ok(result)).into() }
                }
                Err(failure) => finished(id, Err(failure.into())).into(),
            };
        }
        let named = body["params"].get("session_id").and_then(Value::as_str);
        let answer = match named.or(request.mcp_session.as_deref()).map(|id| self.kept(id)) {
            // Closing is done by name, not from within.
            _ if body["method"] == "openenv/session/close" => self.rpc(None, &body),
            Some(Ok(session)) => self.rpc(Some(&session), &body),
            Some(Err(failure)) => Some(finished(id, Err(failure.into()))),
            None => self.rpc(None, &body),
        };
        match answer {
            Some(answer) => answer.into(),
            None => Answer { status: 202, body: None, mcp_session: None },
        }
    }

    /// A message on a WebSocket that speaks nothing else; what wants no answer is acknowledged with an empty object.
    pub(in crate::server) fn rpc_message(&self, session: &Mutex<Session>, text: &str) -> String {
        let request: Value = match serde_json::from_str(text) {
            Ok(request) => request,
            Err(_) => {
                return finished(Value::Null, Err(fault(PARSE_ERROR, "not JSON"))).to_string();
            }
        };
        self.rpc(Some(session), &request).unwrap_or_else(|| json!({})).to_string()
    }

    /// A session for a client that knows nothing of OpenEnv: its task is told in the instructions.
    fn initialize(&self, task: Option<&str>, params: &Value) -> Result<(String, Value), Failure> {
        let mut session = Session::default();
        let begun = self.reset(&mut session, &json!({ "task": task, "calls": "native" }))?;
        let said = begun["observation"]["messages"].as_array().map(Vec::as_slice);
        let said: Vec<&str> = said
            .unwrap_or_default()
            .iter()
            .filter_map(|message| message["content"].as_str())
            .collect();
        let protocol = params.get("protocolVersion").and_then(Value::as_str).unwrap_or(PROTOCOL);
        let result = json!({
            "protocolVersion": protocol,
            "capabilities": { "tools": {} },
            "serverInfo": { "name": NAME, "version": VERSION },
            "instructions": said.join("\n\n"),
        });
        Ok((self.keep(session)?, result))
    }

    /// The answer to a request; `None` to what wants none.
    pub(super) fn rpc(&self, session: Option<&Mutex<Session>>, request: &Value) -> Option<Value> {
        let id = request.get("id").cloned().unwrap_or(Value::Null);
        let method = request.get("method").and_then(Value::as_str);
        let is_request =
            request["jsonrpc"] == "2.0" && (id.is_null() || id.is_string() || id.is_number());
        let Some(method) = method.filter(|_| is_request) else {
            let wrong = fault(INVALID_REQUEST, "not a request of JSON-RPC 2.0");
            return Some(finished(Value::Null, Err(wrong)));
        };
        if method.starts_with("notifications/") {
            return None;
        }
        Some(finished(id, self.method(session, method, &request["params"])))
    }

    fn method(
        &self,
        session: Option<&Mutex<Session>>,
        method: &str,
        params: &Value,
    ) -> Result<Value, Fault> {
        match method {
            "ping" => Ok(json!({})),
            "tools/list" => Ok(json!({ "tools": documents::tools("inputSchema") })),
            "tools/call" => self.call(session, params),
            "openenv/session/create" => Ok(json!({ "session_id": self.keep(Session::default())? })),
            "openenv/session/close" => match params.get("session_id").and_then(Value::as_str) {
                Some(id) if self.forget(id) => Ok(json!({ "session_id": id, "closed": true })),
                Some(_) => Err(fault(INVALID_PARAMS, "there is no such session")),
                None => Err(fault(INVALID_PARAMS, "`session_id` is missing")),
            },
            _ => Err(fault(METHOD_NOT_FOUND, "there is no such method")),
        }
    }

    /// One call of a tool is a step.
    fn call(&self, session: Option<&Mutex<Session>>, params: &Value) -> Result<Value, Fault> {
        let session = session.ok_or_else(|| {
            fault(INVALID_PARAMS, "a call needs a session: openenv/session/create, or initialize")
        })?;
        let name = params.get("name").and_then(Value::as_str);
        let name = name.ok_or_else(|| fault(INVALID_PARAMS, "`name` is missing"))?;
        let arguments = params.get("arguments").cloned().unwrap_or_else(|| json!({}));
        let action = json!({ "type": "call_tool", "tool_name": name, "arguments": arguments });
        let step = self.step(&mut *use_session(session)?, &action)?;
        let text = &step["observation"]["result"];
        let is_error = step["observation"]["results"][0]["is_error"] == true;
        let about = json!({
            "reward": step["reward"],
            "done": step["done"],
            "tier": step["observation"]["tier"],
            "best": step["observation"]["best"],
        });
        Ok(json!({
            "content": [{ "type": "text", "text": text }],
            "isError": is_error,
            "structuredContent": about,
            "data": text,
        }))
    }
}
