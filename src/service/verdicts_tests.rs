//! Verdicts on designs with known answers.

use super::*;
use crate::backends::testing::{causal, distance_score, modulo_rows, spec, with_mods};
use crate::base::{HostTensor, tensor::Data};
use crate::ir::graph::Mod;
use crate::ir::text::parse;

fn problem(mask: Option<&str>, score: Option<Mod>, dtype: DType) -> Problem {
    let documents = HostTensor::vector(Data::I64((0..300).map(|i| [0, 0, 1, 2][i / 80]).collect()));
    let mask = mask.map(|text| parse(text, &[("doc", documents)]).expect("a mask"));
    with_mods(crate::problem::ProblemSpec { dtype, ..spec(1, 2, 2, 300, 300, 64) }, mask, score)
}

fn of(problem: &Problem, place: &Place) -> Vec<Verdict> {
    verdicts(problem, place, &Control::new()).expect("a table")
}

fn row<'a>(all: &'a [Verdict], who: &str) -> &'a Verdict {
    all.iter().find(|v| v.who == who).unwrap_or_else(|| panic!("no {who}"))
}

#[test]
fn forms_are_found_by_cells() {
    let found = |text| form(&problem(Some(text), None, DType::F32), &Control::new()).expect("not cancelled");
    assert_eq!(found("(ge q_idx kv_idx)"), Form::Causal { offset: 0 });
    let window = "(and (ge q_idx kv_idx) (lt (sub q_idx kv_idx) 40))";
    assert_eq!(found(window), Form::Window { left: Some(39), right: Some(0) });
    let both = "(lt (abs (sub q_idx kv_idx)) 17)";
    assert_eq!(found(both), Form::Window { left: Some(16), right: Some(16) });
    let packed = "(eq (load doc q_idx) (load doc kv_idx))";
    let ends = vec![(160, 160), (240, 240), (300, 300)];
    assert_eq!(found(packed), Form::Documents { ends: ends.clone(), causal: false });
    let causal = "(and (ge q_idx kv_idx) (eq (load doc q_idx) (load doc kv_idx)))";
    assert_eq!(found(causal), Form::Documents { ends, causal: true });
    assert_eq!(found("(lt kv_idx (add 10 (floor_div q_idx 2)))"), Form::Ranges);
    assert_eq!(found("(eq (mod (sub q_idx kv_idx) 3) 0)"), Form::Other);
}

#[test]
fn a_window_on_a_gpu_goes_to_flash_attn_with_its_exact_call() {
    let p = problem(Some("(and (ge q_idx kv_idx) (lt (sub q_idx kv_idx) 40))"), None, DType::BF16);
    let all = of(&p, &Place::Gpu("sm_90a".into()));
    assert_eq!(row(&all, "flash-attn").call.as_deref(), Some("flash_attn_func(q, k, v, window_size=(39, 0))"));
    assert!(row(&all, "flex").backward.takes() && row(&all, "torch:flex-flash").backward.takes());
    assert_eq!(row(&all, "torch:sdpa flash").forward.words(), "Flash Attention does not support non-null attn_mask.");
    assert!(matches!(row(&all, "torch:sdpa efficient").forward, Answer::Dense(_)));
    assert!(!row(&all, "flash-attn varlen").forward.takes());
    assert!(row(&all, "eager").forward.takes() && matches!(row(&all, "eager").backward, Answer::Dense(_)));
    assert!(!row(&all, "sdpa").backward.takes());
    assert!(!row(&of(&p, &Place::Gpu("sm_86".into())), "torch:flex-flash").forward.takes());
}

#[test]
fn gates_that_learn_are_taken_at_every_width() {
    let gate = HostTensor::vector(Data::F32(vec![0.5, 1.5]));
    let score = || parse("(mul score (load gate h))", &[("gate", gate.clone())]).expect("a score mod");
    let of_width = |head_dim| {
        let own = crate::problem::ProblemSpec { dtype: DType::BF16, ..spec(1, 2, 2, 300, 300, head_dim) };
        with_mods(own, None, Some(score()))
    };
    let flex = |p: &Problem| row(&of(p, &Place::Gpu("sm_90a".into())), "flex").clone();
    for width in [64, 128, 192, 256] {
        let found = flex(&of_width(width));
        assert!(found.forward.takes() && found.backward.takes(), "{width}: {found:?}");
    }
}

#[test]
fn documents_become_cu_seqlens() {
    let p = problem(Some("(eq (load doc q_idx) (load doc kv_idx))"), None, DType::BF16);
    let all = of(&p, &Place::Gpu("sm_80".into()));
    let call = row(&all, "flash-attn varlen").call.clone().expect("a call");
    assert!(call.contains("cu_seqlens_q=[0, 160, 240, 300]") && call.contains("causal=False"), "{call}");
}

#[test]
fn what_learns_is_refused_where_it_would_not() {
    let p = problem(
        Some("(ge q_idx kv_idx)"),
        Some(
            parse("(add score (load slopes h))", &[("slopes", HostTensor::vector(Data::F32(vec![0.5, 0.25])))])
                .expect("a mod"),
        ),
        DType::BF16,
    );
    let all = of(&p, &Place::Gpu("sm_90a".into()));
    assert!(row(&all, "flex").backward.takes());
    assert!(row(&all, "torch:flex").backward.words().contains("`slopes` by one atomic addition"));
    assert!(row(&all, "torch:flex-flash").backward.words().contains("captured grads"));
    assert!(!row(&all, "torch:sdpa cudnn").backward.takes() && row(&all, "torch:sdpa cudnn").forward.takes());
    assert!(row(&all, "torch:sdpa efficient").backward.words().contains("gradient of the whole bias"));
}

#[test]
fn a_cpu_names_who_trains_there() {
    let p = with_mods(spec(1, 2, 2, 40, 40, 16), Some(causal(0)), Some(distance_score()));
    let all = of(&p, &Place::Cpu);
    assert!(row(&all, "flex").backward.takes() && row(&all, "eager").backward.takes());
    assert!(row(&all, "torch:flex").forward.takes());
    assert!(row(&all, "torch:flex").backward.words().starts_with("FlexAttention does not support backward on CPU."));
    assert_eq!(row(&all, "NATTEN").forward.words(), "runs on CUDA only");
    let rows = with_mods(spec(1, 2, 2, 40, 40, 16), Some(modulo_rows(4, 1)), None);
    assert!(!row(&of(&rows, &Place::Cpu), "flash_attention_2").forward.takes());
}
