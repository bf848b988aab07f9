//! Verdicts on designs with known answers.

use super::*;
use crate::backends::testing::{causal, distance_score, modulo_rows, spec, with_mods};
use crate::base::{HostTensor, tensor::Data};
use crate::document::{compile, from_document, library};
use crate::ir::graph::Mod;
use crate::ir::text::parse;
use crate::words::{Language, Words};

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
fn masks_have_the_bytes_of_the_tensors_that_are_passed() {
    let on = |text, who: &str| {
        row(&of(&problem(Some(text), None, DType::BF16), &Place::Gpu("sm_90a".into())), who).mask_bytes
    };
    let window = "(and (ge q_idx kv_idx) (lt (sub q_idx kv_idx) 40))";
    // 300 x 300 cells; 3 x 3 blocks of 128 listed by rows and by columns, whole and partial; a window of flash-attn is no tensor
    assert_eq!(on(window, "torch:sdpa cudnn"), Some(90_000));
    assert_eq!(on(window, "torch:flex"), Some(4 * 2 * (2 * 9 + 3 + 3)));
    assert_eq!((on(window, "torch:flex-flash"), on(window, "flash-attn")), (on(window, "torch:flex"), None));
    assert_eq!(on(window, "FlashMask"), Some(300 * 4));
    let packed = "(and (ge q_idx kv_idx) (eq (load doc q_idx) (load doc kv_idx)))";
    // cu_seqlens of three documents twice; three slices of two ranges and a kind
    assert_eq!((on(packed, "flash-attn varlen"), on(packed, "MagiAttention")), (Some(2 * 4 * 4), Some(3 * 5 * 4)));
    let per_head = "(ge q_idx (add kv_idx h))";
    assert_eq!((on(per_head, "torch:sdpa math"), on(per_head, "torch:flex")), (Some(180_000), Some(2 * 192)));
    let exact = on(window, "cudnn:flex").expect("row ends");
    assert!((300..10_000).contains(&exact), "{exact}");
}

/// An H200 refused the backward pass of this preset: "Block sparsity expects sparse_block_size[1]=96 for kv_subtile_factor=1."
#[test]
fn flash_trains_where_blocks_are_its_backward_tiles_and_says_that_its_order_is_any() {
    let with = |(head_dim, head_dim_v), kv| {
        let block_size = crate::base::BlockSize { q: 128, kv };
        let given = spec(1, 2, 2, 300, 300, 64);
        let given = crate::problem::ProblemSpec { dtype: DType::BF16, head_dim, head_dim_v, block_size, ..given };
        with_mods(given, Some(parse("(ge q_idx kv_idx)", &[]).expect("a mask")), None)
    };
    let on = |problem: &Problem, arch: &str| row(&of(problem, &Place::Gpu(arch.into())), "torch:flex-flash").clone();
    let refused = on(&with((192, 128), 128), "sm_90a");
    assert!(refused.forward.takes() && !refused.backward.takes(), "{refused:?}");
    assert!(refused.backward.words().contains("96 keys") && refused.backward.words().contains("BLOCK_SIZE 128 x 96"));
    let fits = on(&with((192, 128), 96), "sm_90a");
    assert!(fits.forward.takes() && fits.backward.takes(), "{fits:?}");
    assert!(fits.backward.words().contains("use_deterministic_algorithms") && !fits.forward.words().contains("order"));
    assert_eq!(on(&with((64, 64), 128), "sm_100a").backward, Answer::Takes(How::Lists), "Blackwell has an order");
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
fn libraries_that_take_masks_as_numbers_are_told_how_many() {
    let hopper = Place::Gpu("sm_90a".into());
    let sinks = "(and (ge q_idx kv_idx) (or (lt (sub q_idx kv_idx) 40) (lt kv_idx 4)))";
    let all = of(&problem(Some(sinks), None, DType::BF16), &hopper);
    let words = |who: &str| row(&all, who).forward.words();
    assert_eq!(words("cudnn:flex"), "ranges of keys a row: nfunc 3, 3.52 KiB");
    assert_eq!([words("FlashMask"), words("MagiAttention")], ["1 bound a key, causal", "3 slices"]);
    assert!(row(&all, "cudnn:flex").call.as_deref().is_some_and(|call| call.contains("create_mask_plan(mask_func")));
    let scored = problem(Some(sinks), Some(distance_score()), DType::BF16);
    let all = of(&scored, &hopper);
    for who in ["cudnn:flex", "FlashMask", "MagiAttention"] {
        assert!(row(&all, who).forward.words().contains("score"), "{who}: {:?}", row(&all, who));
    }
    let ampere = of(&problem(Some(sinks), None, DType::BF16), &Place::Gpu("sm_80".into()));
    assert!(row(&ampere, "cudnn:flex").forward.words().contains("supports SM90, SM100, and SM103; got SM80"));
    let cross = of(&problem(Some("(eq (mod (add q_idx kv_idx) 3) 0)"), None, DType::BF16), &hopper);
    assert!(row(&cross, "FlashMask").forward.words().contains("more than two ranges"));
    assert!(row(&cross, "cudnn:flex").forward.takes());
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

/// The table of a preset on a card.
fn of_preset(name: &str) -> Vec<Verdict> {
    let document = library::preset(name).expect("a preset").document().expect("loads");
    let problem = from_document(&document, &compile::compile(&document, &compile::BuiltIn)).expect("compiles");
    verdicts_on_grid(&problem, document.axes.grid(), &Place::Gpu("sm_90a".into()), &Control::new()).expect("a table")
}

#[test]
fn presets_with_alibi_and_soft_caps_go_to_flash_attn() {
    let all = of_preset("alibi");
    let call = row(&all, "flash-attn").call.clone().expect("a call");
    let slopes = "alibi_slopes=torch.tensor([0.70710677, 0.5, ";
    assert!(call.starts_with("flash_attn_func(q, k, v, causal=True, ") && call.contains(slopes), "{call}");
    assert!(row(&all, "flash-attn").backward.takes());
    let all = of_preset("gemma2_softcap_window");
    let call = row(&all, "flash-attn").call.clone().expect("a call");
    assert!(call.contains("window_size=(") && call.contains(", softcap=50.0"), "{call}");
    assert!(row(&all, "flash-attn").forward.words().contains("a soft cap of 50"));
}

/// flash-attn's row for a score mod over `slopes`.
fn flash_with(mask: Option<&str>, score: &str, who: &str) -> Verdict {
    let slopes = HostTensor::vector(Data::F32(vec![0.5, 0.25]));
    let score = parse(score, &[("slopes", slopes)]).expect("a score mod");
    let p = problem(mask, Some(score), DType::BF16);
    row(&of(&p, &Place::Gpu("sm_90a".into())), who).clone()
}

#[test]
fn alibi_is_offered_only_where_it_is_flash_attns() {
    let signed = "(add score (mul (to_float (sub kv_idx q_idx)) (load slopes h)))";
    let both = "(sub score (mul (to_float (abs (sub kv_idx q_idx))) (load slopes h)))";
    let causal = Some("(ge q_idx kv_idx)");
    for score in [signed, both] {
        let found = flash_with(causal, score, "flash-attn");
        assert_eq!(found.call.as_deref(), Some("flash_attn_func(q, k, v, causal=True, alibi_slopes=slopes)"));
        assert!(found.backward.words().contains("`slopes` would not be trained"), "{found:?}");
    }
    assert!(flash_with(None, both, "flash-attn").forward.takes());
    assert!(flash_with(None, signed, "flash-attn").forward.words().contains("raises those after the query"));
    let window = Some("(lt (abs (sub q_idx kv_idx)) 17)");
    assert!(!flash_with(window, signed, "flash-attn").forward.takes());
    assert!(flash_with(window, both, "flash-attn").call.is_some_and(|c| c.contains("window_size=(16, 16), alibi")));
    let moved = "(sub score (mul (to_float (abs (sub (sub kv_idx q_idx) 3))) (load slopes h)))";
    assert!(!flash_with(causal, moved, "flash-attn").forward.takes());
    let other = flash_with(causal, "(add score (mul (to_float kv_idx) (load slopes h)))", "flash-attn");
    assert!(other.forward.words().contains("not recognised as ALiBi or soft cap"), "{other:?}");
    let packed = "(eq (load doc q_idx) (load doc kv_idx))";
    assert!(flash_with(Some(packed), both, "flash-attn varlen").forward.takes());
    assert!(!flash_with(Some(packed), signed, "flash-attn varlen").forward.takes());
}

#[test]
fn neighbourhoods_go_to_natten_and_other_masks_are_refused_in_true_words() {
    for (preset, call) in [
        ("natten_2d", "na2d(q, k, v, kernel_size=(13, 13)), tensors as [1, 64, 64, heads, head_dim]"),
        ("ltx_video", "na3d(q, k, v, kernel_size=(9, 15, 21)), tensors as [1, 21, 16, 22, heads, head_dim]"),
        ("causal", "na1d(q, k, v, kernel_size=(8192,), is_causal=(True,)), tensors as [1, 8192, heads, head_dim]"),
    ] {
        let all = of_preset(preset);
        assert_eq!(row(&all, "NATTEN").call.as_deref(), Some(call), "{preset}");
        assert!(row(&all, "NATTEN").backward.takes());
    }
    let words = |preset| row(&of_preset(preset), "NATTEN").forward.words();
    assert_eq!(words("natten_morton"), "the mask is no neighbourhood of the grid 64x64 without stride and dilation");
    assert_eq!(words("sdxl_cross"), "takes queries and keys of one grid");
    assert_eq!(words("gemma2_softcap_window"), "supports no score_mod");
    let cut = problem(Some("(lt (abs (sub q_idx kv_idx)) 17)"), None, DType::BF16);
    let all = of(&cut, &Place::Gpu("sm_90a".into()));
    assert!(row(&all, "NATTEN").forward.words().contains("but this mask cuts them"));
}

#[test]
fn unknown_architectures_are_refused_before_anything_else() {
    let p = problem(None, None, DType::BF16);
    let why = verdicts(&p, &Place::Gpu("sm_999".into()), &Control::new()).expect_err("unknown");
    assert!(why.code == "arch" && why.hint.is_some_and(|hint| hint.contains("sm_90")), "{}", why.message);
}

#[test]
fn a_scale_that_is_not_the_usual_one_is_in_the_calls() {
    let own = crate::problem::ProblemSpec { dtype: DType::BF16, scale: Some(0.5), ..spec(1, 2, 2, 300, 300, 64) };
    let all = of(&with_mods(own, Some(causal(0)), None), &Place::Gpu("sm_90a".into()));
    let call = |who: &str| row(&all, who).call.clone().expect("a call");
    assert_eq!(call("flash-attn"), "flash_attn_func(q, k, v, softmax_scale=0.5, causal=True)");
    assert_eq!(call("torch:sdpa math"), "sdpa(q, k, v, is_causal=True, scale=0.5)");
    assert!(call("torch:flex").ends_with("block_mask=block_mask, scale=0.5)"));
}

#[test]
fn the_dispatchers_flex_loses_is_causal_and_it_is_said() {
    let place = Place::Gpu("sm_90a".into());
    let words = |mask: Option<&str>| {
        let all = of(&problem(mask, None, DType::BF16), &place);
        row(&all, "diffusers flex").forward.words()
    };
    assert!(words(Some("(ge q_idx kv_idx)")).contains("is_causal=True computes full attention"));
    assert!(words(Some("(lt (abs (sub q_idx kv_idx)) 17)")).starts_with("a BlockMask as attn_mask"));
    let double = parse("(mul score 2.0)", &[]).expect("a score mod");
    let scored = of(&problem(None, Some(double), DType::BF16), &place);
    assert!(!row(&scored, "diffusers flex").forward.takes());
}

/// Of all backends and libraries on some presets, but for other programs' own words.
#[test]
fn answers_are_told_in_every_language() {
    let mut seen = std::collections::BTreeSet::new();
    let same = ["causal", "causal, ALiBi"];
    for preset in ["sliding_window", "alibi", "t5_encoder"] {
        for answer in of_preset(preset).iter().flat_map(|one| [&one.forward, &one.backward]) {
            let english = answer.words();
            if matches!(answer, Answer::Refuses(Why::Quoted(_) | Why::BuffersNeedGradients(_))) {
                continue;
            }
            assert_eq!(serde_json::to_value(answer).expect("JSON")["words"], english);
            for language in [Language::Chinese, Language::Spanish, Language::Hindi] {
                let told = answer.told(Words::of(language));
                assert!(told != english || same.contains(&&*english), "{language:?} says {english} in English");
            }
            seen.insert(english);
        }
    }
    assert!(seen.len() > 15, "{seen:?}");
    let p = problem(Some("(ge q_idx kv_idx)"), None, DType::BF16);
    let eager = row(&of(&p, &Place::Cpu), "eager").forward.clone();
    assert_eq!(
        eager.told(Words::of(Language::Spanish)),
        "todas las puntuaciones en memoria: 703 KiB por capa, el doble con su softmax"
    );
    // the English message and the way out are told apart
    let refused = Diagnostic::error("score-mod-unsupported", "sdpa runs none").hint("use torch:flex, or flex");
    let told = Answer::Refuses(Why::Reported(Box::new(refused))).told(Words::of(Language::Spanish));
    assert!(told.contains("sdpa runs none (") && told.ends_with(')'), "{told}");
    // a way out that is told by what fits all of its code keeps its figures
    let full = Diagnostic::error("disk-full", "no room").hint("quux 703 KiB");
    let told = Answer::Refuses(Why::Reported(Box::new(full))).told(Words::of(Language::Spanish));
    assert!(told.contains("no room; quux 703 KiB (Libere espacio"), "{told}");
}
