//! mt19937, the 32-bit Mersenne Twister.

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
        for i in 0..SIZE {
            let upper = self.state[i] & 0x8000_0000;
            let lower = self.state[(i + 1) % SIZE] & 0x7fff_ffff;
            let mixed = (upper | lower) >> 1;
            let twist = if lower & 1 == 1 { 0x9908_b0df } else { 0 };
            self.state[i] = self.state[(i + MIDDLE) % SIZE] ^ mixed ^ twist;
        }
        self.next = 0;
    }

    #[inline]
    pub(crate) fn next_u32(&mut self) -> u32 {
        if self.next == SIZE {
            self.refill();
        }
        let mut y = self.state[self.next];
        self.next += 1;
        y ^= y >> 11;
        y ^= (y << 7) & 0x9d2c_5680;
        y ^= (y << 15) & 0xefc6_0000;
        y ^ (y >> 18)
    }

    #[inline]
    pub(crate) fn next_u64(&mut self) -> u64 {
        let high = u64::from(self.next_u32());
        (high << 32) | u64::from(self.next_u32())
    }
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
}
