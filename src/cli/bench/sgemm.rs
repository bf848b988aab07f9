//! What PyTorch's float32 matrix product reaches on this machine: the limit that attention on a CPU is measured by.
//!
//! Invariant: it is measured on the threads that ours use, right before and after what it is compared with. Must not know what that is.

use crate::base::{DType, Diagnostic};
use crate::worker::user_python;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

const SCRIPT: &str = include_str!("sgemm.py");

/// The Python with PyTorch that was named or is found. Errors: there is none.
pub(super) fn python(named: Option<&str>) -> Result<PathBuf, Diagnostic> {
    let found = || user_python::find().filter(|p| p.packages.contains_key("torch")).map(|p| p.path);
    named.map(PathBuf::from).or_else(found).ok_or_else(|| failed("no Python with PyTorch was found"))
}

/// Why there is no PyTorch to compare with.
pub(super) fn failed(why: &str) -> Diagnostic {
    Diagnostic::warning("no-torch", format!("nothing to compare with: {why}"))
        .hint("activate an environment that has torch, or set MASKLOOM_PYTHON")
}

/// TFLOP/s. Errors: PyTorch's run failed.
pub(super) fn rate(python: &Path) -> Result<f64, Diagnostic> {
    let threads = rayon::current_num_threads().to_string();
    let ran = Command::new(python).args(["-I", "-c", SCRIPT, &threads]).output();
    let said = ran.map_err(|why| failed(&why.to_string()))?.stdout;
    let rate: Option<f64> = String::from_utf8_lossy(&said).trim().parse().ok();
    rate.filter(|rate| *rate > 0.0).map(|rate| rate / 1e3).ok_or_else(|| failed("PyTorch's matrix product did not run"))
}

/// Adds to rows of float32 what share of the rate theirs are: `of_sgemm` of `tflops`, and `backward_of_sgemm`.
pub(super) fn add_shares(rows: &mut [Value], rate: f64) {
    for row in rows.iter_mut().filter(|row| row["dtype"] == json!(DType::F32)) {
        row["sgemm_tflops"] = json!(rate);
        for (share, own) in [("of_sgemm", "tflops"), ("backward_of_sgemm", "backward_tflops")] {
            if let Some(own) = row[own].as_f64() {
                row[share] = json!(own / rate);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_float32_rows_alone() {
        let row = |dtype: DType| json!({ "dtype": dtype, "tflops": 0.2, "backward_tflops": 0.1 });
        let mut rows = vec![row(DType::F32), row(DType::BF16), json!({ "dtype": DType::F32, "tflops": null })];
        add_shares(&mut rows, 0.25);
        assert_eq!((&rows[0]["of_sgemm"], &rows[0]["backward_of_sgemm"]), (&json!(0.8), &json!(0.4)));
        assert!(rows[1]["of_sgemm"].is_null() && rows[2]["of_sgemm"].is_null());
    }
}
