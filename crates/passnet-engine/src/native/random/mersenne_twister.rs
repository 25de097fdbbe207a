//! mt19937, the 32-bit Mersenne Twister.

use passnet_cpu::multiversion;

const SIZE: usize = 624;
const MIDDLE: usize = 397;

#[derive(Clone)]
pub(crate) struct MersenneTwister {
    state: [u32; SIZE],
    next: usize,
}

impl MersenneTwister {
    pub(crate) fn new(seed: u64) -> Self {
        let mut state = [0u32; SIZE];
        state[0] = seed as u32;
        for i in 1..SIZE {
            let previous = state[i - 1];
            state[i] =
                1_812_433_253u32.wrapping_mul(previous ^ (previous >> 30)).wrapping_add(i as u32);
        }
        MersenneTwister { state, next: SIZE }
    }

    fn refill(&mut self) {
        twist_all(&mut self.state);
        self.next = 0;
    }

    #[inline]
    pub(crate) fn next_u32(&mut self) -> u32 {
        if self.next == SIZE {
            self.refill();
        }
        let drawn = temper(self.state[self.next]);
        self.next += 1;
        drawn
    }

    /// Fills a slice with what `of` makes of the next outputs, many at a time.
    pub(crate) fn fill<T>(&mut self, mut out: &mut [T], of: impl Fn(u32) -> T + Copy) {
        while !out.is_empty() {
            if self.next == SIZE {
                self.refill();
            }
            let ready = &self.state[self.next..];
            let count = ready.len().min(out.len());
            let (now, later) = out.split_at_mut(count);
            temper_all(ready, now, of);
            self.next += count;
            out = later;
        }
    }

    #[inline]
    pub(crate) fn next_u64(&mut self) -> u64 {
        let high = u64::from(self.next_u32());
        (high << 32) | u64::from(self.next_u32())
    }
}

multiversion! {
    fn twist_all(state: &mut [u32; SIZE]) {
        // Three loops without a remainder in their indices: the first two vectorise.
        for i in 0..SIZE - MIDDLE {
            state[i] = state[i + MIDDLE] ^ twist(state[i], state[i + 1]);
        }
        for i in SIZE - MIDDLE..SIZE - 1 {
            state[i] = state[i + MIDDLE - SIZE] ^ twist(state[i], state[i + 1]);
        }
        state[SIZE - 1] = state[MIDDLE - 1] ^ twist(state[SIZE - 1], state[0]);
    }
}

multiversion! {
    fn temper_all[T: Sized, F: Fn(u32) -> T](words: &[u32], out: &mut [T], of: F) {
        for (value, word) in out.iter_mut().zip(words) {
            *value = of(temper(*word));
        }
    }
}

#[inline(always)]
fn twist(this: u32, next: u32) -> u32 {
    let mixed = (this & 0x8000_0000) | (next & 0x7fff_ffff);
    (mixed >> 1) ^ ((mixed & 1).wrapping_neg() & 0x9908_b0df)
}

#[inline(always)]
fn temper(mut y: u32) -> u32 {
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c_5680;
    y ^= (y << 15) & 0xefc6_0000;
    y ^ (y >> 18)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The C++ standard fixes the 10,000th output of the default-seeded engine.
    #[test]
    fn ten_thousandth_output() {
        let mut engine = MersenneTwister::new(5489);
        let last = (0..10_000).map(|_| engine.next_u32()).last();
        assert_eq!(last, Some(4_123_659_995));
    }

    #[test]
    fn many_at_a_time_are_the_same_numbers() {
        let (mut one, mut many) = (MersenneTwister::new(7), MersenneTwister::new(7));
        for length in [1, 5, 623, 624, 2000, 3] {
            let mut drawn = vec![0; length];
            many.fill(&mut drawn, |word| word);
            let expected: Vec<u32> = (0..length).map(|_| one.next_u32()).collect();
            assert_eq!(drawn, expected);
        }
    }
}
