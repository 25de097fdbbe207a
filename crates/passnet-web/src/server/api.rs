//! The interface for machines, version 1; `openapi.json` describes it.

use super::State;
use super::peer::Peer;
use super::reply::{answer, apart, apart_heavy, failed, failure, json_answer, slow_down};
use crate::Error;
use crate::bundle::{Bundle, Limits, is_digest_text};
use crate::pages::{MAX_RUNS, Pages, Query, Route, compared, inspected, published, run_of};
use crate::store::{Author, Entry, Filter, Received, Shelf, Token};
use axum::body::{Body, to_bytes};
use axum::extract::{Path, Request, State as Shared};
use axum::http::header::{self, HeaderMap};
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Extension, Router};
use passnet_bench::report::{RunRecord, compare};
use passnet_bench::score::Parameters;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Instant;

/// The description of this interface.
pub const OPENAPI: &str = include_str!("../../data/openapi.json");
/// Rows of one answer.
const ROWS: usize = 100;
const HOUR: f64 = 3600.0;

type Server = Shared<Arc<State>>;

pub(super) fn router() -> Router<Arc<State>> {
    Router::new()
        .route(
            "/openapi.json",
            get(|| async { answer(StatusCode::OK, "application/json", OPENAPI) }),
        )
        .route("/boards", get(boards))
        .route("/boards/{key}", get(board))
        .route("/runs/{id}", get(run))
        .route("/runs/{id}/graphs", get(graphs))
        .route("/runs/{id}/rejudged", get(rejudged))
        .route("/runs/{id}/tasks/{task}/passes", get(passes))
        .route("/runs/{id}/withdraw", post(withdraw))
        .route("/compare/{one}/{two}", get(comparison))
        .route("/matrix/{runs}", get(matrix))
        .route("/bundles/{digest}", get(bundle))
        .route("/dataset", get(dataset))
        .route("/dataset/operations", get(operations))
        .route("/reference", get(reference))
        .route("/submissions", get(submissions).post(submit))
        .route("/submissions/{id}", get(submission))
        .fallback(|| async { failure(StatusCode::NOT_FOUND, "no such thing", Some(LISTED)) })
        .method_not_allowed_fallback(|| async {
            failure(StatusCode::METHOD_NOT_ALLOWED, "not in this way", Some(LISTED))
        })
}

const LISTED: &str = "/api/v1/openapi.json lists everything there is";

/// JSON, nothing, or an error.
fn told(state: &State, found: Result<Option<Value>, Error>) -> Response {
    match found {
        Ok(Some(value)) => json_answer(StatusCode::OK, &value),
        Ok(None) => failure(StatusCode::NOT_FOUND, "no such thing", Some(LISTED)),
        Err(error) => failed(state, &error),
    }
}

/// An entry with its addresses and its badge.
fn shown(entry: &Entry) -> Value {
    let mut value = json!(entry);
    value["badge"] = entry.badge().text().into();
    value["board"] = entry.board().into();
    value["page"] = format!("/run/{}/", entry.id).into();
    value
}

async fn boards(Shared(state): Server) -> Response {
    apart(state, |state| {
        let found = state.store.boards().map(|boards| Some(json!({ "boards": boards })));
        told(state, found)
    })
    .await
}

async fn board(Shared(state): Server, Path(key): Path<String>, uri: Uri) -> Response {
    let query = Query::parse(uri.query().unwrap_or_default());
    apart(state, move |state| {
        let found = || -> Result<Option<Value>, Error> {
            let Some(board) = state.store.board(&key)? else { return Ok(None) };
            let filter = Filter {
                order: query.order(),
                ascending: query.is_ascending(),
                text: query.get("q").to_string(),
                state: query.state(),
                skip: (query.page() - 1).saturating_mul(ROWS),
                limit: ROWS,
            };
            let (entries, all) = state.store.entries(&board, &filter)?;
            let entries: Vec<Value> = entries.iter().map(shown).collect();
            Ok(Some(json!({ "board": board, "entries": entries, "all": all })))
        };
        told(state, found())
    })
    .await
}

async fn run(Shared(state): Server, Path(id): Path<String>) -> Response {
    apart(state, move |state| {
        let found = || -> Result<Option<Value>, Error> {
            let Some(entry) = state.store.entry(&id)? else { return Ok(None) };
            let detail = state.store.detail(&entry)?;
            Ok(Some(json!({ "run": shown(&entry), "detail": detail })))
        };
        told(state, found())
    })
    .await
}

async fn graphs(Shared(state): Server, Path(id): Path<String>) -> Response {
    apart(state, move |state| {
        let found = || -> Result<Option<Value>, Error> {
            let Some(entry) = state.store.entry(&id)? else { return Ok(None) };
            Ok(Some(json!({ "graphs": state.store.results(&entry)? })))
        };
        told(state, found())
    })
    .await
}

async fn rejudged(Shared(state): Server, Path(id): Path<String>) -> Response {
    apart(state, move |state| {
        let found = || -> Result<Option<Value>, Error> {
            let Some(entry) = state.store.entry(&id)? else { return Ok(None) };
            Ok(Some(json!({ "rejudged": state.store.rejudged(&entry)? })))
        };
        told(state, found())
    })
    .await
}

async fn passes(Shared(state): Server, Path((id, task)): Path<(String, usize)>) -> Response {
    apart_heavy(state, move |state| {
        let pages = Pages { store: &state.store, tasks: Some(&state.tasks), is_static: false };
        let found = inspected(&pages, &id, task);
        told(state, found.map(|found| found.map(|sets| json!({ "sets": sets }))))
    })
    .await
}

async fn reference() -> Response {
    json_answer(StatusCode::OK, &json!({ "device": "NVIDIA A30", "results": published() }))
}

async fn comparison(Shared(state): Server, Path((one, two)): Path<(String, String)>) -> Response {
    apart_heavy(state, move |state| {
        let run = |id: &str| -> Result<Option<RunRecord>, Error> {
            let Some(entry) = state.store.entry(id)? else { return Ok(None) };
            let Some(bundle) = state.store.bundle(&entry.digest)? else { return Ok(None) };
            run_of(&bundle).map(Some)
        };
        let found = || -> Result<Option<Value>, Error> {
            let (Some(one), Some(two)) = (run(&one)?, run(&two)?) else { return Ok(None) };
            Ok(Some(json!(compare(&one, &two, Parameters::default()))))
        };
        told(state, found())
    })
    .await
}

/// The ids stand side by side, with commas between them.
async fn matrix(Shared(state): Server, Path(runs): Path<String>) -> Response {
    apart_heavy(state, move |state| {
        let ids: Vec<String> = runs.split(',').map(str::to_string).collect();
        let Some(Route::Matrix(ids, _)) = Route::parse(&Route::Matrix(ids, 1).path()) else {
            let text = format!(
                "2 to {MAX_RUNS} runs are to be named, each once, with commas between them"
            );
            return failure(StatusCode::BAD_REQUEST, &text, Some(LISTED));
        };
        let pages = Pages { store: &state.store, tasks: None, is_static: false };
        told(state, compared(&pages, &ids).map(|found| found.map(|found| json!(found))))
    })
    .await
}

async fn bundle(Shared(state): Server, Path(digest): Path<String>) -> Response {
    apart(state, move |state| {
        // Only what is on the board: what waits or was refused is not handed on.
        let found = || -> Result<Option<Bundle>, Error> {
            let id: String = digest.chars().take(16).collect();
            let entry = state.store.entry(&id)?.filter(|entry| entry.digest == digest);
            match entry.filter(|_| is_digest_text(&digest)) {
                Some(entry) => state.store.bundle(&entry.digest),
                None => Ok(None),
            }
        };
        match found() {
            Ok(Some(bundle)) => {
                let bytes = bundle.bytes().to_vec();
                answer(StatusCode::OK, "application/octet-stream", bytes)
            }
            Ok(None) => told(state, Ok(None)),
            Err(error) => failed(state, &error),
        }
    })
    .await
}

async fn dataset(Shared(state): Server, uri: Uri) -> Response {
    let query = Query::parse(uri.query().unwrap_or_default());
    apart(state, move |state| {
        let skip = (query.page() - 1).saturating_mul(ROWS);
        let operation = Some(query.get("op")).filter(|name| !name.is_empty());
        let of = operation.map(|name| (Shelf::Operation, name));
        let found = state.store.corpus(of, skip, ROWS);
        told(state, found.map(|(graphs, all)| Some(json!({ "graphs": graphs, "all": all }))))
    })
    .await
}

async fn operations(Shared(state): Server) -> Response {
    apart(state, |state| {
        let found = state.store.shelf(Shelf::Operation).map(|operations| {
            let shown = operations
                .iter()
                .map(|it| json!({ "operation": it.name, "graphs": it.graphs, "calls": it.calls }));
            Some(json!({ "operations": shown.collect::<Vec<_>>() }))
        });
        told(state, found)
    })
    .await
}

async fn submissions(Shared(state): Server) -> Response {
    apart(state, |state| {
        let found = state.store.submissions(ROWS);
        told(state, found.map(|submissions| Some(json!({ "submissions": submissions }))))
    })
    .await
}

async fn submission(Shared(state): Server, Path(id): Path<String>) -> Response {
    apart(state, move |state| {
        let found = match id.parse() {
            Ok(id) => state.store.submission(id),
            Err(_) => Ok(None),
        };
        told(state, found.map(|found| found.map(|submission| json!(submission))))
    })
    .await
}

/// Whose token a request carries. Wrong tokens cost their address as much as submissions cost a right one.
fn author(state: &State, headers: &HeaderMap, peer: Peer) -> Result<Author, Box<Response>> {
    let denied = |message: &str| {
        let hint = "send `authorization: Bearer TOKEN`; the board's owner gives tokens";
        Err(Box::new(failure(StatusCode::UNAUTHORIZED, message, Some(hint))))
    };
    let per_second = state.limits.submissions_per_hour / HOUR;
    let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let Some(token) = given.and_then(|value| value.strip_prefix("Bearer ")) else {
        return denied("a token is needed");
    };
    match state.store.author_of(&Token::given(token.trim())) {
        Ok(Some(author)) => {
            match state.limiter.take(&format!("author {}", author.id), per_second, Instant::now()) {
                true => Ok(author),
                false => Err(Box::new(slow_down("too many submissions with this token"))),
            }
        }
        Ok(None) => {
            match state.limiter.take(&format!("wrong {}", peer.0), per_second, Instant::now()) {
                true => denied("the token is not valid"),
                false => Err(Box::new(slow_down("too many wrong tokens from this address"))),
            }
        }
        Err(error) => Err(Box::new(failed(state, &error))),
    }
}

async fn submit(
    Shared(state): Server,
    Extension(peer): Extension<Peer>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let query = Query::parse(parts.uri.query().unwrap_or_default());
    let who = {
        let headers = parts.headers.clone();
        let shared = state.clone();
        tokio::task::spawn_blocking(move || author(&shared, &headers, peer)).await
    };
    let author = match who {
        Ok(Ok(author)) => author,
        Ok(Err(response)) => return *response,
        Err(_) => return failure(StatusCode::INTERNAL_SERVER_ERROR, "the server failed", None),
    };
    let Some(bytes) = read(body, state.limits.bundle_bytes).await else {
        let message = format!("a bundle has at most {} bytes", state.limits.bundle_bytes);
        return failure(StatusCode::PAYLOAD_TOO_LARGE, &message, None);
    };
    apart_heavy(state, move |state| {
        let replaces = Some(query.get("replaces")).filter(|id| !id.is_empty());
        receive(state, &author, bytes, replaces).unwrap_or_else(|error| failed(state, &error))
    })
    .await
}

async fn read(body: Body, most: usize) -> Option<Vec<u8>> {
    to_bytes(body, most).await.ok().map(Into::into)
}

/// What is seen at once is answered at once; the rest waits for the worker.
fn receive(
    state: &State,
    author: &Author,
    bytes: Vec<u8>,
    replaces: Option<&str>,
) -> Result<Response, Error> {
    let limits = Limits { file_bytes: state.limits.bundle_bytes, ..Limits::default() };
    let bundle = Bundle::parse(bytes, &limits)?;
    let signature = bundle.check_signature()?;
    if signature.public_key() != author.public_key {
        return Ok(failure(
            StatusCode::FORBIDDEN,
            "the bundle is signed with another key than the author's",
            Some("sign it with the key that the board's owner knows"),
        ));
    }
    if let Some(id) = replaces {
        let is_own = |entry: &Entry| entry.author == author.name;
        if !state.store.entry(id)?.as_ref().is_some_and(is_own) {
            return Err(Error::input("the entry to be replaced is not one of this author"));
        }
    }
    let queued: i64 = state
        .store
        .count_submissions()?
        .iter()
        .filter(|(kind, _)| *kind == crate::store::SubmissionState::Queued)
        .map(|(_, count)| count)
        .sum();
    if queued >= state.limits.queue {
        return Ok(slow_down("too many submissions wait to be verified"));
    }
    // The address is that of the manifest: a file that was damaged on its way must not become the answer to the whole one.
    bundle.check_blobs()?;
    Ok(match state.store.receive(&bundle, author, replaces)? {
        Received::New(submission) => {
            state.bell.ring();
            json_answer(StatusCode::ACCEPTED, &json!(submission))
        }
        Received::Known(submission) => json_answer(StatusCode::OK, &json!(submission)),
        Received::Foreign => {
            failure(StatusCode::CONFLICT, "somebody else submitted this bundle", None)
        }
    })
}

async fn withdraw(
    Shared(state): Server,
    Extension(peer): Extension<Peer>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Response {
    apart(state, move |state| {
        let author = match author(state, &headers, peer) {
            Ok(author) => author,
            Err(response) => return *response,
        };
        let done = state.store.withdraw(&id, Some(&author.name)).and_then(|entry| {
            if let Some(board) = state.store.board(&entry.board())? {
                state.store.rank(&board)?;
            }
            Ok(Some(json!({ "run": shown(&entry) })))
        });
        told(state, done)
    })
    .await
}
