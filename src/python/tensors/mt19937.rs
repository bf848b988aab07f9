//! The Mersenne Twister of Matsumoto and Nishimura, 32-bit, as in PyTorch's CPU generator.
//!
//! Invariant: the stream of a seed is that of `at::mt19937`. Must not know distributions.

const N: usize = 624;
const M: usize = 397;

/// The generator's state.
#[derive(Clone, Debug)]
pub(super) struct Mt19937 {
    state: Box<[u32; N]>,
    next: usize,
}

impl Mt19937 {
    /// Seeded with the low 32 bits, as PyTorch does.
    pub(super) fn new(seed: u64) -> Self {
        let mut state = Box::new([0u32; N]);
        state[0] = seed as u32;
        for i in 1..N {
            let last = state[i - 1];
            state[i] = 1_812_433_253u32.wrapping_mul(last ^ (last >> 30)).wrapping_add(i as u32);
        }
        Self { state, next: N }
    }

    /// Seeded by a list of words, as Python does (`init_by_array`).
    pub(super) fn from_words(key: &[u32]) -> Self {
        let mut out = Self::new(19_650_218);
        let s = &mut out.state;
        let (mut i, mut j) = (1, 0);
        for _ in 0..N.max(key.len()) {
            let mixed = (s[i - 1] ^ (s[i - 1] >> 30)).wrapping_mul(1_664_525);
            s[i] = (s[i] ^ mixed).wrapping_add(key[j]).wrapping_add(j as u32);
            i += 1;
            j = (j + 1) % key.len();
            if i == N {
                s[0] = s[N - 1];
                i = 1;
            }
        }
        for _ in 1..N {
            let mixed = (s[i - 1] ^ (s[i - 1] >> 30)).wrapping_mul(1_566_083_941);
            s[i] = (s[i] ^ mixed).wrapping_sub(i as u32);
            i += 1;
            if i == N {
                s[0] = s[N - 1];
                i = 1;
            }
        }
        s[0] = 0x8000_0000;
        out
    }

    fn refill(&mut self) {
        for i in 0..N {
            let bits = (self.state[i] & 0x8000_0000) | (self.state[(i + 1) % N] & 0x7fff_ffff);
            let twisted = (bits >> 1) ^ if bits & 1 == 1 { 0x9908_b0df } else { 0 };
            self.state[i] = self.state[(i + M) % N] ^ twisted;
        }
        self.next = 0;
    }

    /// The next 32 bits.
    pub(super) fn next_u32(&mut self) -> u32 {
        if self.next == N {
            self.refill();
        }
        let mut y = self.state[self.next];
        self.next += 1;
        y ^= y >> 11;
        y ^= (y << 7) & 0x9d2c_5680;
        y ^= (y << 15) & 0xefc6_0000;
        y ^ (y >> 18)
    }

    /// Two draws, the first one high.
    pub(super) fn next_u64(&mut self) -> u64 {
        let high = u64::from(self.next_u32());
        (high << 32) | u64::from(self.next_u32())
    }
}
