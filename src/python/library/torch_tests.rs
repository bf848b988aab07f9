//! The host functions compared with PyTorch's results (tests/data/torch_ops.json), through the interpreter itself.

use crate::base::{DType, HostTensor, Source};
use crate::python::Limits;
use crate::python::machine::Context;
use crate::python::value::{Fault, Value};
use base64::Engine;
use serde::Deserialize;

const CASES: &str = include_str!("../../../tests/data/torch_ops.json");

/// Statements that bind `r`, and the result.
#[derive(Deserialize)]
pub(super) struct Case {
    pub code: String,
    #[serde(default)]
    pub exact: bool,
    pub want: Want,
}

/// One result, by the fields that are there.
#[derive(Deserialize, Debug)]
#[serde(untagged)]
pub(super) enum Want {
    Tensor { dtype: String, shape: Vec<usize>, data: String },
    Hash { dtype: String, shape: Vec<usize>, fnv: String },
    Text { text: String },
    Float { float: serde_json::Value },
    Items { items: Vec<Want> },
    Error { error: String },
    Plain { value: serde_json::Value },
}

/// Runs statements and gives `r`, or what went wrong.
pub(super) fn run(code: &str) -> Result<Value, String> {
    let body = if code.contains("r =") { code.to_string() } else { format!("r = {code}") };
    let text = format!("import math\nimport torch\nimport torch.nn.functional as F\n{body}\n");
    let mut load = |_: &str| None;
    let mut cx = Context::new(&super::LIBRARY, Limits { tensor_bytes: 256 << 20, ..Limits::default() }, &mut load);
    let scope = cx.run_source(Source::new("case.py", text), "case", Vec::new()).map_err(|d| d[0].summary())?;
    let message = |fault: &Fault| format!("{}: {}", fault.class, fault.diagnostic.message);
    if let Some(fault) = cx.skipped.first() {
        return Err(message(fault));
    }
    match scope.own("r") {
        Some(Value::Missing(fault)) => Err(message(&fault)),
        Some(value) => Ok(value),
        None => Err("nothing was bound".to_string()),
    }
}

/// Steps between two floats of a dtype; the sign bit folded away.
fn steps_apart(dtype: DType, a: f64, b: f64) -> f64 {
    if a == b || (a.is_nan() && b.is_nan()) {
        return 0.0;
    }
    if !a.is_finite() || !b.is_finite() {
        return f64::INFINITY;
    }
    let (digits, smallest) = match dtype {
        DType::F16 => (10, -24),
        DType::BF16 => (7, -133),
        DType::F32 => (23, -149),
        _ => (52, -1074),
    };
    let exponent = (a.abs().max(b.abs()).log2().floor() as i32 - digits).max(smallest);
    (a - b).abs() / 2f64.powi(exponent)
}

fn same_tensor(got: &HostTensor, want: &HostTensor, exact: bool) -> Result<(), String> {
    if (got.dtype(), got.shape()) != (want.dtype(), want.shape()) {
        return Err(format!("{} {:?}, not {} {:?}", got.dtype(), got.shape(), want.dtype(), want.shape()));
    }
    if exact {
        let same = got.data().to_le_bytes() == want.data().to_le_bytes();
        return same.then_some(()).ok_or_else(|| "other bits".to_string());
    }
    for i in 0..got.numel() {
        let fits = match got.dtype().is_float() {
            true => steps_apart(got.dtype(), got.float_at(i), want.float_at(i)) <= 2.0,
            false => got.int_at(i) == want.int_at(i),
        };
        if !fits {
            return Err(format!("element {i} is {:?}, not {:?}", got.float_at(i), want.float_at(i)));
        }
    }
    Ok(())
}

fn dtype(name: &str) -> DType {
    use DType::*;
    let all = [Bool, U8, I8, I16, I32, I64, F16, BF16, F32, F64];
    all.into_iter().find(|d| d.torch_name() == name).expect("a dtype of the fixture")
}

/// Whether a fault's class is PyTorch's, or the one from which PyTorch's is derived in Python.
fn is_a(class: &str, want: &str) -> bool {
    let parent = match want {
        "NotImplementedError" | "_LinAlgError" => "RuntimeError",
        "JSONDecodeError" => "ValueError",
        other => other,
    };
    class == want || class == parent
}

/// Cases that fail here with another class than in PyTorch: the end of the code, and our class.
const OTHER_CLASS: [(&str, &str); 12] = [
    ("~torch.tensor([-3, -1, 0, 2, 5]).to(torch.float16)", "RuntimeError"),
    ("~torch.tensor([-3, -1, 0, 2, 5]).to(torch.bfloat16)", "RuntimeError"),
    ("~torch.tensor([-3, -1, 0, 2, 5]).to(torch.float32)", "RuntimeError"),
    ("~torch.tensor([-3, -1, 0, 2, 5]).to(torch.float64)", "RuntimeError"),
    ("~torch.tensor([1.5])", "RuntimeError"),
    ("torch.tensor([1, 2]) // 0", "ZeroDivisionError"),
    ("torch.tensor([[1, 2], [3]])", "RuntimeError"),
    ("r = torch.cat([])", "RuntimeError"),
    ("r = torch.zeros(2, 0).max(1)", "RuntimeError"),
    ("r = a[torch.tensor([0.5])]", "RuntimeError"),
    ("r = torch.gather(a[0], 1, torch.tensor([[4]]))", "IndexError"),
    ("torch.topk(torch.tensor([3, 9]), 3)", "IndexError"),
];

/// The same for invalid indices.
const OTHER_CLASS_OF_INDEX: [(&str, &str); 3] =
    [("r = a[::-1]", "IndexError"), ("r = a[\"x\"]", "IndexError"), ("r = a[1.0]", "TypeError")];

/// Our class of a case that fails with another one in PyTorch.
fn other_class(code: &str) -> Option<&'static str> {
    let known = OTHER_CLASS.iter().chain(&OTHER_CLASS_OF_INDEX).find(|(end, _)| code.ends_with(end));
    known.map(|(_, class)| *class)
}

pub(super) fn compare(got: &Result<Value, String>, want: &Want, exact: bool) -> Result<(), String> {
    let got = match (got, want) {
        (Err(got), Want::Error { error }) => {
            let class = got.split(':').next().unwrap_or_default();
            return if is_a(class, error) { Ok(()) } else { Err(format!("{got}, not {error}")) };
        }
        (Ok(_), Want::Error { error }) => return Err(format!("no {error}")),
        (Err(error), _) => return Err(error.clone()),
        (Ok(value), _) => value,
    };
    match (want, got) {
        (Want::Tensor { dtype: d, shape, data }, Value::Tensor(t)) => {
            let bytes = base64::engine::general_purpose::STANDARD.decode(data).map_err(|e| e.to_string())?;
            let data = crate::base::tensor::Data::from_le_bytes(dtype(d), &bytes).map_err(|d| d.message)?;
            let want = HostTensor::new(shape.clone(), data).map_err(|d| d.message)?;
            same_tensor(&t.get(), &want, exact)
        }
        (Want::Hash { dtype: d, shape, fnv }, Value::Tensor(t)) => {
            let t = t.get();
            let step = |h: u64, byte: &u8| (h ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
            let hash = t.data().to_le_bytes().iter().fold(0xcbf2_9ce4_8422_2325, step);
            let same = (t.dtype(), t.shape(), format!("{hash:016x}")) == (dtype(d), &shape[..], fnv.clone());
            same.then_some(()).ok_or_else(|| format!("other bits in {} {:?}", t.dtype(), t.shape()))
        }
        (Want::Text { text }, Value::DType(d)) if *text == format!("torch.{}", d.torch_name()) => Ok(()),
        (Want::Float { float }, Value::Float(x)) => {
            let want = float.as_f64().or_else(|| float.as_str()?.parse().ok()).unwrap_or(f64::NAN);
            let close = steps_apart(DType::F64, *x, want) <= 2.0;
            close.then_some(()).ok_or_else(|| format!("{x}, not {want}"))
        }
        (Want::Items { items }, value) => {
            let got = value.as_items().ok_or_else(|| format!("a {}, not several", value.type_name()))?;
            if got.len() != items.len() {
                return Err(format!("{} items, not {}", got.len(), items.len()));
            }
            items.iter().zip(got).try_for_each(|(want, got)| compare(&Ok(got), want, exact))
        }
        (Want::Plain { value }, got) => {
            let same = match got {
                Value::None => value.is_null(),
                Value::Bool(b) => value.as_bool() == Some(*b),
                Value::Int(i) => value.as_i64() == Some(*i),
                Value::Str(s) => value.as_str() == Some(s),
                _ => false,
            };
            same.then_some(()).ok_or_else(|| format!("a {}, not {value}", got.type_name()))
        }
        (want, got) => Err(format!("a {}, not {want:?}", got.type_name())),
    }
}

#[test]
fn host_functions_agree_with_pytorch() {
    let cases: Vec<Case> = serde_json::from_str(CASES).expect("the fixture parses");
    assert!(cases.len() > 1500, "only {} cases", cases.len());
    let mut failures = Vec::new();
    for case in &cases {
        let got = run(&case.code);
        if let (Some(class), Err(error)) = (other_class(&case.code), &got)
            && matches!(case.want, Want::Error { .. })
        {
            assert!(error.starts_with(class), "{}: {error}", case.code);
            continue;
        }
        if let Err(why) = compare(&got, &case.want, case.exact) {
            failures.push(format!("{}\n    {why}", case.code));
        }
    }
    assert!(failures.is_empty(), "{} of {} cases differ:\n{}", failures.len(), cases.len(), failures.join("\n"));
}

/// A row names PyTorch's functions that mean it: one of them has a recorded result.
#[test]
fn every_operation_on_one_operand_is_compared_with_pytorch() {
    use crate::ir::graph::UnaryOp;
    let cases: Vec<Case> = serde_json::from_str(CASES).expect("the fixture parses");
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let called: std::collections::HashSet<&str> =
        cases.iter().flat_map(|case| case.code.split(|c| !is_word(c))).collect();
    let rows = UnaryOp::all().into_iter().filter_map(|op| op.row().torch);
    let missing: Vec<_> = rows.filter(|(_, names)| !names.iter().any(|name| called.contains(name))).collect();
    assert!(missing.is_empty(), "tests/data/make_torch_ops.py lacks {missing:?}");
}

#[test]
fn every_listed_name_is_known() {
    use super::{host, tensor_methods};
    use crate::python::value::{Args, TensorCell};
    let mut load = |_: &str| None;
    let mut cx = Context::new(&super::LIBRARY, Limits::default(), &mut load);
    let matrix =
        || TensorCell::new(HostTensor::new([2, 2], crate::base::tensor::Data::I64(vec![0, 1, 2, 3])).expect("fits"));
    for name in tensor_methods::names() {
        let known = tensor_methods::attribute(name, &matrix(), &mut cx).is_some()
            || tensor_methods::call(name, &matrix(), &Args::default(), &mut cx).is_some();
        assert!(known, "the method {name} is listed and unknown");
    }
    for name in host::names() {
        assert!(host::call(&name, &Args::default(), &mut cx).is_some(), "{name} is listed and unknown");
    }
    assert!(host::call("torch.no_such_thing", &Args::default(), &mut cx).is_none());
    assert!(tensor_methods::call("no_such_thing", &matrix(), &Args::default(), &mut cx).is_none());
}

#[test]
fn gigantic_tensors_are_refused_before_they_are_made() {
    for code in [
        "torch.zeros(1 << 40)",
        "torch.arange(10**15)",
        "torch.zeros(1).expand(10**12)",
        "torch.ones(100000, 1) + torch.ones(100000)",
        "torch.arange(10).repeat(10**9)",
        "torch.repeat_interleave(torch.arange(3), 10**12)",
        "torch.eye(10**6)",
        "torch.randperm(10**8)",
        "torch.zeros(3000, 3000) @ torch.zeros(3000, 3000)",
        "torch.bincount(torch.tensor([10**15]))",
        "F.one_hot(torch.tensor([10**12]))",
        "torch.tril_indices(10**6, 10**6)",
        "torch.zeros(2**62, 2**62)",
        "F.pad(torch.zeros(3), (10**14, 10**14))",
        "torch.meshgrid(torch.arange(10**5), torch.arange(10**5))",
        "torch.diag(torch.arange(10**5))",
        "torch.linspace(0, 1, 10**13)",
        "torch.zeros(0, 2**62, 4)",
        "torch.zeros(0, 1).expand(0, 2**62).sum(0)",
        "torch.arange(10**7).sort()",
        "torch.zeros(2, 3).index_fill(0, torch.zeros(10**8 // 8, dtype=torch.int64), 1)",
    ] {
        let error =
            run(&format!("torch.manual_seed(0); r = {code}")).err().unwrap_or_else(|| panic!("{code} was made"));
        // a busy machine may run out of time first
        assert!(
            error.contains("exceeds the limit") || error.contains("more than") || error.contains("not fit in memory"),
            "{code}: {error}"
        );
    }
}

#[test]
fn odd_arguments_are_faults_and_never_panic() {
    for code in [
        "torch.eye(3).diagonal(-2**63)",
        "F.pad(torch.zeros(3), (-2**63, 2**63 - 1))",
        "F.one_hot(torch.tensor([2**63 - 1]))",
        "torch.roll(torch.arange(3), -2**63)",
        "torch.arange(3)[-2**63:2**63 - 1:2**63 - 1]",
        "torch.arange(3)[2**63 - 1]",
        "torch.zeros(2, 2).narrow(0, -2**63, 2**63 - 1)",
        "torch.zeros(0, 5).unfold(0, 1, 1)",
        "torch.zeros(3, 0).sort()",
        "torch.zeros(0).topk(0)",
        "torch.zeros(3, 0) @ torch.zeros(0, 2)",
        "torch.zeros(0, 3).repeat_interleave(2, dim=1)",
        "torch.zeros(2, 0).flip(0, 1).roll(1, 1).cumsum(1)",
        "torch.zeros(0, 3, 4)[:, [0, 1], [1, 2]]",
        "torch.zeros(0, 3)[torch.zeros(0, 3, dtype=torch.bool)]",
        "torch.split(torch.zeros(0), 0)",
        "torch.tensor([-2**63]) // torch.tensor([-1])",
        "torch.tensor([-2**63]) % torch.tensor([-1])",
        "abs(torch.tensor([-2**63]))",
        "torch.tensor([3]) ** torch.tensor([2**63 - 1])",
        "torch.tril(torch.zeros(3, 3), 2**63 - 1) + torch.triu(torch.zeros(3, 3), -2**63)",
        "torch.tril_indices(3, 3, 2**63 - 1)",
        "torch.randint(-2**63, 2**63 - 1, (3,), generator=torch.manual_seed(0))",
        "torch.linspace(0, 1, 0)",
        "torch.histc(torch.zeros(0), 3)",
        "torch.diff(torch.zeros(1), n=2**63 - 1)",
        "math.comb(2**63 - 1, 2**62)",
        "math.gcd(-2**63, -2**63)",
        "math.lcm(-2**63, 3)",
        "math.factorial(2**62)",
        "math.ldexp(1, 2)",
        "x = []; x.append(x); r = torch.tensor(x)",
    ] {
        let _ = run(code);
    }
    let nested = "x = 1\nfor i in range(100000):\n    x = [x]\nr = torch.tensor(x)";
    assert!(run(nested).err().is_some_and(|e| e.contains("dimensions")), "{:?}", run(nested).err());
    let deep = "x = torch.zeros(1)\nfor i in range(1000):\n    x = x.unsqueeze(0)\nr = x";
    assert!(run(deep).err().is_some_and(|e| e.contains("64")), "{:?}", run(deep).err());
}
