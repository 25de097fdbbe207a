//! Requests and what is answered.

use super::peer::Peer;
use super::reply::{answer, apart, apart_heavy, failed, failure, slow_down};
use super::{State, api};
use crate::pages::{MAX_RUNS, Pages, Query, Route, policy, searched};
use crate::store::Shelf;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State as Shared};
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::{Method, StatusCode};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{any, get};
use axum::{Extension, Router};
use serde_json::json;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// For a whole request, its body included.
const REQUEST_TIME: Duration = Duration::from_secs(60);
/// Longer addresses are refused.
const MAX_ADDRESS: usize = 2048;

pub(super) fn router(state: Arc<State>) -> Router {
    Router::new()
        .route("/metrics", get(metrics))
        .route("/healthz", get(healthz))
        .nest("/api/v1", api::router())
        .fallback(any(page))
        .layer(middleware::from_fn_with_state(state.clone(), around))
        .with_state(state)
}

/// Who asks: the peer, or whom the proxy before us names last.
fn asker(state: &State, peer: Peer, headers: &HeaderMap) -> IpAddr {
    if !state.behind_proxy {
        return peer.0;
    }
    let named = headers.get_all("x-forwarded-for").iter().next_back();
    let last = named.and_then(|value| value.to_str().ok()?.rsplit(',').next()?.trim().parse().ok());
    last.unwrap_or(peer.0)
}

/// What holds for every request: limits, time, headers, a line in the log.
async fn around(
    Shared(state): Shared<Arc<State>>,
    Extension(peer): Extension<Peer>,
    mut request: Request,
    next: Next,
) -> Response {
    let began = Instant::now();
    let method = request.method().clone();
    // Neither the question nor a header is logged: they may hold what is nobody's business.
    let path: String = request.uri().path().chars().take(200).collect();
    let address = asker(&state, peer, request.headers());
    request.extensions_mut().insert(Peer(address));
    let is_long = request.uri().to_string().len() > MAX_ADDRESS;
    let per_second = state.limits.requests_per_second;
    let mut response = if is_long {
        failure(StatusCode::URI_TOO_LONG, "the address is too long", None)
    } else if !state.limiter.take(&address.to_string(), per_second, began) {
        state.metrics.limited.fetch_add(1, Ordering::Relaxed);
        slow_down("too many requests from this address")
    } else {
        match tokio::time::timeout(REQUEST_TIME, next.run(request)).await {
            Ok(response) => response,
            Err(_) => failure(StatusCode::REQUEST_TIMEOUT, "the request took too long", None),
        }
    };
    guard(response.headers_mut());
    let status = response.status().as_u16();
    state.metrics.answered(status, began.elapsed());
    // Pages that were read are counted; what was changed, refused or went wrong is told.
    if status >= 400 || method != Method::GET {
        state.log(&json!({
            "event": "request",
            "method": method.as_str(),
            "path": path,
            "status": status,
            "address": address.to_string(),
            "ms": began.elapsed().as_secs_f64() * 1e3,
        }));
    }
    response
}

/// Headers of every answer.
fn guard(headers: &mut HeaderMap) {
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("permissions-policy", "camera=(), geolocation=(), microphone=()"),
    ] {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    let policy = format!("{}; frame-ancestors 'none'", policy());
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
}

async fn page(Shared(state): Shared<Arc<State>>, request: Request) -> Response {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut response = failure(StatusCode::METHOD_NOT_ALLOWED, "pages are only read", None);
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    let path = request.uri().path().trim_start_matches('/').to_string();
    let text = request.uri().query().unwrap_or_default().to_string();
    let query = Query::parse(&text);
    if path == "compare/" {
        return compare(&query);
    }
    if path == "matrix/" {
        return matrix(&state, Query::all(&text, "run"));
    }
    let Some(route) = Route::parse(&path) else {
        return match Route::parse(&format!("{path}/")) {
            Some(route) => redirect(&format!("/{}", route.path())),
            None => apart(state, not_found).await,
        };
    };
    let query = query.for_page(&route);
    let generation = match state.generation() {
        Ok(generation) => generation,
        Err(error) => return failed(&state, &error),
    };
    let address = format!("{path}{}", query.with(&[]));
    if let Some(page) = state.cache.get(generation, &address) {
        state.metrics.cache_hits.fetch_add(1, Ordering::Relaxed);
        return html(StatusCode::OK, page);
    }
    let is_heavy = route.is_heavy();
    let work = move |state: &State| {
        if matches!(route, Route::Dataset | Route::Shelves(Shelf::Operation))
            && !query.get("op").is_empty()
        {
            match searched(&state.store, query.get("op")) {
                Ok(Some(found)) => return redirect(&format!("/{}", found.path())),
                Ok(None) => {}
                Err(error) => return failed(state, &error),
            }
        }
        let pages = Pages { store: &state.store, tasks: Some(&state.tasks), is_static: false };
        match pages.write(&route, &query) {
            Ok(Some(page)) => {
                let page = Bytes::from(page);
                state.cache.put(generation, &address, &page);
                html(StatusCode::OK, page)
            }
            Ok(None) => not_found(state),
            Err(error) => failed(state, &error),
        }
    };
    match is_heavy {
        true => apart_heavy(state, work).await,
        false => apart(state, work).await,
    }
}

fn html(status: StatusCode, page: impl Into<Body>) -> Response {
    answer(status, "text/html; charset=utf-8", page)
}

fn not_found(state: &State) -> Response {
    let pages = Pages { store: &state.store, tasks: None, is_static: false };
    html(StatusCode::NOT_FOUND, pages.message("Nothing here", "There is no page at this address."))
}

/// The form of two runs, as the address of their page.
fn compare(query: &Query) -> Response {
    let route = Route::Compare(query.get("one").into(), query.get("two").into());
    match Route::parse(&route.path()) {
        Some(route) => redirect(&format!("/{}", route.path())),
        None => failure(StatusCode::BAD_REQUEST, "two runs are to be named", None),
    }
}

/// The boxes of a ranking, as the address of the page of those that were chosen.
fn matrix(state: &State, chosen: Vec<String>) -> Response {
    match Route::parse(&Route::Matrix(chosen, 1).path()) {
        Some(route) => redirect(&format!("/{}", route.path())),
        None => {
            let pages = Pages { store: &state.store, tasks: None, is_static: false };
            let text = format!("Choose 2 to {MAX_RUNS} runs of a ranking.");
            html(StatusCode::BAD_REQUEST, pages.message("Runs side by side", &text))
        }
    }
}

fn redirect(path: &str) -> Response {
    let mut response = answer(StatusCode::SEE_OTHER, "text/plain; charset=utf-8", "");
    match HeaderValue::from_str(path) {
        Ok(path) => {
            response.headers_mut().insert(header::LOCATION, path);
            response
        }
        Err(_) => failure(StatusCode::BAD_REQUEST, "no such address", None),
    }
}

async fn metrics(Shared(state): Shared<Arc<State>>) -> Response {
    apart(state, |state| {
        let found = state.store.count_submissions().and_then(|submissions| {
            Ok(state.metrics.text(&submissions, state.store.count_entries()?))
        });
        match found {
            Ok(text) => answer(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", text),
            Err(error) => failed(state, &error),
        }
    })
    .await
}

async fn healthz(Shared(state): Shared<Arc<State>>) -> Response {
    apart(state, |state| match state.store.generation() {
        Ok(_) => answer(StatusCode::OK, "text/plain; charset=utf-8", "ok\n"),
        Err(error) => failed(state, &error),
    })
    .await
}
