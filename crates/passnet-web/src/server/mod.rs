//! The server: pages, an interface for machines, submissions.
//!
//! Nobody is trusted: connections, requests and bodies are bounded in number, size and time; what may change something
//! needs a token in a header, never a cookie, so no page of somebody else can send it; every answer carries a policy
//! that allows nothing but what the page brings itself.

mod answers;
mod api;
mod cache;
mod http;
mod limits;
mod metrics;
mod peer;
mod reply;
mod worker;

pub use api::OPENAPI;
pub use limits::{Limiter, ServerLimits};
pub use worker::step;

use crate::Error;
use crate::rejudge::Rejudger;
use crate::store::Store;
use crate::tasks::TaskIndex;
use cache::Cache;
use metrics::Metrics;
use serde_json::{Value, json};
use std::fmt;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, TryLockError};
use std::time::{Duration, Instant};

/// Where lines for whoever watches go.
pub type LogSink = Box<dyn Fn(&Value) + Send + Sync>;

/// How often the store is asked whether something changed.
const FRESH: Duration = Duration::from_millis(200);

/// Pages made from whole bundles that are written at once.
const HEAVY: usize = 3;

/// Everything that requests share.
pub struct State {
    /// Entries and submissions.
    pub store: Store,
    /// Those that entries can be judged again on.
    pub tasks: TaskIndex,
    /// Of requests and submissions.
    pub limits: ServerLimits,
    /// Judges graphs again; without one, nothing is.
    pub rejudger: Option<Box<dyn Rejudger>>,
    /// Whether a proxy stands before the server and says whose requests it brings.
    pub behind_proxy: bool,
    log: LogSink,
    limiter: Limiter,
    cache: Cache,
    metrics: Metrics,
    heavy: Arc<tokio::sync::Semaphore>,
    bell: Bell,
    stopping: AtomicBool,
    generation: AtomicI64,
    asked: Mutex<Option<Instant>>,
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State").field("store", &self.store).finish_non_exhaustive()
    }
}

impl State {
    /// Judges nothing again until `rejudger` is set.
    pub fn new(store: Store, tasks: TaskIndex, limits: ServerLimits, log: LogSink) -> State {
        State {
            store,
            tasks,
            limits,
            rejudger: None,
            behind_proxy: false,
            log,
            limiter: Limiter::default(),
            cache: Cache::new(limits.cache_bytes),
            metrics: Metrics::default(),
            heavy: Arc::new(tokio::sync::Semaphore::new(HEAVY)),
            bell: Bell::default(),
            stopping: AtomicBool::new(false),
            generation: AtomicI64::new(0),
            asked: Mutex::new(None),
        }
    }

    fn log(&self, line: &Value) {
        (self.log)(line);
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// The store's generation, a fraction of a second old at the most. While one asks for it the others go on with the last.
    fn generation(&self) -> Result<i64, Error> {
        let known = self.generation.load(Ordering::Relaxed);
        let mut asked = match self.asked.try_lock() {
            Ok(asked) => asked,
            Err(TryLockError::WouldBlock) if known > 0 => return Ok(known),
            Err(TryLockError::WouldBlock) => {
                self.asked.lock().unwrap_or_else(PoisonError::into_inner)
            }
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        };
        if asked.is_none_or(|asked| asked.elapsed() > FRESH) {
            self.generation.store(self.store.generation()?, Ordering::Relaxed);
            *asked = Some(Instant::now());
        }
        Ok(self.generation.load(Ordering::Relaxed))
    }
}

/// Wakes the worker.
#[derive(Debug, Default)]
struct Bell {
    rung: Mutex<bool>,
    wake: Condvar,
}

impl Bell {
    fn ring(&self) {
        *self.rung.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.wake.notify_one();
    }

    fn wait(&self, most: Duration) {
        let rung = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.wake.wait_timeout_while(rung, most, |rung| !*rung);
        *waited.unwrap_or_else(PoisonError::into_inner).0 = false;
    }
}

/// A server at work.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    state: Arc<State>,
    stop: tokio::sync::watch::Sender<bool>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl Server {
    /// Serves until [`Server::stop`].
    pub fn start(listener: TcpListener, state: State) -> Result<Server, Error> {
        let lacking = |error: std::io::Error| Error::lacking(error.to_string());
        let address = listener.local_addr().map_err(lacking)?;
        listener.set_nonblocking(true).map_err(lacking)?;
        let state = Arc::new(state);
        let (stop, stopped) = tokio::sync::watch::channel(false);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .max_blocking_threads(16)
            .build()
            .map_err(lacking)?;
        let worker = {
            let state = state.clone();
            let thread = std::thread::Builder::new().name("submissions".into());
            // Graphs and passes may be deep.
            thread.stack_size(64 << 20).spawn(move || worker::work(&state)).map_err(lacking)?
        };
        let front = {
            let state = state.clone();
            let thread = std::thread::Builder::new().name("http".into());
            let serve = move || {
                runtime.block_on(http::serve(listener, state, stopped));
                runtime.shutdown_timeout(Duration::from_secs(5));
            };
            thread.spawn(serve).map_err(lacking)?
        };
        state.log(&json!({ "event": "started", "address": address.to_string() }));
        Ok(Server { address, state, stop, threads: vec![front, worker] })
    }

    /// With the port that was found.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What requests share.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Takes no more connections, finishes what was begun, and ends.
    pub fn stop(mut self) {
        self.state.stopping.store(true, Ordering::Relaxed);
        self.state.bell.ring();
        let _ = self.stop.send(true);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        self.state.log(&json!({ "event": "stopped" }));
    }

    /// Waits for the signals that ask a process to end, then stops.
    pub fn run_until_signal(self) -> Result<(), Error> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Error::lacking(error.to_string()))?;
        runtime.block_on(http::until_signal());
        self.stop();
        Ok(())
    }
}
