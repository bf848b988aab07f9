//! `torch.einsum` and `torch.kron` of concrete tensors.
//!
//! Invariant: floats accumulate in double precision and round once; the work is charged before it starts. Must not know
//! symbols.

use super::bind::{bind, spend};
use super::tensor_compute::one;
use crate::base::HostTensor;
use crate::python::machine::Context;
use crate::python::tensors::{self, Budget, HostError, HostResult};
use crate::python::value::{Args, Fault, Value};

/// Names that [`call`] knows.
pub(super) const NAMES: &[&str] = &["torch.einsum", "torch.kron", "torch.nn.functional.normalize"];

/// Calls one of [`NAMES`]; None for other names.
pub(super) fn call(name: &str, args: &Args, cx: &mut Context) -> Option<Result<Value, Fault>> {
    if name == "torch.nn.functional.normalize" {
        return Some(normalize(args, cx));
    }
    let short = name.strip_prefix("torch.").filter(|_| NAMES.contains(&name))?;
    let result = match short {
        "einsum" => einsum(args, cx),
        _ => two(short, ["input", "other"], args).and_then(|(a, b)| spend(cx, |budget| kron(&a, &b, budget))),
    };
    Some(result.map(Value::tensor))
}

/// `x / x.norm(p, dim, keepdim=True).clamp_min(eps)`
fn normalize(args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    let bound = bind("normalize", args, &["input", "p", "dim", "eps"])?;
    let (x, p) = (bound.need_tensor("input")?, bound.float("p")?.unwrap_or(2.0));
    let (dim, eps) = (bound.int("dim")?.unwrap_or(1), bound.float("eps")?.unwrap_or(1e-12));
    one(cx, |budget| {
        let length = tensors::norm(&x, p, &tensors::Dims { dims: Some(vec![dim]), keep: true }, budget)?;
        let length = tensors::clamp(&length, Some(tensors::Scalar::Float(eps).into()), None, budget)?;
        tensors::binary(tensors::Binary::Div, (&x).into(), (&length).into(), budget)
    })
}

fn two(name: &str, params: [&'static str; 2], args: &Args) -> Result<(HostTensor, HostTensor), Fault> {
    let bound = bind(name, args, &params)?;
    Ok((bound.need_tensor(params[0])?, bound.need_tensor(params[1])?))
}

fn einsum(args: &Args, cx: &mut Context) -> Result<HostTensor, Fault> {
    let equation = args.need("einsum", 0, "equation")?;
    let equation = equation
        .as_str()
        .ok_or_else(|| Fault::type_error("the first argument of einsum() must be an equation such as `ij,jk->ik`"))?;
    let given = match args.rest(1) {
        [one] => one.as_items().unwrap_or_else(|| vec![one.clone()]),
        all => all.to_vec(),
    };
    let wrong = || Fault::type_error("einsum() needs tensors after its equation");
    let tensors: Vec<HostTensor> =
        given.iter().map(|v| v.as_tensor().map(|t| t.get()).ok_or_else(wrong)).collect::<Result<_, _>>()?;
    let text: String = equation.chars().filter(|c| !c.is_whitespace()).collect();
    spend(cx, |budget| contract(&text, &tensors, budget))
}

/// A letter and its extent.
type Letter = (char, usize);

/// The letters of every input, those of the output, and the extents of all.
type Equation = (Vec<Vec<char>>, Vec<char>, Vec<Letter>);

fn letters(equation: &str, tensors: &[HostTensor]) -> HostResult<Equation> {
    let refuse = |why: String| HostError::shape(format!("einsum(): {why}"));
    if equation.contains('.') {
        return Err(refuse("`...` is not evaluated here".into()).hint("write a letter for each dimension"));
    }
    let (inputs, output) = equation.split_once("->").map_or((equation, None), |(i, o)| (i, Some(o)));
    let inputs: Vec<Vec<char>> = inputs.split(',').map(|part| part.chars().collect()).collect();
    if inputs.len() != tensors.len() {
        return Err(refuse(format!("got {} operands for {} in the equation", tensors.len(), inputs.len())));
    }
    let mut extents: Vec<Letter> = Vec::new();
    for (part, t) in inputs.iter().zip(tensors) {
        if part.len() != t.shape().len() {
            let part: String = part.iter().collect();
            return Err(refuse(format!("`{part}` has {} letters for a tensor of shape {:?}", part.len(), t.shape())));
        }
        for (letter, n) in part.iter().zip(t.shape()) {
            match extents.iter_mut().find(|(l, _)| l == letter) {
                Some((_, known)) if *known == 1 => *known = *n,
                Some((_, known)) if *known != *n && *n != 1 => {
                    return Err(refuse(format!("`{letter}` is {known} in one operand and {n} in another")));
                }
                Some(_) => {}
                None => extents.push((*letter, *n)),
            }
        }
    }
    let output: Vec<char> = match output {
        Some(text) => text.chars().collect(),
        None => {
            // letters that occur once, in alphabetic order
            let count = |l: char| inputs.iter().flatten().filter(|x| **x == l).count();
            let mut once: Vec<char> = extents.iter().map(|(l, _)| *l).filter(|l| count(*l) == 1).collect();
            once.sort_unstable();
            once
        }
    };
    if let Some(l) = output.iter().find(|l| !extents.iter().any(|(e, _)| e == *l)) {
        return Err(refuse(format!("the output has `{l}`, which is in no operand")));
    }
    Ok((inputs, output, extents))
}

fn contract(equation: &str, tensors: &[HostTensor], budget: &Budget) -> HostResult {
    let (inputs, output, extents) = letters(equation, tensors)?;
    let extent = |l: &char| extents.iter().find(|(e, _)| e == l).map_or(1, |(_, n)| *n);
    let summed: Vec<char> = extents.iter().map(|(l, _)| *l).filter(|l| !output.contains(l)).collect();
    let order: Vec<char> = output.iter().chain(&summed).copied().collect();
    let sizes: Vec<usize> = order.iter().map(extent).collect();
    // how far an operand's element moves with each letter
    let strides: Vec<Vec<usize>> = inputs
        .iter()
        .zip(tensors)
        .map(|(part, t)| {
            let mut steps = vec![0; order.len()];
            let mut stride = 1;
            for (letter, n) in part.iter().zip(t.shape()).rev() {
                let at = order.iter().position(|l| l == letter).unwrap_or(0);
                steps[at] += if *n == 1 { 0 } else { stride };
                stride *= n;
            }
            steps
        })
        .collect();
    let shape: Vec<usize> = output.iter().map(extent).collect();
    let dtype = tensors.iter().map(HostTensor::dtype).reduce(tensors::promote).unwrap_or(crate::base::DType::F32);
    let cells = budget.charge(&shape, dtype)?;
    let each: usize = summed.iter().map(extent).product();
    let letters = (16 + 12 * summed.len() as u64) * tensors.len().max(1) as u64;
    budget.work((cells as u64).saturating_mul(each as u64).saturating_mul(letters))?;
    budget.work_each(cells, (100 + 12 * output.len() as u64) * tensors.len().max(1) as u64)?;
    let at = |flat: usize, sizes: &[usize], strides: &[usize]| {
        let mut rest = flat;
        sizes
            .iter()
            .zip(strides)
            .rev()
            .map(|(n, s)| {
                let i = rest % n;
                rest /= n;
                i * s
            })
            .sum::<usize>()
    };
    let outer = output.len();
    let value = |flat: usize| -> f64 {
        let bases: Vec<usize> = strides.iter().map(|s| at(flat, &sizes[..outer], &s[..outer])).collect();
        let product = |inner: usize| {
            let factor = |((t, s), base): ((&HostTensor, &Vec<usize>), &usize)| {
                t.float_at(base + at(inner, &sizes[outer..], &s[outer..]))
            };
            tensors.iter().zip(&strides).zip(&bases).map(factor).product::<f64>()
        };
        (0..each).map(product).sum()
    };
    tensors::from_values(&shape, dtype, value)
}

fn kron(a: &HostTensor, b: &HostTensor, budget: &Budget) -> HostResult {
    let rank = a.shape().len().max(b.shape().len());
    let wide = |t: &HostTensor| [vec![1; rank - t.shape().len()], t.shape().to_vec()].concat();
    let (x, y) = (wide(a), wide(b));
    let shape: Vec<usize> = x.iter().zip(&y).map(|(a, b)| a * b).collect();
    let dtype = tensors::promote(a.dtype(), b.dtype());
    let cells = budget.charge(&shape, dtype)?;
    budget.work_each(cells, 20 * rank as u64)?;
    tensors::from_values(&shape, dtype, |flat| {
        let (mut rest, mut ai, mut bi, mut an, mut bn) = (flat, 0, 0, 1, 1);
        for at in (0..rank).rev() {
            let i = rest % shape[at];
            rest /= shape[at];
            (ai, bi) = (ai + i / y[at] * an, bi + i % y[at] * bn);
            (an, bn) = (an * x[at], bn * y[at]);
        }
        a.float_at(ai) * b.float_at(bi)
    })
}
