//! The values that calls of Python's and PyTorch's own functions may change, and the calls without effect on a mask.
//!
//! Invariant: a name that is not known to leave its arguments unchanged is assumed to change them. Must not know what
//! they compute.

use super::Library;

/// The possible changes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// Nothing that anybody else has.
    Nothing,
    /// Its first argument.
    First,
    /// The object that it is a method of.
    Receiver,
    /// Everything that it is given.
    All,
    /// The state of a random generator.
    Draws,
    /// Everything that it is given, and what draws it makes is not known either.
    Unknown,
    /// Names that the text does not show.
    Everything,
}

/// Modules of Python whose functions change nothing that they are given.
const READERS: [&str; 47] = [
    "math",
    "functools",
    "typing",
    "typing_extensions",
    "collections",
    "dataclasses",
    "itertools",
    "enum",
    "abc",
    "warnings",
    "logging",
    "time",
    "copy",
    "types",
    "string",
    "pathlib",
    "json",
    "re",
    "inspect",
    "argparse",
    "numbers",
    "statistics",
    "textwrap",
    "datetime",
    "hashlib",
    "uuid",
    "platform",
    "decimal",
    "fractions",
    "pprint",
    "os",
    "sys",
    "cmath",
    "calendar",
    "base64",
    "glob",
    "tempfile",
    "shutil",
    "timeit",
    "traceback",
    "operator",
    "contextlib",
    "unittest",
    "gc",
    "struct",
    "zlib",
    "unicodedata",
];

/// Functions of Python that change their first argument.
const CHANGERS: [&str; 20] = [
    "setattr",
    "delattr",
    "next",
    "vars",
    "random.shuffle",
    "numpy.random.shuffle",
    "numpy.fill_diagonal",
    "numpy.put",
    "numpy.copyto",
    "numpy.place",
    "numpy.putmask",
    "numpy.put_along_axis",
    "operator.setitem",
    "operator.delitem",
    "operator.iadd",
    "operator.iand",
    "operator.ior",
    "operator.imul",
    "operator.isub",
    "operator.ixor",
];

/// Functions of PyTorch that draw from its generator.
const DRAWERS: [&str; 17] = [
    "rand",
    "randn",
    "randint",
    "randperm",
    "rand_like",
    "randn_like",
    "randint_like",
    "normal",
    "bernoulli",
    "multinomial",
    "poisson",
    "dropout",
    "alpha_dropout",
    "gumbel_softmax",
    "rrelu",
    "seed",
    "set_rng_state",
];

/// The kind of a name without effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// It does not change the function's result.
    Decorator,
    /// It does not change the computation inside it.
    Context,
    /// Calling it changes nothing that a mask depends on.
    Call,
}

/// Names of PyTorch and Python without effect on a mask (a `*` at the end matches any rest), with their kind.
const INERT: &[(&str, &[Role])] = {
    use Role::{Call, Context, Decorator};
    &[
        ("torch._*", &[Decorator, Context, Call]),
        ("torch.autograd.*", &[Decorator, Context, Call]),
        ("torch.backends.*", &[Decorator, Context, Call]),
        ("torch.cuda.*", &[Decorator, Context, Call]),
        ("torch.profiler.*", &[Decorator, Context, Call]),
        ("torch.utils.*", &[Decorator, Context, Call]),
        ("torch.no_grad", &[Decorator, Context, Call]),
        ("torch.inference_mode", &[Decorator, Context, Call]),
        ("torch.enable_grad", &[Decorator, Context, Call]),
        ("torch.compiler.*", &[Decorator, Context, Call]),
        ("torch.set_grad_enabled", &[Decorator, Context, Call]),
        ("torch.amp.*", &[Decorator, Context]),
        ("torch.autocast*", &[Decorator, Context]),
        ("torch.jit.*", &[Decorator, Context]),
        ("torch.library.*", &[Decorator, Call]),
        ("torch.compile", &[Decorator]),
        ("torch.fx.*", &[Decorator]),
        ("typing.*", &[Decorator]),
        ("typing_extensions.*", &[Decorator]),
        ("abc.*", &[Decorator]),
        ("enum.unique", &[Decorator]),
        ("identity", &[Decorator]),
        ("torch.device", &[Context]),
        ("torch.nn.attention.sdpa_kernel", &[Context]),
        ("numpy.errstate", &[Context]),
        ("warnings.*", &[Context, Call]),
        ("ignored*", &[Call]),
        ("logging.*", &[Call]),
        ("sys.*", &[Call]),
        ("torch.distributed.*", &[Call]),
        ("torch.set_default_device", &[Call]),
        ("torch.set_float32_matmul_precision", &[Call]),
        ("torch.set_num_*", &[Call]),
        ("torch.set_printoptions", &[Call]),
        ("torch.set_warn_always", &[Call]),
        ("torch.use_deterministic_algorithms", &[Call]),
    ]
};

/// Whether a name decides nothing in a role.
pub(crate) fn is_inert(name: &str, role: Role) -> bool {
    let named = |known: &str| match known.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == known,
    };
    INERT.iter().any(|(known, roles)| roles.contains(&role) && named(known))
}

/// The possible changes of calling a builtin by its dotted name, without keywords such as `out=`.
pub(super) fn change_of(library: &Library, name: &str) -> Change {
    let last = name.rsplit('.').next().unwrap_or(name);
    let top = name.split('.').next().unwrap_or(name);
    if CHANGERS.contains(&name) {
        return Change::First;
    }
    // what every float after it is made of
    if matches!(name, "torch.set_default_dtype" | "torch.set_default_tensor_type") {
        return Change::Everything;
    }
    match top {
        "globals" | "exec" | "eval" | "locals" | "compile" | "__import__" if top == name => Change::Everything,
        "heapq" if last.starts_with("heap") => Change::First,
        "bisect" if last.starts_with("insort") => Change::First,
        "heapq" | "bisect" => Change::Nothing,
        // numpy.add.at(x, at, by)
        "numpy" if last == "at" => Change::First,
        "random" => Change::Draws,
        "numpy" if name.starts_with("numpy.random.") => Change::Draws,
        "torch" | "flex" => of_torch(name, last),
        "numpy" | "identity" | "ignored" => Change::Nothing,
        _ if READERS.contains(&top) => Change::Nothing,
        // len, range, print and the like
        _ if top == name && (library.is_builtin)(name) => Change::Nothing,
        _ => Change::Unknown,
    }
}

fn of_torch(name: &str, last: &str) -> Change {
    let draws = DRAWERS.contains(&last)
        || name.starts_with("torch.nn.init.")
        // layers are made with random weights
        || (name.starts_with("torch.nn.") && last.starts_with(|c: char| c.is_ascii_uppercase()));
    if last.ends_with('_') && !last.starts_with('_') {
        return if draws { Change::Unknown } else { Change::First };
    }
    if name.starts_with("torch.optim.") || name.starts_with("torch.distributed.") {
        return Change::Unknown;
    }
    if draws { Change::Draws } else { Change::Nothing }
}
