//! The loop around the scheduler: units out, results in, over whatever bridge there is.

use crate::bridge::{Bridge, Incoming, MOST_WAITING};
use crate::job::{Answer, Job, News};
use crate::message::{FromBridge, Reply, ToBridge};
use crate::scheduler::{Aside, Fault, Limits, Scheduler};
use crate::status::Status;
use std::collections::BTreeSet;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

/// How often somebody looks whether the run is to be stopped.
const TICK: Duration = Duration::from_millis(200);
/// How often watchers hear of the state.
const NEWS: Duration = Duration::from_secs(1);

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// Every unit is done or set aside.
    Done,
    /// Somebody asked for it; units under way were left.
    Stopped,
    /// There are nodes, and none of them may work.
    NoNodes,
    /// The cluster, or the bridge to it, is gone.
    Lost(String),
}

/// How a job went.
#[derive(Debug)]
pub struct Driven {
    /// Why it stopped.
    pub end: End,
    /// The last one.
    pub status: Status,
}

/// A unit on its way.
struct Given<U> {
    number: u64,
    unit: U,
    input: String,
}

struct Driver<'a, J: Job> {
    job: &'a mut J,
    bridge: Bridge,
    limits: Limits,
    scheduler: Scheduler<Given<J::Unit>>,
    /// Digests of contents that the bridge has.
    kept: BTreeSet<String>,
    shared: BTreeSet<String>,
    next_number: u64,
    set_aside: usize,
    working_since: Option<Instant>,
}

/// Works until every unit is done or set aside, or nothing more can be done.
pub fn drive<J: Job>(job: &mut J, bridge: Bridge, limits: Limits) -> Result<Driven, J::Error> {
    let mut driver = Driver {
        job,
        bridge,
        scheduler: Scheduler::new(limits.clone()),
        limits,
        kept: BTreeSet::new(),
        shared: BTreeSet::new(),
        next_number: 0,
        set_aside: 0,
        working_since: None,
    };
    let end = driver.run();
    driver.bridge.send(&ToBridge::Stop, b"");
    let status = driver.status();
    driver.job.news(News::Status(&status));
    Ok(Driven { end: end?, status })
}

impl<J: Job> Driver<'_, J> {
    fn run(&mut self) -> Result<End, J::Error> {
        let mut told = Instant::now();
        let mut hopeless_since = None;
        loop {
            let is_stopped = self.job.is_stopped();
            if !is_stopped {
                self.hand_out()?;
            }
            if self.scheduler.under_way() == 0 {
                if is_stopped {
                    return Ok(End::Stopped);
                }
                if self.scheduler.open() == 0 && self.job.is_over() {
                    return Ok(End::Done);
                }
                // The nodes of a cluster do not all come at the same moment.
                hopeless_since = match self.scheduler.has_hope() {
                    true => None,
                    false => hopeless_since.or(Some(Instant::now())),
                };
                let patience = self.limits.patience;
                if hopeless_since.is_some_and(|since: Instant| since.elapsed() >= patience) {
                    return Ok(End::NoNodes);
                }
            }
            let first = match self.bridge.from.recv_timeout(TICK) {
                Ok(message) => Some(message),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return Ok(End::Lost("it ended".into())),
            };
            let mut lost = None;
            let mut waiting = MOST_WAITING;
            let mut next = first;
            while let Some(message) = next {
                match message {
                    Incoming::Wake => {}
                    // What it said last tells more than that it ended.
                    Incoming::Closed(reason) => lost = lost.or(Some(reason)),
                    Incoming::Bridge(FromBridge::Lost { reason }, _) => lost = Some(reason),
                    Incoming::Bridge(message, payload) => self.hear(message, &payload)?,
                }
                waiting -= 1;
                next = if waiting > 0 { self.bridge.from.try_recv().ok() } else { None };
            }
            // Workers have their next unit while the results of the last are on their way to the disk.
            if !self.job.is_stopped() && lost.is_none() {
                self.hand_out()?;
            }
            self.job.commit()?;
            if let Some(reason) = lost {
                return Ok(End::Lost(reason));
            }
            if told.elapsed() >= NEWS {
                told = Instant::now();
                let status = self.status();
                self.job.news(News::Status(&status));
            }
        }
    }

    /// Gives every idle worker a unit, as far as there are any.
    fn hand_out(&mut self) -> Result<(), J::Error> {
        loop {
            let (job, number) = (&mut *self.job, &mut self.next_number);
            let fresh = || {
                let unit = job.next()?;
                *number += 1;
                Some(Given { number: *number, unit, input: String::new() })
            };
            let Some((worker, given)) = self.scheduler.assign(fresh) else { return Ok(()) };
            let unit = given.number;
            let input = self.job.input(&given.unit)?;
            if let Some(given) = self.scheduler.unit_of_mut(worker) {
                given.input.clone_from(&input.digest);
            }
            if self.kept.insert(input.digest.clone()) {
                let (digest, is_shared) = (input.digest.clone(), input.is_shared);
                self.bridge.send(&ToBridge::Keep { digest, is_shared }, &input.bytes);
            }
            if input.is_shared {
                self.shared.insert(input.digest.clone());
            }
            let start = ToBridge::Start { worker, unit, input: input.digest, words: input.words };
            self.bridge.send(&start, b"");
        }
    }

    fn hear(&mut self, message: FromBridge, payload: &[u8]) -> Result<(), J::Error> {
        match message {
            FromBridge::Joined { node, name } => self.scheduler.joined(&node, &name),
            FromBridge::Left { node, reason } => {
                let asides = self.scheduler.left(&node, &reason);
                self.tell_node(&node, "gone", &reason);
                self.aside(asides)?;
            }
            FromBridge::Ready { worker, node, hello } => {
                let admitted = self.job.admit(&hello);
                match admitted.and_then(|()| self.scheduler.ready(worker, &node, hello.noise)) {
                    Ok(()) => self.working_since = self.working_since.or(Some(Instant::now())),
                    Err(reason) => self.retire(node, reason)?,
                }
            }
            FromBridge::Refused { node, reason } => self.retire(node, reason)?,
            FromBridge::Done { worker, unit, reply } => self.done(worker, unit, &reply, payload)?,
            FromBridge::Died { worker, reason, by_node } => {
                let fault = if by_node { Fault::Node } else { Fault::Worker };
                let aside = self.scheduler.died(worker, fault, &reason);
                self.aside(aside)?;
            }
            FromBridge::Lost { .. } => {}
        }
        Ok(())
    }

    fn done(
        &mut self,
        worker: u64,
        unit: u64,
        reply: &Reply,
        payload: &[u8],
    ) -> Result<(), J::Error> {
        let Some(given) = self.scheduler.unit_of(worker).filter(|given| given.number == unit)
        else {
            return Ok(());
        };
        let node = self.scheduler.node_of(worker).unwrap_or_default();
        let name = self.scheduler.name_of(node);
        let fault = match &reply.fault {
            Some(fault) => Err(fault.clone()),
            None => {
                let answer = Answer { node: &name, input: &given.input, reply, files: payload };
                self.job.accept(&given.unit, &answer)?
            }
        };
        match fault {
            Ok(()) => {
                if let Some(given) = self.scheduler.finished(worker) {
                    self.forget(&given.input);
                }
            }
            Err(reason) => {
                let reason = format!("{name}: {reason}");
                let (node, aside) = self.scheduler.faulted(worker, &reason);
                self.aside(aside)?;
                if let Some(node) = node {
                    self.retire(node, format!("it failed again and again, last: {reason}"))?;
                }
            }
        }
        Ok(())
    }

    /// A node gets nothing any more, and its name and the reason are told.
    fn retire(&mut self, node: String, reason: String) -> Result<(), J::Error> {
        let asides = self.scheduler.set_aside(&node, &reason);
        self.tell_node(&node, "set aside", &reason);
        self.bridge.send(&ToBridge::Retire { node, reason }, b"");
        self.aside(asides)
    }

    fn tell_node(&mut self, node: &str, what: &str, reason: &str) {
        let name = self.scheduler.name_of(node);
        self.job.news(News::Node { name: &name, what, reason });
    }

    fn aside(
        &mut self,
        asides: impl IntoIterator<Item = Aside<Given<J::Unit>>>,
    ) -> Result<(), J::Error> {
        for Aside { unit, reasons } in asides {
            self.set_aside += 1;
            self.forget(&unit.input);
            self.job.set_aside(Aside { unit: unit.unit, reasons })?;
        }
        Ok(())
    }

    /// The bridge need not keep the content of a unit that is over.
    fn forget(&mut self, digest: &str) {
        if !self.shared.contains(digest) && self.kept.remove(digest) {
            self.bridge.send(&ToBridge::Drop { digest: digest.into() }, b"");
        }
    }

    fn status(&self) -> Status {
        let (total, known) = self.job.total();
        let status = Status {
            known,
            done: self.scheduler.done(),
            under_way: self.scheduler.under_way(),
            set_aside: self.set_aside,
            total,
            units_per_second: 0.0,
            seconds_left: None,
            nodes: self.scheduler.nodes().collect(),
        };
        status.after(self.working_since.map_or(Duration::ZERO, |since| since.elapsed()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame;
    use crate::job::Input;
    use crate::message::Hello;
    use serde_json::Value;
    use std::convert::Infallible;
    use std::io::{BufReader, Read, Write};

    /// A job of some units, which notes what it is asked for; without a number it waits for some.
    #[derive(Default)]
    struct Noting {
        units: Option<u32>,
        given: u32,
        notes: Vec<String>,
    }

    impl Job for Noting {
        type Unit = u32;
        type Error = Infallible;

        fn next(&mut self) -> Option<u32> {
            let unit = self.given + 1;
            self.units.filter(|units| unit <= *units)?;
            self.given = unit;
            Some(unit)
        }

        fn is_over(&self) -> bool {
            self.units == Some(self.given)
        }

        fn total(&self) -> (Option<u64>, u64) {
            (None, 0)
        }

        fn input(&mut self, unit: &u32) -> Result<Input, Infallible> {
            self.notes.push(format!("give {unit}"));
            Ok(Input::new(unit.to_le_bytes().to_vec(), Value::Null))
        }

        fn admit(&mut self, _: &Hello) -> Result<(), String> {
            Ok(())
        }

        fn accept(&mut self, unit: &u32, _: &Answer<'_>) -> Result<Result<(), String>, Infallible> {
            self.notes.push(format!("take {unit}"));
            Ok(Ok(()))
        }

        fn commit(&mut self) -> Result<(), Infallible> {
            self.notes.push("commit".into());
            Ok(())
        }

        fn set_aside(&mut self, _: Aside<u32>) -> Result<(), Infallible> {
            Ok(())
        }

        fn is_stopped(&self) -> bool {
            false
        }

        fn news(&mut self, _: News<'_>) {}
    }

    #[test]
    fn what_a_bridge_says_last_is_the_reason() {
        let end = |said: &'static str| {
            let bridge = Bridge::new(std::io::sink(), said.as_bytes()).unwrap();
            let Ok(driven) = drive(&mut Noting::default(), bridge, Limits::default());
            driven.end
        };
        let said = "{\"is\":\"lost\",\"reason\":\"no Ray here\"}\n";
        assert_eq!(end(said), End::Lost("no Ray here".into()));
        assert_eq!(end(""), End::Lost("it ended".into()));
        assert!(matches!(end("!!\n"), End::Lost(_)));
    }

    /// A worker that answers at once, at the other end of a driver's pipes.
    fn answer_all(from: impl Read, mut to: impl Write) {
        let hello = Hello {
            program: String::new(),
            build: String::new(),
            class: String::new(),
            identity: Value::Null,
            noise: None,
        };
        let ready = FromBridge::Ready { worker: 0, node: "a".into(), hello };
        frame::write(&mut to, &ready, b"").unwrap();
        let mut from = BufReader::new(from);
        while let Some((message, _)) = frame::read::<ToBridge>(&mut from).unwrap() {
            if let ToBridge::Start { worker, unit, .. } = message {
                let reply = Reply { fault: None, words: Value::Null, seconds: 0.0, waited: None };
                frame::write(&mut to, &FromBridge::Done { worker, unit, reply }, b"").unwrap();
            }
        }
    }

    /// A head that takes no units is known before the nodes that do.
    #[test]
    fn a_node_of_no_use_ends_a_run_only_when_no_other_joins() {
        let refused = FromBridge::Refused { node: "head".into(), reason: "no core".into() };
        let end = |another_joins: bool, patience| {
            let ((from_us, to_them), (from_them, mut to_us)) =
                (std::io::pipe().unwrap(), std::io::pipe().unwrap());
            let mut job = Noting { units: Some(1), ..Noting::default() };
            let bridge = Bridge::new(to_them, from_them).unwrap();
            frame::write(&mut to_us, &refused, b"").unwrap();
            let others = std::thread::spawn(move || match another_joins {
                true => answer_all(from_us, to_us),
                // Nobody else comes, but the bridge stays until the driver ends.
                false => {
                    let mut from = BufReader::new(from_us);
                    while let Ok(Some(_)) = frame::read::<ToBridge>(&mut from) {}
                    drop(to_us);
                }
            });
            let Ok(driven) = drive(&mut job, bridge, Limits { patience, ..Limits::default() });
            others.join().unwrap();
            driven.end
        };
        assert_eq!(end(false, Duration::ZERO), End::NoNodes);
        assert_eq!(end(true, Duration::MAX), End::Done);
    }

    #[test]
    fn a_worker_has_its_next_unit_before_the_disk_has_the_last_result() {
        let ((from_us, to_them), (from_them, to_us)) =
            (std::io::pipe().unwrap(), std::io::pipe().unwrap());
        let mut job = Noting { units: Some(3), ..Noting::default() };
        let bridge = Bridge::new(to_them, from_them).unwrap();
        let worker = std::thread::spawn(move || answer_all(from_us, to_us));
        let Ok(driven) = drive(&mut job, bridge, Limits::default());
        worker.join().unwrap();
        assert_eq!((driven.end, driven.status.done), (End::Done, 3));
        let order: Vec<&str> = job.notes.iter().map(|note| &**note).collect();
        let after_first = order.iter().position(|note| *note == "take 1").unwrap();
        assert_eq!(order[after_first..after_first + 3], ["take 1", "give 2", "commit"]);
        assert_eq!(*order.last().unwrap(), "commit", "nothing that was taken is left unwritten");
    }
}
