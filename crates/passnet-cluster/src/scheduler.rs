//! Who works on what: a value that hears of events and decides, and does nothing itself.
//!
//! A worker has one unit at a time. A unit whose worker dies goes to another one, before units that nobody had yet; one that
//! killed two workers is set aside, with the reasons. A node that fails again and again, that is too noisy for a clock or
//! unlike the others gets nothing any more, and is named. Nothing is kept about a unit that is done: memory is that of the
//! units under way.

use crate::status::{NodeState, NodeStatus};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

/// After how many faults a unit or a node is set aside, and how long a run waits.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// A unit is set aside when its deaths weigh so much.
    pub unit_weight: u32,
    /// Failures of a node, without a success between them, after which it gets nothing any more.
    pub node_faults: u32,
    /// Noise above which a node's clock is not believed.
    pub noise: f64,
    /// How long a run without a node that may work waits for others to join.
    pub patience: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { unit_weight: 4, node_faults: 3, noise: 0.25, patience: Duration::from_secs(10) }
    }
}

/// Why a unit has no result yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Its worker ended, and the node did not: most likely the unit's own doing.
    Worker,
    /// The node is gone, or the worker says that its machine failed: most likely not.
    Node,
}

impl Fault {
    /// With the usual limit of 4, two deaths of workers or four losses of nodes set a unit aside.
    fn weight(self) -> u32 {
        match self {
            Fault::Worker => 2,
            Fault::Node => 1,
        }
    }
}

/// A unit that is not tried again in this run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Aside<U> {
    /// What is not tried again.
    pub unit: U,
    /// One for each try.
    pub reasons: Vec<String>,
}

/// A unit that was tried.
#[derive(Debug)]
struct Tried<U> {
    unit: U,
    weight: u32,
    reasons: Vec<String>,
}

#[derive(Debug)]
struct Worker<U> {
    node: String,
    unit: Option<Tried<U>>,
}

#[derive(Debug)]
struct Node {
    name: String,
    state: NodeState,
    workers: BTreeSet<u64>,
    done: u64,
    faults: u32,
    noise: Option<f64>,
}

/// See the module.
#[derive(Debug)]
pub struct Scheduler<U> {
    limits: Limits,
    nodes: BTreeMap<String, Node>,
    workers: BTreeMap<u64, Worker<U>>,
    idle: VecDeque<u64>,
    /// Units that lost their worker.
    again: VecDeque<Tried<U>>,
    under_way: usize,
    done: u64,
}

impl<U> Scheduler<U> {
    /// Without nodes and units.
    pub fn new(limits: Limits) -> Self {
        Scheduler {
            limits,
            nodes: BTreeMap::new(),
            workers: BTreeMap::new(),
            idle: VecDeque::new(),
            again: VecDeque::new(),
            under_way: 0,
            done: 0,
        }
    }

    /// A node is there, and its workers are being started. One that was set aside stays so.
    pub fn joined(&mut self, node: &str, name: &str) {
        let fresh = Node {
            name: name.into(),
            state: NodeState::Starting,
            workers: BTreeSet::new(),
            done: 0,
            faults: 0,
            noise: None,
        };
        let known = self.nodes.entry(node.into()).or_insert(fresh);
        if let NodeState::Gone { .. } = known.state {
            known.state = NodeState::Starting;
        }
    }

    /// A worker waits for units. The error says why its node gets none.
    pub fn ready(&mut self, worker: u64, node: &str, noise: Option<f64>) -> Result<(), String> {
        self.joined(node, node);
        let Some(known) = self.nodes.get_mut(node) else { return Ok(()) };
        if let NodeState::Aside { reason } = &known.state {
            return Err(reason.clone());
        }
        known.noise = known.noise.into_iter().chain(noise).reduce(f64::max);
        if let Some(noise) = noise
            && noise > self.limits.noise
        {
            return Err(format!(
                "too noisy for a clock: eager against itself differs by {:.0} %, at most {:.0} % is allowed",
                noise * 100.0,
                self.limits.noise * 100.0
            ));
        }
        known.state = NodeState::Working;
        known.workers.insert(worker);
        self.workers.insert(worker, Worker { node: node.into(), unit: None });
        self.idle.push_back(worker);
        Ok(())
    }

    /// Gives the next idle worker a unit: one that lost its worker, or a fresh one.
    pub fn assign(&mut self, fresh: impl FnOnce() -> Option<U>) -> Option<(u64, &U)> {
        let worker = *self.idle.front()?;
        let new = |unit| Tried { unit, weight: 0, reasons: Vec::new() };
        let tried = self.again.pop_front().or_else(|| fresh().map(new))?;
        self.idle.pop_front();
        self.under_way += 1;
        let slot = &mut self.workers.get_mut(&worker)?.unit;
        Some((worker, &slot.insert(tried).unit))
    }

    /// The worker's unit is done; `None` where it has none, as when the node was given up meanwhile.
    pub fn finished(&mut self, worker: u64) -> Option<U> {
        let known = self.workers.get_mut(&worker)?;
        let tried = known.unit.take()?;
        self.under_way -= 1;
        self.done += 1;
        self.idle.push_back(worker);
        if let Some(node) = self.nodes.get_mut(&known.node) {
            node.done += 1;
            node.faults = 0;
        }
        Some(tried.unit)
    }

    /// The machine could not do the unit; the worker lives. Gives the node that is to be set aside for it, if it is, and
    /// the unit, if it is not tried again.
    pub fn faulted(&mut self, worker: u64, reason: &str) -> (Option<String>, Option<Aside<U>>) {
        let Some(known) = self.workers.get_mut(&worker) else { return (None, None) };
        let Some(tried) = known.unit.take() else { return (None, None) };
        let node = known.node.clone();
        self.idle.push_back(worker);
        let aside = self.take_back(tried, Fault::Node, reason);
        let faults = self.nodes.get_mut(&node).map_or(0, |node| {
            node.faults += 1;
            node.faults
        });
        ((faults >= self.limits.node_faults).then_some(node), aside)
    }

    /// A worker is gone.
    pub fn died(&mut self, worker: u64, fault: Fault, reason: &str) -> Option<Aside<U>> {
        let gone = self.workers.remove(&worker)?;
        self.idle.retain(|other| *other != worker);
        if let Some(node) = self.nodes.get_mut(&gone.node) {
            node.workers.remove(&worker);
        }
        self.take_back(gone.unit?, fault, &format!("{}: {reason}", self.name_of(&gone.node)))
    }

    /// A node is gone with all its workers.
    pub fn left(&mut self, node: &str, reason: &str) -> Vec<Aside<U>> {
        self.empty(node, NodeState::Gone { reason: reason.into() })
    }

    /// A node gets nothing any more; what its workers have goes to others.
    pub fn set_aside(&mut self, node: &str, reason: &str) -> Vec<Aside<U>> {
        self.joined(node, node);
        self.empty(node, NodeState::Aside { reason: reason.into() })
    }

    fn empty(&mut self, node: &str, state: NodeState) -> Vec<Aside<U>> {
        let Some(known) = self.nodes.get_mut(node) else { return Vec::new() };
        let reason = state.reason().to_string();
        if !matches!(known.state, NodeState::Aside { .. }) {
            known.state = state;
        }
        let workers = std::mem::take(&mut known.workers);
        let died = |worker| self.died(worker, Fault::Node, &reason);
        workers.into_iter().filter_map(died).collect()
    }

    fn take_back(&mut self, mut tried: Tried<U>, fault: Fault, reason: &str) -> Option<Aside<U>> {
        self.under_way -= 1;
        tried.weight += fault.weight();
        tried.reasons.push(reason.into());
        if tried.weight >= self.limits.unit_weight {
            return Some(Aside { unit: tried.unit, reasons: tried.reasons });
        }
        self.again.push_back(tried);
        None
    }

    /// Units that a worker has, or that wait for another one.
    pub fn open(&self) -> usize {
        self.under_way + self.again.len()
    }

    pub(crate) fn under_way(&self) -> usize {
        self.under_way
    }

    pub(crate) fn done(&self) -> u64 {
        self.done
    }

    /// The unit that a worker has.
    pub fn unit_of(&self, worker: u64) -> Option<&U> {
        Some(&self.workers.get(&worker)?.unit.as_ref()?.unit)
    }

    pub(crate) fn unit_of_mut(&mut self, worker: u64) -> Option<&mut U> {
        Some(&mut self.workers.get_mut(&worker)?.unit.as_mut()?.unit)
    }

    pub(crate) fn name_of(&self, node: &str) -> String {
        self.nodes.get(node).map_or_else(|| node.to_string(), |known| known.name.clone())
    }

    pub(crate) fn node_of(&self, worker: u64) -> Option<&str> {
        self.workers.get(&worker).map(|worker| &*worker.node)
    }

    /// Whether some node works, or may still begin to.
    pub fn has_hope(&self) -> bool {
        let may_work = |node: &Node| matches!(node.state, NodeState::Starting | NodeState::Working);
        self.nodes.is_empty() || self.nodes.values().any(may_work)
    }

    /// Those that were ever seen.
    pub fn nodes(&self) -> impl Iterator<Item = NodeStatus> {
        self.nodes.values().map(|node| NodeStatus {
            name: node.name.clone(),
            state: node.state.clone(),
            workers: node.workers.len(),
            done: node.done,
            noise: node.noise,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nodes `a`, `b`… with a worker each, numbered from 0.
    fn nodes(count: u64) -> Scheduler<&'static str> {
        let mut scheduler = Scheduler::new(Limits::default());
        for worker in 0..count {
            scheduler.ready(worker, &node(worker), None).unwrap();
        }
        scheduler
    }

    fn node(worker: u64) -> String {
        char::from(b'a' + worker as u8).to_string()
    }

    fn take(scheduler: &mut Scheduler<&'static str>, fresh: &'static str) -> (u64, &'static str) {
        let (worker, unit) = scheduler.assign(|| Some(fresh)).unwrap();
        (worker, *unit)
    }

    #[test]
    fn a_worker_has_one_unit_and_gets_the_next_when_it_is_done() {
        let mut scheduler = nodes(2);
        assert_eq!(take(&mut scheduler, "one"), (0, "one"));
        assert_eq!(take(&mut scheduler, "two"), (1, "two"));
        assert!(scheduler.assign(|| Some("three")).is_none(), "nobody is idle");
        assert_eq!(scheduler.finished(1), Some("two"));
        assert_eq!(scheduler.finished(1), None, "an answer that comes twice counts once");
        assert_eq!(take(&mut scheduler, "three"), (1, "three"));
        assert!(scheduler.assign(|| None).is_none());
        assert_eq!((scheduler.open(), scheduler.done()), (2, 1));
    }

    #[test]
    fn a_unit_that_kills_two_workers_is_set_aside_with_the_reasons() {
        let mut scheduler = nodes(3);
        take(&mut scheduler, "bad");
        assert_eq!(scheduler.died(0, Fault::Worker, "signal 9"), None);
        assert_eq!(take(&mut scheduler, "fresh"), (1, "bad"), "before what nobody had yet");
        let aside = scheduler.died(1, Fault::Worker, "signal 11").unwrap();
        assert_eq!(
            aside,
            Aside { unit: "bad", reasons: vec!["a: signal 9".into(), "b: signal 11".into()] }
        );
        assert_eq!(scheduler.open(), 0);
    }

    #[test]
    fn the_death_of_a_node_is_not_the_units_fault_until_it_happens_four_times() {
        let mut scheduler = nodes(1);
        for round in 1..=4 {
            take(&mut scheduler, "unit");
            let aside = scheduler.left("a", "no heartbeat");
            assert_eq!(aside.len(), usize::from(round == 4));
            scheduler.joined("a", "a");
            scheduler.ready(round, "a", None).unwrap();
        }
    }

    #[test]
    fn what_comes_from_a_node_that_was_given_up_is_not_counted() {
        let mut scheduler = nodes(2);
        take(&mut scheduler, "unit");
        assert!(scheduler.left("a", "partition").is_empty());
        assert_eq!(scheduler.finished(0), None);
        assert_eq!(take(&mut scheduler, "fresh"), (1, "unit"));
        assert_eq!(scheduler.finished(1), Some("unit"));
        assert_eq!(scheduler.done(), 1);
    }

    #[test]
    fn a_noisy_node_gets_nothing_and_is_named() {
        let mut scheduler = nodes(1);
        let said = scheduler.ready(7, "loud", Some(0.6)).unwrap_err();
        assert_eq!(
            said,
            "too noisy for a clock: eager against itself differs by 60 %, at most 25 % is allowed"
        );
        assert!(scheduler.set_aside("loud", &said).is_empty());
        take(&mut scheduler, "one");
        assert!(scheduler.assign(|| Some("two")).is_none());
        assert_eq!(scheduler.ready(8, "loud", Some(0.01)).unwrap_err(), said, "it stays aside");
        let states: Vec<String> =
            scheduler.nodes().map(|node| format!("{} {}", node.name, node.state.word())).collect();
        assert_eq!(states, ["a working", "loud set aside"]);
    }

    #[test]
    fn a_node_that_fails_again_and_again_is_set_aside_and_its_unit_goes_on() {
        let mut scheduler = nodes(2);
        take(&mut scheduler, "other");
        for round in 1..=3 {
            let (worker, _) = take(&mut scheduler, "unit");
            assert_eq!(worker, 1);
            let (node, aside) = scheduler.faulted(1, "no space left on device");
            assert_eq!((node.is_some(), aside), (round == 3, None));
        }
        scheduler.set_aside("b", "no space left on device");
        assert!(scheduler.has_hope());
        assert_eq!(scheduler.finished(0), Some("other"));
        assert_eq!(take(&mut scheduler, "fresh"), (0, "unit"));
        scheduler.set_aside("a", "why not");
        assert!(!scheduler.has_hope());
    }

    #[test]
    fn a_success_clears_a_nodes_record() {
        let mut scheduler = nodes(1);
        for _ in 0..10 {
            take(&mut scheduler, "unit");
            assert_eq!(scheduler.faulted(0, "flicker").0, None);
            take(&mut scheduler, "unit");
            scheduler.finished(0);
        }
    }
}
