//! The modules of PyTorch that contain a function whose work a tensor's method shares.
//!
//! Invariant: a name that PyTorch 2.15 does not have under a prefix is an AttributeError here too, so that every text
//! that works here also works in PyTorch. Must not know what the functions compute.

use crate::python::value::Fault;

/// These do not exist under `torch.` itself.
const NOT_IN_TORCH: &[&str] = &[
    "add_",
    "bernoulli_",
    "contiguous",
    "copy_",
    "div_",
    "entr",
    "erfcx",
    "expand",
    "expand_as",
    "expit",
    "fill_diagonal_",
    "gammaln",
    "gelu",
    "i0e",
    "i1",
    "i1e",
    "index_fill_",
    "leaky_relu",
    "log_ndtr",
    "logsigmoid",
    "masked_fill_",
    "mul_",
    "ndtr",
    "normal_",
    "one_hot",
    "pad",
    "psi",
    "random_",
    "repeat",
    "requires_grad_",
    "reshape_as",
    "scatter_",
    "silu",
    "softplus",
    "sub_",
    "unfold",
    "uniform_",
    "view",
    "view_as",
];

/// The names under `torch.nn.functional.`.
const FUNCTIONAL: &[&str] = &[
    "dropout",
    "gelu",
    "leaky_relu",
    "log_softmax",
    "logsigmoid",
    "one_hot",
    "pad",
    "relu",
    "sigmoid",
    "silu",
    "softmax",
    "softplus",
    "tanh",
    "unfold",
];

/// The names under `torch.special.`.
const SPECIAL: &[&str] = &[
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfcx",
    "erfinv",
    "exp2",
    "expit",
    "expm1",
    "gammaln",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "log1p",
    "log_ndtr",
    "log_softmax",
    "logsumexp",
    "ndtr",
    "psi",
    "round",
    "softmax",
];

/// The names under `torch.linalg.`.
const LINALG: &[&str] = &["diagonal", "matmul", "norm"];

/// PyTorch's own error if `prefix` has no `name`; Ok for prefixes outside this table.
pub(super) fn check(prefix: &str, name: &str) -> Result<(), Fault> {
    let stands = |prefix: &str| match prefix {
        "torch." => !NOT_IN_TORCH.contains(&name),
        "torch.nn.functional." => FUNCTIONAL.contains(&name),
        "torch.special." => SPECIAL.contains(&name),
        "torch.linalg." => LINALG.contains(&name),
        _ => true,
    };
    if stands(prefix) {
        return Ok(());
    }
    let module = prefix.trim_end_matches('.');
    let fault =
        Fault::new("AttributeError", "unknown-function", format!("module '{module}' has no attribute '{name}'"))
            .python();
    let elsewhere = ["torch.", "torch.nn.functional.", "torch.special.", "torch.linalg."];
    Err(match elsewhere.iter().find(|p| stands(p)) {
        Some(home) => fault.hint(format!("its name is `{home}{name}`")),
        None => fault.hint(format!("it is a method: `t.{name}(...)`")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stands_where_pytorch_has_it() {
        for (prefix, name) in
            [("torch.", "erf"), ("torch.special.", "ndtr"), ("torch.nn.functional.", "silu"), ("torch.Tensor.", "view")]
        {
            assert!(check(prefix, name).is_ok(), "{prefix}{name}");
        }
        for (prefix, name, hint) in [
            ("torch.", "ndtr", "its name is `torch.special.ndtr`"),
            ("torch.", "silu", "its name is `torch.nn.functional.silu`"),
            ("torch.special.", "relu", "its name is `torch.relu`"),
            ("torch.", "view", "it is a method: `t.view(...)`"),
        ] {
            let why = check(prefix, name).unwrap_err();
            let reported = &why.diagnostic;
            assert!(reported.message.contains("has no attribute") && reported.hint.as_deref() == Some(hint), "{why:?}");
            assert!(why.python);
        }
    }
}
