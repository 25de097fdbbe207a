//! Where a loop runs: in the kernel of what it reads, where it may, or in one of its own.

use super::{MAX_READS, MAX_WEIGHT, Walk};
use crate::fusion::kernels::KernelId;
use crate::fusion::lifetimes::BufferId;
use crate::fusion::work::{Reading, Space};
use smallvec::SmallVec;

/// How many earlier readers of a buffer are tried as partners.
const PARTNERS: usize = 4;

/// Kernels that a loop might run in: the last operation of each, and the buffer that is read from it.
type Candidates = SmallVec<[(u32, KernelId, BufferId); 4]>;
/// Buffers that a loop reads and that are computed in its own kernel.
type Joined = SmallVec<[BufferId; 4]>;
/// Buffers that a loop reads from elsewhere.
type Outside = SmallVec<[BufferId; 6]>;

/// What a loop computes for one element, its inlined producers included.
#[derive(Default)]
struct Expression {
    reads: u32,
    weight: u32,
    sources: SmallVec<[(BufferId, bool); 4]>,
    after: SmallVec<[KernelId; 1]>,
    after_long: bool,
}

impl Expression {
    /// Reads a buffer: computes it on the way where that is allowed and done, loads it otherwise.
    fn read(&mut self, walk: &Walk, id: BufferId, may_inline: bool, aligned: bool) {
        let buffer = &walk.buffers[id as usize];
        if may_inline && walk.is_inlined(id) {
            self.reads += buffer.reads;
            self.weight += buffer.weight;
            self.sources.extend(buffer.sources.iter().map(|(id, same)| (*id, *same && aligned)));
            self.after.extend(buffer.after.iter().copied());
        } else {
            self.reads += 1;
            self.sources.push((id, aligned));
        }
    }
}

impl Walk<'_> {
    pub(super) fn run_loop(&mut self, op: usize, space: Space, reading: Reading, weight: u32) {
        let step = &self.plan.steps[op];
        let kernel = self.place(op, space, reading, &step.reads, weight, step.makes);
        if let Some(made) = step.makes {
            self.buffers[made as usize].opaque |= reading == Reading::Window;
            if self.is_bias_of_product(op) {
                self.kernels.set_absorbed(kernel, true);
            }
        }
    }

    /// Finds or makes the kernel for a loop, and records what it reads.
    pub(super) fn place(
        &mut self,
        op: usize,
        space: Space,
        reading: Reading,
        reads: &[BufferId],
        weight: u32,
        makes: Option<BufferId>,
    ) -> KernelId {
        let (home, joined, outside) = self.home(op, space, reading, reads);
        let expression = self.expression(reading, weight, &joined, &outside);
        for &(id, _) in &expression.sources {
            let kernel = self.buffers[id as usize].kernel;
            if let Some(kernel) =
                kernel.filter(|kernel| self.kernels.find(*kernel) != self.kernels.find(home))
            {
                self.store(id);
                self.kernels.run_after(home, kernel);
            }
        }
        let home = match reading {
            Reading::Same => self.join_other_readers(home, &expression.sources),
            _ => home,
        };
        let channels_last = reads.iter().any(|id| self.buffers[*id as usize].channels_last);
        for &(id, aligned) in &expression.sources {
            let buffer = &mut self.buffers[id as usize];
            buffer.raw = false;
            if aligned {
                if buffer.readers.len() == PARTNERS {
                    buffer.readers.remove(0);
                }
                buffer.readers.push(home);
            }
        }
        if let Some(made) = makes {
            let rank = self.plan.buffers[made as usize].rank;
            let buffer = &mut self.buffers[made as usize];
            buffer.kernel = Some(home);
            buffer.reads = expression.reads;
            buffer.weight = expression.weight;
            buffer.sources = expression.sources;
            buffer.after = expression.after;
            buffer.channels_last = channels_last && rank == 4;
            buffer.after_long = expression.after_long;
        }
        self.op_kernels[op].push(home);
        home
    }

    /// The kernel that a loop runs in, which of the buffers it reads are computed there, and which outside.
    fn home(
        &mut self,
        op: usize,
        space: Space,
        reading: Reading,
        reads: &[BufferId],
    ) -> (KernelId, Joined, Outside) {
        let (candidates, mut outside) = self.partners(space, reading, reads);
        let mut home: Option<KernelId> = None;
        let mut joined = Joined::new();
        for (index, &(_, kernel, id)) in candidates.iter().enumerate() {
            let may = match home {
                Some(home) => {
                    self.kernels.find(home) == self.kernels.find(kernel)
                        || self.kernels.may_merge(home, kernel)
                }
                None => {
                    let later = candidates[index + 1..].iter().map(|candidate| candidate.2);
                    !outside.iter().copied().chain(later).any(|other| self.waits_for(other, kernel))
                }
            };
            if !may {
                outside.push(id);
                continue;
            }
            joined.push(id);
            home = Some(match home {
                Some(home) => self.kernels.merge(home, kernel),
                None => {
                    self.kernels.join(kernel, op as u32, space);
                    // What the operation waits for binds the kernel it is in before others are merged into it.
                    self.run_after_all(kernel, &outside);
                    kernel
                }
            });
        }
        let home = home.unwrap_or_else(|| self.kernels.add_loop(op as u32, space));
        self.run_after_all(home, &outside);
        (home, joined, outside)
    }

    /// Kernels that a loop might run in, the latest first, and what it reads from elsewhere.
    fn partners(
        &self,
        space: Space,
        reading: Reading,
        reads: &[BufferId],
    ) -> (Candidates, Outside) {
        let mut outside = Outside::new();
        let mut candidates = Candidates::new();
        for &id in reads {
            match self.buffers[id as usize].kernel {
                Some(kernel) if !self.kernels.is_library(kernel) => {
                    let fits = reading == Reading::Same && self.kernels.space(kernel).fits(space);
                    if fits && self.kernels.has_room(kernel) {
                        candidates.push((self.kernels.last_op(kernel), kernel, id));
                    } else {
                        outside.push(id);
                    }
                }
                _ => outside.push(id),
            }
        }
        candidates.sort_unstable_by(|a, b| b.cmp(a));
        (candidates, outside)
    }

    fn run_after_all(&mut self, kernel: KernelId, reads: &[BufferId]) {
        let earlier: SmallVec<[KernelId; 8]> =
            reads.iter().flat_map(|id| self.kernels_before(*id)).collect();
        for before in earlier {
            self.kernels.run_after(kernel, before);
        }
    }

    /// What a loop computes: buffers of its own kernel on the way, others where they may be computed again.
    fn expression(
        &self,
        reading: Reading,
        weight: u32,
        joined: &[BufferId],
        outside: &[BufferId],
    ) -> Expression {
        let mut expression = Expression { weight, ..Expression::default() };
        for &id in joined {
            let buffer = &self.buffers[id as usize];
            expression.after_long |=
                buffer.after_long || buffer.reads > MAX_READS || buffer.weight > MAX_WEIGHT;
            expression.read(self, id, true, true);
        }
        for &id in outside {
            let computed =
                self.buffers[id as usize].kernel.is_some_and(|k| !self.kernels.is_library(k));
            let inlined = computed && reading != Reading::Window;
            expression.read(self, id, inlined, reading == Reading::Same);
        }
        expression.sources.sort_unstable();
        expression.sources.dedup_by_key(|(id, _)| *id);
        expression
    }

    fn waits_for(&self, id: BufferId, kernel: KernelId) -> bool {
        self.kernels_before(id).iter().any(|before| self.kernels.depends(*before, kernel))
    }

    /// Loops over the same space that read the same buffer become one kernel.
    fn join_other_readers(&mut self, home: KernelId, sources: &[(BufferId, bool)]) -> KernelId {
        let mut home = home;
        for &(id, _) in sources.iter().filter(|(_, aligned)| *aligned) {
            let elements = self.plan.buffers[id as usize].elements;
            for other in self.buffers[id as usize].readers.clone() {
                let same = self.kernels.find(other) == self.kernels.find(home);
                let whole = elements == self.kernels.space(home).total();
                if !same && whole && self.kernels.may_merge(home, other) {
                    home = self.kernels.merge(home, other);
                }
            }
        }
        home
    }
}
