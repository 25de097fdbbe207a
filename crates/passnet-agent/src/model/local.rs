//! A model in a process of ours: conversations go in by the batch, replies come out in the same order.
//!
//! Attempts ask one by one; those that ask at about the same time are answered together. The process speaks JSON, one object
//! a line, as `python/passnet/learn/reply.py` says.

use super::{ErrorKind, MAX_REPLY_BYTES, Model, ModelError, Request};
use crate::chat::{Assistant, Message, Reply, Stop, Usage};
use serde::Deserialize;
use serde_json::{Value, json};
use std::fmt;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Whoever asks within this time after another is answered together with it.
const GATHER: Duration = Duration::from_millis(150);
/// Where answers take long it pays to wait longer for company: so much of the last answer's time.
const GATHER_SHARE: u32 = 10;
/// Bytes of one answer, whatever the number of conversations.
const MAX_LINE_BYTES: u64 = 256 << 20;

type Answer = Result<Reply, ModelError>;

/// A question and where its answer goes.
struct Asked {
    messages: Vec<Value>,
    reply: SyncSender<Answer>,
}

/// A model that runs beside us.
pub struct LocalModel {
    /// Closed when this is dropped, which ends the thread and the process.
    questions: Mutex<Option<std::sync::mpsc::Sender<Asked>>>,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for LocalModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalModel").finish_non_exhaustive()
    }
}

/// What the process answers.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Line {
    Ready { ready: bool },
    Replies { replies: Vec<Said> },
    Error { error: String },
}

#[derive(Debug, Deserialize)]
struct Said {
    text: String,
    stop: String,
    input: u64,
    output: u64,
}

struct Process {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl LocalModel {
    /// Starts the process and waits until its model is loaded. At most `batch` conversations are answered at once.
    pub fn start(mut command: Command, batch: usize) -> Result<LocalModel, String> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("does not start: {error}"))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("has no input or no output".into());
        };
        let mut process = Process { child, input, output: BufReader::new(output) };
        match process.read()? {
            Line::Ready { ready: true } => {}
            other => return Err(format!("began with {other:?}")),
        }
        let (questions, waiting) = channel();
        let thread = std::thread::Builder::new()
            .name("local model".into())
            .spawn(move || answer_all(process, &waiting, batch.max(1)))
            .map_err(|error| error.to_string())?;
        Ok(LocalModel { questions: Mutex::new(Some(questions)), thread: Some(thread) })
    }
}

impl Drop for LocalModel {
    fn drop(&mut self) {
        self.questions.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = self.thread.take() {
            // It tells its own failures to those who wait.
            let _ = thread.join();
        }
    }
}

impl Model for LocalModel {
    fn reply(&self, request: &Request<'_>) -> Answer {
        let gone = || ModelError::new(ErrorKind::Connection, "the process of the model has ended");
        let (reply, answer) = sync_channel(1);
        let messages = request.messages.iter().map(plain).collect();
        {
            let questions = self.questions.lock().unwrap_or_else(PoisonError::into_inner);
            let questions = questions.as_ref().ok_or_else(gone)?;
            questions.send(Asked { messages, reply }).map_err(|_| gone())?;
        }
        answer.recv().map_err(|_| gone())?
    }
}

/// The message in text alone: calls of tools stand in the text of such models.
fn plain(message: &Message) -> Value {
    match message {
        Message::System { content } => json!({ "role": "system", "content": content }),
        Message::User { content } => json!({ "role": "user", "content": content }),
        Message::Assistant(reply) => json!({ "role": "assistant", "content": reply.content }),
        Message::Tool { content, .. } => json!({ "role": "user", "content": content }),
    }
}

/// Until nobody can ask any more, or the process fails; then all who wait hear that it has ended.
fn answer_all(mut process: Process, waiting: &Receiver<Asked>, batch: usize) {
    let mut gather = GATHER;
    while let Ok(first) = waiting.recv() {
        let mut asked = vec![first];
        while asked.len() < batch {
            match waiting.recv_timeout(gather) {
                Ok(next) => asked.push(next),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            }
        }
        let conversations: Vec<&Vec<Value>> = asked.iter().map(|one| &one.messages).collect();
        let started = Instant::now();
        let answers = process.ask(&json!({ "conversations": conversations }), asked.len());
        gather = GATHER.max(started.elapsed() / GATHER_SHARE);
        let is_over = matches!(&answers, Err(error) if error.kind == ErrorKind::Connection);
        match answers {
            Ok(said) => asked.into_iter().zip(said).for_each(|(one, said)| {
                // Whoever asked may have been stopped meanwhile.
                let _ = one.reply.send(said.reply());
            }),
            Err(error) => asked.into_iter().for_each(|one| {
                let _ = one.reply.send(Err(error.clone()));
            }),
        }
        if is_over {
            break;
        }
    }
    process.end();
}

impl Process {
    fn ask(&mut self, question: &Value, count: usize) -> Result<Vec<Said>, ModelError> {
        let lost = |error: String| ModelError::new(ErrorKind::Connection, error);
        let line = format!("{question}\n");
        let sent = self.input.write_all(line.as_bytes()).and_then(|()| self.input.flush());
        sent.map_err(|error| lost(error.to_string()))?;
        match self.read().map_err(lost)? {
            Line::Replies { replies } if replies.len() == count => Ok(replies),
            Line::Error { error } => Err(ModelError::new(ErrorKind::BadRequest, error)),
            _ => Err(lost("the process of the model answered something else".into())),
        }
    }

    fn read(&mut self) -> Result<Line, String> {
        let mut line = String::new();
        let read = self.output.by_ref().take(MAX_LINE_BYTES).read_line(&mut line);
        match read {
            Ok(0) => Err("the process of the model has ended; its own words stand above".into()),
            Ok(_) => serde_json::from_str(&line)
                .map_err(|error| format!("the process of the model answered no JSON: {error}")),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Its input closed it ends by itself; one that does not within a while is ended.
    fn end(self) {
        let Process { mut child, input, .. } = self;
        drop(input);
        for _ in 0..50 {
            if matches!(child.try_wait(), Ok(Some(_)) | Err(_)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        // It may have ended just now.
        let _ = child.kill();
        let _ = child.wait();
    }
}

impl Said {
    fn reply(mut self) -> Answer {
        if self.stop == "too_long" {
            let message = format!("the context window is full: {} tokens", self.input);
            return Err(ModelError::new(ErrorKind::BadRequest, message));
        }
        let stop = match (self.text.len() > MAX_REPLY_BYTES, self.stop.as_str()) {
            (true, _) => Stop::Flood,
            (false, "length") => Stop::Length,
            (false, _) => Stop::Done,
        };
        if stop == Stop::Flood {
            self.text.clear();
        }
        let message = Assistant { content: self.text, ..Assistant::default() };
        let usage = Usage { input: self.input, output: self.output, ..Usage::default() };
        Ok(Reply { message, stop, usage })
    }
}
