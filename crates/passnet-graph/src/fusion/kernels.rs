//! Kernels under construction: sets of operations that only ever merge, and what must run before them.

use super::work::Space;
use smallvec::SmallVec;

pub(super) type KernelId = u32;

/// A search for a dependency that takes longer than this is given up, and the dependency assumed.
const MAX_VISITS: usize = 256;
/// TorchInductor puts no more than this many buffers into one kernel.
const MAX_MEMBERS: u32 = 64;

#[derive(Debug)]
struct Kernel {
    /// Itself, or the kernel it was merged into.
    parent: KernelId,
    space: Space,
    library: bool,
    first_op: u32,
    last_op: u32,
    members: u32,
    /// Results that someone outside needs; a kernel without any is not launched.
    needs: u32,
    /// Computed by the library call before it as long as it stays alone (a bias added to a product).
    absorbed: bool,
    before: SmallVec<[KernelId; 6]>,
}

/// All kernels of a prefix, with a running count of those launched.
#[derive(Debug, Default)]
pub(super) struct Kernels {
    all: Vec<Kernel>,
    launched: u32,
}

impl Kernels {
    pub fn launched(&self) -> u32 {
        self.launched
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn add_loop(&mut self, op: u32, space: Space) -> KernelId {
        self.add(op, space, false)
    }

    pub fn add_library(&mut self, op: u32) -> KernelId {
        let id = self.add(op, Space::of(0), true);
        self.need(id);
        id
    }

    fn add(&mut self, op: u32, space: Space, library: bool) -> KernelId {
        let id = self.all.len() as KernelId;
        self.all.push(Kernel {
            parent: id,
            space,
            library,
            first_op: op,
            last_op: op,
            members: 1,
            needs: 0,
            absorbed: false,
            before: SmallVec::new(),
        });
        id
    }

    /// The kernel that `id` has become; shortens the way for the next question.
    pub fn find(&mut self, mut id: KernelId) -> KernelId {
        while self.all[id as usize].parent != id {
            let above = self.all[id as usize].parent;
            self.all[id as usize].parent = self.all[above as usize].parent;
            id = self.all[id as usize].parent;
        }
        id
    }

    pub fn root(&self, mut id: KernelId) -> KernelId {
        while self.all[id as usize].parent != id {
            id = self.all[id as usize].parent;
        }
        id
    }

    pub fn is_library(&self, id: KernelId) -> bool {
        self.all[self.root(id) as usize].library
    }

    pub fn space(&self, id: KernelId) -> Space {
        self.all[self.root(id) as usize].space
    }

    pub fn last_op(&self, id: KernelId) -> u32 {
        self.all[self.root(id) as usize].last_op
    }

    pub fn is_launched(&self, id: KernelId) -> bool {
        let kernel = &self.all[self.root(id) as usize];
        kernel.needs > 0 && !kernel.absorbed
    }

    /// Someone outside needs one more result.
    pub fn need(&mut self, id: KernelId) {
        self.change(id, |kernel| kernel.needs += 1);
    }

    pub fn no_longer_need(&mut self, id: KernelId) {
        self.change(id, |kernel| kernel.needs = kernel.needs.saturating_sub(1));
    }

    pub fn set_absorbed(&mut self, id: KernelId, absorbed: bool) {
        self.change(id, |kernel| kernel.absorbed = absorbed);
    }

    fn change(&mut self, id: KernelId, change: impl FnOnce(&mut Kernel)) {
        let id = self.find(id);
        let before = self.is_launched(id);
        change(&mut self.all[id as usize]);
        let after = self.is_launched(id);
        self.launched = self.launched + u32::from(after) - u32::from(before);
    }

    pub fn run_after(&mut self, id: KernelId, earlier: KernelId) {
        let (id, earlier) = (self.find(id), self.find(earlier));
        if id != earlier && !self.all[id as usize].before.contains(&earlier) {
            self.all[id as usize].before.push(earlier);
        }
    }

    /// Whether `late` has to wait for `early`, directly or not.
    pub fn depends(&self, late: KernelId, early: KernelId) -> bool {
        let early = self.root(early);
        let horizon = self.all[early as usize].first_op;
        let mut seen: SmallVec<[KernelId; 32]> = SmallVec::new();
        let mut open: SmallVec<[KernelId; 32]> = SmallVec::new();
        open.push(self.root(late));
        while let Some(id) = open.pop() {
            if id == early {
                return true;
            }
            if self.all[id as usize].last_op < horizon || seen.contains(&id) {
                continue;
            }
            if seen.len() == MAX_VISITS {
                return true;
            }
            seen.push(id);
            open.extend(self.all[id as usize].before.iter().map(|earlier| self.root(*earlier)));
        }
        false
    }

    /// Whether something between them forces `a` to end before `b` begins.
    fn separated(&self, a: KernelId, b: KernelId) -> bool {
        self.all[b as usize]
            .before
            .iter()
            .map(|id| self.root(*id))
            .any(|id| id != a && self.depends(id, a))
    }

    pub fn may_merge(&self, a: KernelId, b: KernelId) -> bool {
        let (a, b) = (self.root(a), self.root(b));
        let (left, right) = (&self.all[a as usize], &self.all[b as usize]);
        !left.library
            && !right.library
            && left.space.fits(right.space)
            && left.members + right.members <= MAX_MEMBERS
            && !self.separated(a, b)
            && !self.separated(b, a)
    }

    pub fn has_room(&self, id: KernelId) -> bool {
        self.all[self.root(id) as usize].members < MAX_MEMBERS
    }

    /// Puts an operation into a kernel.
    pub fn join(&mut self, id: KernelId, op: u32, space: Space) {
        self.set_absorbed(id, false);
        let id = self.find(id);
        let kernel = &mut self.all[id as usize];
        kernel.last_op = kernel.last_op.max(op);
        kernel.members += 1;
        if space.is_reduction() {
            kernel.space = space;
        }
    }

    /// Makes one kernel of two.
    pub fn merge(&mut self, a: KernelId, b: KernelId) -> KernelId {
        let (a, b) = (self.find(a), self.find(b));
        if a == b {
            return a;
        }
        self.set_absorbed(a, false);
        self.set_absorbed(b, false);
        self.launched -= u32::from(self.is_launched(a) && self.is_launched(b));
        let from = &mut self.all[b as usize];
        from.parent = a;
        let (needs, members, space) = (from.needs, from.members, from.space);
        let (first, last) = (from.first_op, from.last_op);
        let before = std::mem::take(&mut from.before);
        let into = &mut self.all[a as usize];
        into.needs += needs;
        into.members += members;
        into.first_op = into.first_op.min(first);
        into.last_op = into.last_op.max(last);
        if space.is_reduction() {
            into.space = space;
        }
        into.before.extend(before);
        let mut before = std::mem::take(&mut self.all[a as usize].before);
        before.iter_mut().for_each(|id| *id = self.root(*id));
        before.sort_unstable();
        before.dedup();
        before.retain(|id| *id != a);
        self.all[a as usize].before = before;
        a
    }
}
