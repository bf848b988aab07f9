//! How fast bytes travel between ranks.
//!
//! Invariant: every rate between two ranks is positive. Transfers of one rank share its port: their times add up. Must
//! not know masks.

use crate::base::Diagnostic;
use serde::{Deserialize, Serialize};

/// Gigabytes a second that a rank receives inside one host: an all-gather of 201 MB took 0.94 ms on 4 H200 with NVLink.
pub const NVLINK: f64 = 214.0;
/// Rates that differ by less than this factor count as one kind of link.
const ALIKE: f64 = 2.0;

/// The links between ranks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Links {
    /// Gigabytes a second from each rank to each other.
    pub gigabytes: Vec<Vec<f64>>,
    /// Microseconds that an exchange takes at least.
    pub latency_us: f64,
}

impl Links {
    /// The same rate between all ranks. Errors: a rate that is not positive.
    pub fn uniform(ranks: usize, gigabytes: f64) -> Result<Links, Diagnostic> {
        Self::hosts(ranks, ranks.max(1), gigabytes, gigabytes)
    }

    /// Hosts of so many ranks each: one rate inside of a host and one across. Errors: a rate that is not positive, hosts
    /// without ranks.
    pub fn hosts(ranks: usize, per_host: usize, inside: f64, across: f64) -> Result<Links, Diagnostic> {
        if per_host == 0 {
            return Err(Diagnostic::error("parallel-hosts", "a host of 0 ranks computes nothing")
                .hint("give the number of GPUs of one host, such as 8"));
        }
        let rate = |a: usize, b: usize| if a / per_host == b / per_host { inside } else { across };
        Self::matrix((0..ranks).map(|a| (0..ranks).map(|b| rate(a, b)).collect()).collect())
    }

    /// Any matrix, `[from][to]`; the diagonal is not read. Errors: not square, or a rate that is not positive.
    pub fn matrix(gigabytes: Vec<Vec<f64>>) -> Result<Links, Diagnostic> {
        let n = gigabytes.len();
        for (from, row) in gigabytes.iter().enumerate() {
            if row.len() != n {
                let message = format!("row {from} of the bandwidth matrix has {} entries for {n} ranks", row.len());
                return Err(Diagnostic::error("parallel-bandwidth", message).hint("give a square matrix in GB/s"));
            }
            let bad = row.iter().enumerate().find(|(to, rate)| *to != from && !(**rate > 0.0 && rate.is_finite()));
            if let Some((to, rate)) = bad {
                let message = format!("a bandwidth of {rate} GB/s from rank {from} to rank {to} moves nothing");
                return Err(Diagnostic::error("parallel-bandwidth", message)
                    .hint(format!("give GB/s above 0, such as {NVLINK} for NVLink or 45 for a 400 Gbit/s network")));
            }
        }
        Ok(Links { gigabytes, latency_us: 20.0 })
    }

    /// Ranks.
    pub fn ranks(&self) -> usize {
        self.gigabytes.len()
    }

    /// For each pair `[from][to]` the class of its link, 0 the fastest. Ranks of one class arrive together.
    pub fn classes(&self) -> Vec<Vec<usize>> {
        let n = self.ranks();
        let pairs = (0..n).flat_map(|a| (0..n).map(move |b| (a, b))).filter(|(a, b)| a != b);
        let mut rates: Vec<f64> = pairs.map(|(a, b)| self.gigabytes[a][b]).collect();
        rates.sort_by(|a, b| b.total_cmp(a));
        let mut floors: Vec<f64> = Vec::new();
        for rate in rates {
            if floors.last().is_none_or(|first| rate * ALIKE < *first) {
                floors.push(rate);
            }
        }
        let class = |rate: f64| floors.iter().rposition(|first| rate <= *first).unwrap_or(0);
        self.gigabytes.iter().map(|row| row.iter().map(|rate| class(*rate)).collect()).collect()
    }

    /// Milliseconds until every rank has sent and received its bytes, `[from][to]`.
    pub fn exchange_ms(&self, bytes: &[Vec<u64>]) -> f64 {
        let time = |from: usize, to: usize| bytes[from][to] as f64 / self.gigabytes[from][to] / 1e6;
        let others = |rank: usize| (0..self.ranks()).filter(move |other| *other != rank);
        let busy = |rank: usize| -> f64 {
            let received: f64 = others(rank).map(|from| time(from, rank)).sum();
            let sent: f64 = others(rank).map(|to| time(rank, to)).sum();
            received.max(sent)
        };
        let slowest = (0..self.ranks()).map(busy).fold(0.0, f64::max);
        if slowest > 0.0 { slowest + self.latency_us / 1e3 } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_of_two_hosts_are_two_classes() {
        let links = Links::hosts(4, 2, 200.0, 40.0).unwrap();
        assert_eq!(links.classes()[0], [0, 0, 1, 1]);
        assert_eq!(Links::uniform(3, 10.0).unwrap().classes()[2], [0, 0, 0]);
        // 1 GB inside and 1 GB across: 5 ms and 25 ms through one port
        let mut bytes = vec![vec![0; 4]; 4];
        (bytes[1][0], bytes[2][0]) = (1_000_000_000, 1_000_000_000);
        assert!((links.exchange_ms(&bytes) - 30.02).abs() < 1e-9);
        assert_eq!(links.exchange_ms(&vec![vec![0; 4]; 4]), 0.0);
    }

    #[test]
    fn rates_that_move_nothing_are_refused() {
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(Links::uniform(2, rate).unwrap_err().code, "parallel-bandwidth", "{rate}");
        }
        assert!(Links::uniform(1, 0.0).is_ok(), "one rank sends nothing");
        assert_eq!(Links::hosts(4, 0, 1.0, 1.0).unwrap_err().code, "parallel-hosts");
        assert_eq!(Links::matrix(vec![vec![1.0, 1.0], vec![1.0]]).unwrap_err().code, "parallel-bandwidth");
    }
}
