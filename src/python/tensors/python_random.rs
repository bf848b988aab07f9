//! Python's `random` module: the same numbers for the same integer seed.
//!
//! Invariant: the streams are those of CPython 3.11 and later. Must not know Python values.

use super::mt19937::Mt19937;

/// A seeded `random.Random`.
#[derive(Clone, Debug)]
pub struct PythonRandom(Mt19937);

impl PythonRandom {
    /// `random.seed(n)`; the sign is ignored, as Python does.
    pub fn new(seed: i64) -> Self {
        let magnitude = seed.unsigned_abs();
        let (low, high) = (magnitude as u32, (magnitude >> 32) as u32);
        Self(if high == 0 { Mt19937::from_words(&[low]) } else { Mt19937::from_words(&[low, high]) })
    }

    /// `random.random()`: 53 bits in [0, 1).
    pub fn random(&mut self) -> f64 {
        let (a, b) = (self.0.next_u32() >> 5, self.0.next_u32() >> 6);
        (f64::from(a) * 67_108_864.0 + f64::from(b)) / 9_007_199_254_740_992.0
    }

    /// `random.getrandbits(k)` for up to 64 bits.
    pub fn bits(&mut self, k: u32) -> u64 {
        match k {
            0 => 0,
            1..=32 => u64::from(self.0.next_u32() >> (32 - k)),
            _ => {
                let low = u64::from(self.0.next_u32());
                low | u64::from(self.0.next_u32() >> (64 - k)) << 32
            }
        }
    }

    /// An integer in `0..n`: draws of as many bits as `n` has, until one is below. 0 if n is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        if n == 0 {
            return 0;
        }
        let k = 64 - n.leading_zeros();
        loop {
            let draw = self.bits(k);
            if draw < n {
                return draw;
            }
        }
    }

    /// The positions of `random.shuffle`: the element at each place afterwards.
    pub fn shuffle(&mut self, n: usize) -> Vec<usize> {
        let mut places: Vec<usize> = (0..n).collect();
        for i in (1..n).rev() {
            places.swap(i, self.below(i as u64 + 1) as usize);
        }
        places
    }

    /// The positions of `random.sample(population, k)`, for `k <= n`.
    pub fn sample(&mut self, n: usize, k: usize) -> Vec<usize> {
        // Python keeps a pool if that is smaller than a set of the chosen elements.
        let mut set_size = 21usize;
        if k > 5 {
            set_size += 4usize.pow(((k * 3) as f64).log(4.0).ceil() as u32);
        }
        let mut out = Vec::with_capacity(k);
        if n <= set_size {
            let mut pool: Vec<usize> = (0..n).collect();
            for i in 0..k {
                let j = self.below((n - i) as u64) as usize;
                out.push(pool[j]);
                pool[j] = pool[n - i - 1];
            }
            return out;
        }
        let mut chosen = std::collections::HashSet::new();
        while out.len() < k {
            let j = self.below(n as u64) as usize;
            if chosen.insert(j) {
                out.push(j);
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use crate::python::tensors::python_random::*;

    #[test]
    fn the_streams_are_pythons() {
        let mut r = PythonRandom::new(0);
        assert_eq!([r.random(), r.random()], [0.8444218515250481, 0.7579544029403025]);
        let mut r = PythonRandom::new(-42);
        let draws: Vec<u64> = (0..6).map(|_| r.below(100)).collect();
        assert_eq!(draws, [81, 14, 3, 94, 35, 31]);
        assert_eq!(PythonRandom::new(1).shuffle(8), [3, 6, 1, 5, 7, 0, 4, 2]);
        assert_eq!(PythonRandom::new(1).sample(10, 4), [2, 1, 4, 0]);
        assert_eq!(PythonRandom::new(1).sample(1000, 4), [137, 582, 867, 821]);
        assert_eq!(PythonRandom::new((1 << 40) + 7).bits(50), 841_412_498_927_834);
    }
}
