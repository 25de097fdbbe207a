//! In which order the programs of a launch run.
//!
//! A GPU promises none, so a kernel must not rely on one. Programs begin at a secret one, go on from there forwards or backwards
//! and wrap around: neighbours still follow each other, which is what caches want, but no program knows who was before it. All
//! launches of a call begin at the same share of their programs, so that what one launch wrote last the next reads last.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug, Clone, Copy)]
pub(super) struct ProgramOrder {
    /// Where to begin, as a share of all programs in units of 2^-64.
    share: u64,
    backwards: bool,
}

impl ProgramOrder {
    pub(super) const NATURAL: ProgramOrder = ProgramOrder { share: 0, backwards: false };

    /// The order that a secret stands for.
    pub(super) fn of(secret: u64) -> ProgramOrder {
        ProgramOrder { share: mix(secret), backwards: mix(!secret) & 1 != 0 }
    }

    /// One that nobody knows.
    pub(super) fn drawn() -> ProgramOrder {
        static STATE: OnceLock<AtomicU64> = OnceLock::new();
        let state = STATE.get_or_init(|| AtomicU64::new(RandomState::new().hash_one(())));
        ProgramOrder::of(state.fetch_add(1, Ordering::Relaxed))
    }

    /// So many programs, each once.
    pub(super) fn of_programs(self, count: usize) -> impl Iterator<Item = usize> {
        let first = ((u128::from(self.share) * count as u128) >> 64) as usize;
        let turned = move |i: usize| if self.backwards { count - 1 - i } else { i };
        (first..count).chain(0..first).map(turned)
    }
}

/// SplitMix64: any difference between two secrets changes every bit of the result.
fn mix(secret: u64) -> u64 {
    let mut z = secret.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_runs_once_and_neighbours_follow_each_other() {
        assert!(ProgramOrder::NATURAL.of_programs(5).eq(0..5));
        for secret in 0..200 {
            let order = ProgramOrder::of(secret);
            for count in [0, 1, 2, 7, 64] {
                let all: Vec<usize> = order.of_programs(count).collect();
                let mut sorted = all.clone();
                sorted.sort_unstable();
                assert!(sorted.into_iter().eq(0..count), "{secret}");
                let back = usize::from(order.backwards) * count.saturating_sub(2);
                assert!(all.windows(2).all(|w| w[1] == (w[0] + 1 + back) % count), "{secret}");
            }
        }
    }

    #[test]
    fn any_program_may_be_first_and_both_directions_occur() {
        let mut first = [0; 7];
        let mut backwards = 0;
        for secret in 0..700 {
            let order = ProgramOrder::of(secret);
            order.of_programs(7).take(1).for_each(|i| first[i] += 1);
            backwards += i32::from(order.backwards);
        }
        assert!(first.iter().all(|&n| n > 50), "{first:?}");
        assert!((250..450).contains(&backwards), "{backwards}");
    }
}
