//! Connections: how many, how long, how slow.

use super::peer::Peer;
use super::{State, answers};
use axum::Extension;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use serde_json::json;
use std::collections::BTreeMap;
use std::net::{IpAddr, TcpListener};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch::Receiver;

/// A client that takes longer to say what it wants is not listened to.
const HEADER_TIME: Duration = Duration::from_secs(10);
/// No connection lasts longer.
const CONNECTION_TIME: Duration = Duration::from_secs(300);
/// Headers, and what is read ahead.
const BUFFER: usize = 32 << 10;
/// How long open connections may go on when the server stops.
const GRACE: Duration = Duration::from_secs(10);

/// Connections by address.
#[derive(Debug, Default)]
struct Open(Mutex<BTreeMap<IpAddr, usize>>);

impl Open {
    /// One more of an address; `None` where there are too many.
    fn enter(self: &Arc<Self>, address: IpAddr, state: &Arc<State>) -> Option<Seat> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = open.values().sum();
        let mine = open.entry(address).or_default();
        if all >= state.limits.connections || *mine >= state.limits.connections_per_address {
            state.metrics.refused_connections.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        *mine += 1;
        state.metrics.connections.fetch_add(1, Ordering::Relaxed);
        Some(Seat { open: self.clone(), state: state.clone(), address })
    }
}

/// A connection that is counted while it lasts.
struct Seat {
    open: Arc<Open>,
    state: Arc<State>,
    address: IpAddr,
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut open = self.open.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mine) = open.get_mut(&self.address) {
            *mine -= 1;
            if *mine == 0 {
                open.remove(&self.address);
            }
        }
        self.state.metrics.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

pub(super) async fn serve(listener: TcpListener, state: Arc<State>, mut stop: Receiver<bool>) {
    let listener = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => {
            state.log(&json!({ "event": "cannot_listen", "error": error.to_string() }));
            return;
        }
    };
    let router = answers::router(state.clone());
    let open = Arc::new(Open::default());
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.changed() => break,
        };
        // What has ended is forgotten.
        while connections.try_join_next().is_some() {}
        let (stream, address) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Out of file descriptors, for instance: those that are open will end.
                state.log(&json!({ "event": "accept_failed", "error": error.to_string() }));
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let address = address.ip().to_canonical();
        let Some(seat) = open.enter(address, &state) else { continue };
        // Answers are small: nothing waits for more to send.
        let _ = stream.set_nodelay(true);
        let service = TowerToHyperService::new(router.clone().layer(Extension(Peer(address))));
        let mut stop = stop.clone();
        connections.spawn(async move {
            let _seat = seat;
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEADER_TIME)
                .max_buf_size(BUFFER)
                .serve_connection(TokioIo::new(stream), service);
            let mut connection = std::pin::pin!(connection);
            // A broken connection is the client's affair.
            tokio::select! {
                _ = tokio::time::timeout(CONNECTION_TIME, connection.as_mut()) => return,
                _ = stop.changed() => connection.as_mut().graceful_shutdown(),
            }
            let _ = tokio::time::timeout(GRACE, connection).await;
        });
    }
    drop(listener);
    let _ = tokio::time::timeout(GRACE, async { while connections.join_next().await.is_some() {} })
        .await;
}

/// Waits for SIGINT or SIGTERM.
pub(super) async fn until_signal() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
            }
            return;
        }
    }
    let _ = tokio::signal::ctrl_c().await;
}
