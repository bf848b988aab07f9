//! Guides longer than a fix: installing FlashAttention, with an honest estimate of the benefit.
//!
//! Invariant: a guide first states the benefit, and always the way back; figures of this machine come from its own
//! examination, never from memory. Must not know how a guide is shown.

use crate::base::Diagnostic;
use crate::worker::protocol::DoctorReport;

/// Names of the guides.
pub const GUIDES: [&str; 1] = ["flash-attn"];

/// A guide as text, with this machine's facts. Errors: no such guide.
pub fn guide(name: &str, report: &DoctorReport) -> Result<String, Diagnostic> {
    match name {
        "flash-attn" | "flash-attention" | "flash_attn" => Ok(flash_attn(report)),
        other => Err(Diagnostic::error("unknown-guide", format!("there is no guide named `{other}`"))
            .hint(format!("guides: {}", GUIDES.join(", ")))),
    }
}

fn flash_attn(report: &DoctorReport) -> String {
    let version = |name: &str| report.environment.get(name).map(String::as_str);
    let python = report.check("python").and_then(|c| c.found.split_once(" at ")).map_or("python3", |(_, path)| path);
    let mut here = String::from("Found on this machine\n");
    let examined = !report.checks.is_empty() || !report.environment.is_empty();
    if !examined {
        here.push_str("  not examined yet: the doctor's examination fills this in\n");
    }
    for name in ["python", "torch", "flash-attn", "flash-attn-3"].iter().filter(|_| examined) {
        here.push_str(&format!("  {name}: {}\n", version(name).unwrap_or("not installed")));
    }
    for gpu in report.checks.iter().filter(|c| c.name.starts_with("cuda:") || c.name == "gpu") {
        here.push_str(&format!("  {}: {}\n", gpu.name, gpu.found));
    }
    let cp = version("python").map_or("your Python, such as cp311".into(), |v| format!("cp{}", two(v).concat()));
    let torch = version("torch").map_or("your torch".into(), |v| format!("torch{}", two(v).join(".")));
    let jobs = std::thread::available_parallelism().map_or(2, |n| (n.get() / 4).clamp(1, 8));
    format!(
        "{here}
1. Do you need it?
  SDPA is enough when attention is full or causal: PyTorch ships FlashAttention-2's
  algorithm and cuDNN's fused kernels inside it. Nothing to install, nothing to break.
  Measure first: maskloom run PRESET --backend sdpa,torch:sdpa,flex
  flash-attn is worth it when a trainer or model asks for it by name (variable-length
  batches, its rotary or KV-cache kernels), or when your race shows it ahead.
  It never helps with a designed mask: it takes full, causal and window masks only.
  That is what flex is for.
  It needs an Ampere, Ada, Hopper or newer card, bf16 or fp16, head_dim up to 256.

2. Install it, into an environment that you can throw away
  {python} -m venv ~/flash-env
  . ~/flash-env/bin/activate
  pip install torch packaging ninja wheel
  A prebuilt wheel takes a minute. Of those at
  https://github.com/Dao-AILab/flash-attention/releases
  take the one whose name has {torch}, {cp},
  and the CUDA and the ABI that this prints:
  python -c \"import torch; print(torch.version.cuda, torch.compiled_with_cxx11_abi())\"
  then pip install its address.
  Otherwise build it. That needs nvcc of the same CUDA, takes 10 to 30 minutes and over
  8 GB of memory, and does not hang:
  MAX_JOBS={jobs} pip install flash-attn --no-build-isolation

3. Verify
  python -c \"import flash_attn; print(flash_attn.__version__)\"
  `undefined symbol` there means that the wheel is for another torch:
  maskloom doctor --explain \"flash_attn_2_cuda undefined symbol\"
  Then one training step with the setting on and off: compare loss and time. A setting
  that changes neither is not heeded by your model:
  maskloom doctor --explain \"training never switches backend\"

4. Get back
  pip uninstall -y flash-attn
  and the trainer's setting back to PyTorch's SDPA: attention_mechanism \"diffusers\"
  (SimpleTuner) or attn_implementation \"sdpa\" (transformers). If torch itself was
  replaced on the way, make a new environment: deactivate; rm -r ~/flash-env
"
    )
}

/// Major and minor of a version.
fn two(version: &str) -> Vec<&str> {
    version.split('.').take(2).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn the_guide_names_what_is_here_and_the_way_back() {
        let environment = BTreeMap::from([("python", "3.11.4"), ("torch", "2.11.0+cu130")]);
        let environment = environment.into_iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
        let text = guide("flash-attn", &DoctorReport { checks: vec![], environment }).unwrap();
        for word in
            ["SDPA is enough", "worth it when", "torch2.11, cp311", "Verify", "Get back", "flash-attn: not installed"]
        {
            assert!(text.contains(word), "{word}: {text}");
        }
        let none = guide("flash-attn", &DoctorReport::default()).unwrap();
        let longest = none.lines().map(str::len).max().unwrap();
        assert!(longest <= 88, "{longest} columns: narrow terminals and the window's panel break lines");
        assert!(none.contains("your Python, such as cp311") && none.contains("not examined yet"), "{none}");
        assert_eq!(guide("x", &DoctorReport::default()).unwrap_err().code, "unknown-guide");
    }
}
