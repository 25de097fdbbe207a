//! The environment server: tasks as episodes over HTTP, for trainers in any language.
//!
//! ```text
//! POST /v1/reset  {"task"}                          a new episode: its id, prompt and tools
//! POST /v1/step   {"episode", "calls" | "text"}     do what a reply asks: observations, reward, done
//! POST /v1/score  {"episode"}                       the best version so far, with its files
//! POST /v1/close  {"episode"}                       forget it
//! GET  /v1/tasks, /v1/health
//! ```
//!
//! `openenv` serves the same episodes to clients of OpenEnv and of the Model Context Protocol.
//!
//! Many episodes at once; their evaluations stand in one line for each device, so that timing stays undisturbed. On other addresses
//! than this machine's own the server wants a token.

mod episodes;
mod http;
mod openenv;
mod websocket;

pub use episodes::ServerLimits;

use crate::evaluator::Evaluator;
use crate::prompt::Prompts;
use crate::secrets::Secret;
use crate::task::Task;
use episodes::Episodes;
use http::{Answer, Failure, Request};
use openenv::OpenEnv;
use serde_json::json;
use std::io::BufReader;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;

/// Threads of connections mostly wait.
const STACK_BYTES: usize = 1 << 20;

/// A server that answers until it is dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    episodes: Arc<Episodes>,
    openenv: OpenEnv,
    token: Option<Secret>,
    is_local: bool,
    connections: AtomicUsize,
    max_connections: usize,
    is_stopping: AtomicBool,
}

impl Server {
    /// Listens; without a token only on this machine's own addresses.
    pub fn start(
        listener: TcpListener,
        tasks: Vec<Arc<Task>>,
        evaluator: Arc<Evaluator>,
        prompts: &Prompts,
        limits: ServerLimits,
        token: Option<Secret>,
    ) -> std::io::Result<Server> {
        let address = listener.local_addr()?;
        if !address.ip().is_loopback() && token.is_none() {
            return Err(std::io::Error::new(
                std::io::ErrorKind::PermissionDenied,
                "an address that others can reach needs a token",
            ));
        }
        let max_connections = limits.connections;
        let episodes = Arc::new(Episodes::new(tasks, evaluator, prompts, limits));
        let shared = Arc::new(Shared {
            openenv: OpenEnv::new(episodes.clone()),
            episodes,
            token,
            is_local: address.ip().is_loopback(),
            connections: AtomicUsize::new(0),
            max_connections,
            is_stopping: AtomicBool::new(false),
        });
        let acceptor = {
            let shared = shared.clone();
            std::thread::Builder::new()
                .name("environment".into())
                .spawn(move || shared.accept(&listener))?
        };
        Ok(Server { address, shared, acceptor: Some(acceptor) })
    }

    /// With the port that was found.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Episodes that are open now.
    pub fn open_episodes(&self) -> usize {
        self.shared.episodes.count()
    }

    /// Waits for ever, or until the listener fails.
    pub fn wait(mut self) {
        if let Some(acceptor) = self.acceptor.take() {
            // A panic of the acceptor is reported by its thread.
            let _ = acceptor.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.is_stopping.store(true, Ordering::Relaxed);
        if let Some(acceptor) = self.acceptor.take() {
            // Wakes the acceptor; if that fails it has gone already.
            let _ = TcpStream::connect(self.address);
            let _ = acceptor.join();
        }
    }
}

impl Shared {
    fn accept(self: &Arc<Self>, listener: &TcpListener) {
        for stream in listener.incoming() {
            if self.is_stopping.load(Ordering::Relaxed) {
                return;
            }
            let Ok(mut stream) = stream else {
                // Out of descriptors, most likely: others must finish first.
                std::thread::sleep(std::time::Duration::from_millis(20));
                continue;
            };
            if self.connections.fetch_add(1, Ordering::AcqRel) >= self.max_connections {
                self.connections.fetch_sub(1, Ordering::AcqRel);
                let busy = Failure::busy("too many connections");
                // Whoever is turned away need not listen.
                let _ = http::write(&mut stream, &busy.into(), false);
                continue;
            }
            let shared = self.clone();
            let serve = move || {
                shared.serve(stream);
                shared.connections.fetch_sub(1, Ordering::AcqRel);
            };
            if std::thread::Builder::new().stack_size(STACK_BYTES).spawn(serve).is_err() {
                self.connections.fetch_sub(1, Ordering::AcqRel);
            }
        }
    }

    /// All requests of one connection.
    fn serve(&self, mut stream: TcpStream) {
        let Ok(reading) = stream.try_clone() else { return };
        // Answers are small and wanted now; who does not take them is not waited for.
        let _ = stream.set_nodelay(true);
        let _ = stream.set_write_timeout(Some(http::PATIENCE));
        let mut reader = BufReader::new(reading);
        loop {
            let (answer, keep) = match http::read(&mut reader) {
                Ok(None) => return,
                Ok(Some(request)) => match self.talk(&mut reader, &request) {
                    Some(Ok(())) => return,
                    Some(Err(failure)) => (failure.into(), false),
                    None => {
                        (self.answer(&request).unwrap_or_else(Answer::from), request.keep_alive)
                    }
                },
                Err(failure) => (failure.into(), false),
            };
            if http::write(&mut stream, &answer, keep).is_err() || !keep {
                return;
            }
        }
    }

    /// Speaks WebSocket to the end, if that is what a request asks for.
    fn talk(
        &self,
        reader: &mut BufReader<TcpStream>,
        request: &Request,
    ) -> Option<Result<(), Failure>> {
        let key = request.websocket_key.as_deref()?;
        let is_rpc = match request.path.as_str() {
            "/ws" => false,
            "/mcp" => true,
            _ => return None,
        };
        let mut talk = || {
            self.admit(request)?;
            let (session, is_own) = self.openenv.attach(request)?;
            let done = websocket::serve(reader, key, |text| match is_rpc {
                true => Some(self.openenv.rpc_message(&session, text)),
                false => self.openenv.message(&session, text),
            });
            if is_own {
                self.openenv.detach(&session);
            }
            websocket::part(reader);
            done
        };
        Some(talk())
    }

    fn answer(&self, request: &Request) -> Result<Answer, Failure> {
        self.admit(request)?;
        if let Some(answer) = self.openenv.answer(request) {
            return answer;
        }
        let body = match (request.method.as_str(), request.path.as_str()) {
            ("GET", "/v1/health") => {
                let (count, engine) = (self.episodes.count(), self.episodes.engine());
                Ok(json!({ "ok": true, "episodes": count, "engine": engine }))
            }
            ("GET", "/v1/tasks") => Ok(self.episodes.tasks()),
            ("POST", "/v1/reset") => self.episodes.reset(&request.json()?),
            ("POST", "/v1/step") => self.episodes.step(&request.json()?),
            ("POST", "/v1/score") => self.episodes.score(&request.json()?),
            ("POST", "/v1/close") => self.episodes.close(&request.json()?),
            _ => Err(Failure::new(404, "there is no such address")),
        };
        body.map(Answer::from)
    }

    /// A page in a browser must not drive the server, and strangers need the token.
    fn admit(&self, request: &Request) -> Result<(), Failure> {
        let is_own_name = |host: &str| {
            let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
            matches!(name, "localhost" | "127.0.0.1" | "[::1]")
        };
        if self.is_local && !request.host.as_deref().is_some_and(is_own_name) || request.has_origin
        {
            return Err(Failure::new(403, "not for browsers or other hosts"));
        }
        let expected = self.token.as_ref().map(|token| format!("Bearer {}", token.expose()));
        match expected {
            Some(expected) if request.authorization.as_deref() != Some(&expected) => {
                Err(Failure::new(401, "the token is missing or wrong"))
            }
            _ => Ok(()),
        }
    }
}
