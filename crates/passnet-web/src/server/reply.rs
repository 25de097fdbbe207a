//! What an answer looks like, and work beside the threads that answer.

use super::State;
use crate::{Error, ErrorKind};
use axum::body::Body;
use axum::http::StatusCode;
use axum::http::header::{self, HeaderValue};
use axum::response::Response;
use serde_json::{Value, json};
use std::sync::Arc;

pub(super) fn answer(status: StatusCode, kind: &'static str, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

pub(super) fn json_answer(status: StatusCode, value: &Value) -> Response {
    answer(status, "application/json", value.to_string())
}

/// An error for machines, with a hint where there is one.
pub(super) fn failure(status: StatusCode, message: &str, hint: Option<&str>) -> Response {
    json_answer(status, &json!({ "error": message, "hint": hint }))
}

pub(super) fn slow_down(message: &str) -> Response {
    let mut response = failure(StatusCode::TOO_MANY_REQUESTS, message, Some("try again later"));
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("10"));
    response
}

/// What an error means to a client; what the store says is nobody's business.
pub(super) fn failed(state: &State, error: &Error) -> Response {
    match error.kind {
        ErrorKind::Input => failure(StatusCode::BAD_REQUEST, &error.message, error.hint.as_deref()),
        ErrorKind::Lacking | ErrorKind::Storage => {
            state.log(&json!({ "event": "failed", "error": error.message }));
            failure(StatusCode::INTERNAL_SERVER_ERROR, "the server failed", Some("try again later"))
        }
    }
}

/// Does work that may take its time beside the threads that answer.
pub(super) async fn apart(
    state: Arc<State>,
    work: impl FnOnce(&State) -> Response + Send + 'static,
) -> Response {
    let shared = state.clone();
    match tokio::task::spawn_blocking(move || work(&shared)).await {
        Ok(response) => response,
        // A panic in our own code: one request is lost, the server is not.
        Err(error) => {
            state.log(&json!({ "event": "panicked", "error": error.to_string() }));
            failure(StatusCode::INTERNAL_SERVER_ERROR, "the server failed", None)
        }
    }
}

/// The same for work that takes longer: only so much of it at once, so that the rest is answered meanwhile.
pub(super) async fn apart_heavy(
    state: Arc<State>,
    work: impl FnOnce(&State) -> Response + Send + 'static,
) -> Response {
    let permit = state.heavy.clone().acquire_owned().await;
    apart(state, move |state| {
        // Held until the work is done, also where the client has gone.
        let _permit = permit;
        work(state)
    })
    .await
}
