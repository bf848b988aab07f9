//! Every block of every mask of an installed attention-gym, traced unmodified, compared with its cells.
//!
//! Runs if `MASKLOOM_ATTN_GYM` names the folder of `attn_gym`; otherwise prints skipped. Lengths, block sizes and
//! parameters are drawn again in each round.

use crate::blocks::check_all;
use crate::gym::Folder;
use maskloom::analysis::block_mask::MaskShape;
use maskloom::analysis::examples::Rng;
use maskloom::base::tensor::Data;
use maskloom::base::{BlockSize, HostTensor, Lengths};
use maskloom::ir::graph::ModKind;
use maskloom::python::{Arg, ModuleLoader, TraceRequest, trace};

/// A mask: its module and factory, the arguments, and lengths to look at (q_len, kv_len).
struct Case {
    module: &'static str,
    entry: &'static str,
    args: Vec<(&'static str, Arg)>,
    lengths: [usize; 2],
}

struct Draw<'f> {
    rng: Rng,
    folder: &'f Folder,
}

impl Draw<'_> {
    fn between(&mut self, lo: usize, hi: usize) -> usize {
        lo + self.rng.below(hi - lo + 1)
    }

    fn int(&mut self, lo: usize, hi: usize) -> Arg {
        Arg::Int(self.between(lo, hi) as i64)
    }

    fn tensor(&mut self, shape: &[usize], mut value: impl FnMut(&mut Rng, usize) -> usize) -> Arg {
        let values = (0..shape.iter().product::<usize>()).map(|n| value(&mut self.rng, n) as i32).collect();
        Arg::Tensor(HostTensor::new(shape, Data::I32(values)).expect("as many values as the shape has"))
    }

    /// Where documents start, and the end of the last.
    fn offsets(&mut self, documents: usize, total: usize) -> Arg {
        let mut cuts: Vec<usize> = (1..documents).map(|_| self.between(1, total - 1)).chain([0, total]).collect();
        cuts.sort_unstable();
        cuts.dedup();
        self.tensor(&[cuts.len()], |_, n| cuts[n])
    }

    /// A mask as an argument.
    fn inner(&mut self) -> Arg {
        let (module, entry, args) = match self.rng.below(3) {
            0 => ("causal", "causal_mask", Vec::new()),
            1 => ("sliding_window", "generate_sliding_window", vec![("window_size".to_string(), self.int(1, 30))]),
            _ => ("prefix_lm", "generate_prefix_lm_mask", vec![("prefix_length".to_string(), self.int(1, 30))]),
        };
        let source = self.folder.load(&format!("attn_gym.masks.{module}")).expect("a module of attention-gym");
        Arg::Mod { source, entry: entry.into(), call: !args.is_empty(), args }
    }

    fn cases(&mut self) -> Vec<Case> {
        let (q, kv) = (self.between(20, 150), self.between(20, 150));
        let (n, longest) = (self.between(40, 150), q.max(kv));
        let any = [q, kv];
        let mut cases = vec![
            Case { module: "causal", entry: "causal_mask", args: vec![], lengths: any },
            Case {
                module: "sliding_window",
                entry: "generate_sliding_window",
                args: vec![("window_size", self.int(0, 60))],
                lengths: any,
            },
            Case {
                module: "dilated_sliding_window",
                entry: "generate_dilated_sliding_window",
                args: vec![("window_size", self.int(0, 60)), ("dilation", self.int(1, 5))],
                lengths: any,
            },
            Case {
                module: "global_sliding_window",
                entry: "generate_global_sliding_window",
                args: vec![
                    ("window_size", self.int(0, 20)),
                    ("is_global", self.tensor(&[longest], |rng, _| usize::from(rng.below(20) == 0))),
                ],
                lengths: any,
            },
            Case {
                module: "prefix_lm",
                entry: "generate_prefix_lm_mask",
                args: vec![("prefix_length", self.int(0, 60))],
                lengths: any,
            },
            Case {
                module: "document_mask",
                entry: "generate_doc_mask_mod",
                args: vec![("mask_mod", self.inner()), ("offsets", self.offsets(5, n))],
                lengths: [n, n],
            },
            Case {
                module: "document_mask",
                entry: "generate_packed_causal_doc_mask_mod",
                args: vec![("offsets", self.offsets(5, n))],
                lengths: [n, n],
            },
            Case {
                module: "batchify",
                entry: "batchify_mask_mod",
                args: vec![("mask_mod", self.inner()), ("batchify_size", self.int(5, 40))],
                lengths: any,
            },
        ];
        cases.extend(self.drafts());
        cases.extend(self.pictures());
        cases
    }

    /// Masks of decoding, training and cross attention, whose lengths follow from their parameters.
    fn drafts(&mut self) -> Vec<Case> {
        let (step, prefix, nodes) = (self.between(2, 8), self.between(1, 60), self.between(3, 24));
        let (documents, total) = (4, self.between(40, 120));
        let starts = [0, total / 5, total / 2, 3 * total / 4, total];
        let (images, words) = (3, self.between(4, 20));
        let topk = self.tensor(&[2, 3, 6, 3], |rng, _| rng.below(6));
        vec![
            Case {
                module: "shared_prefix",
                entry: "generate_shared_prefix_mask_mod",
                args: vec![
                    ("offsets", self.tensor(&[5], |_, n| starts[n])),
                    ("prefix_document_id", self.tensor(&[documents], |rng, n| rng.below(2) * 2 * usize::from(n > 2))),
                ],
                lengths: [total, total],
            },
            Case {
                module: "block_diffusion",
                entry: "generate_block_diffusion_mask",
                args: vec![("seq_len", Arg::Int(8 * step as i64)), ("block_size", Arg::Int(step as i64))],
                lengths: [16 * step, 16 * step],
            },
            Case {
                module: "jetspec",
                entry: "generate_jetspec_tree_causal_mask_mod",
                args: vec![
                    ("prefix_length", Arg::Int(prefix as i64)),
                    (
                        "ancestor_matrix",
                        self.tensor(&[nodes, nodes], |rng, n| {
                            let (row, col) = (n / nodes, n % nodes);
                            usize::from(row == col || col < row && rng.below(3) == 0)
                        }),
                    ),
                ],
                lengths: [nodes, prefix + nodes],
            },
            Case {
                module: "jetspec",
                entry: "generate_jetspec_training_mask_mod",
                args: vec![("prefix_length", Arg::Int(prefix as i64)), ("block_size", Arg::Int(step as i64))],
                lengths: [10 * step, prefix + 10 * step],
            },
            Case {
                module: "flamingo",
                entry: "generate_vision_cross_attention_mask_mod",
                args: vec![
                    ("intervals", self.tensor(&[images, 2], |rng, n| n / 2 * 20 + n % 2 * (5 + rng.below(30)))),
                    ("image_token_length", Arg::Int(words as i64)),
                ],
                lengths: [80, images * words],
            },
            Case {
                module: "vsa",
                entry: "generate_vsa_mask_mod",
                args: vec![("topk_indices", topk), ("tile_numel", Arg::Int(16))],
                lengths: [96, 96],
            },
        ]
    }

    /// Masks of images and videos.
    fn pictures(&mut self) -> Vec<Case> {
        let (w, h) = (self.between(4, 14), self.between(4, 11));
        let (kw, kh) = (self.between(1, w.min(5)), self.between(1, h.min(5)));
        let text = self.between(0, 20);
        let tuple = |sides: &[usize]| Arg::Tuple(sides.iter().map(|n| Arg::Int(*n as i64)).collect());
        let int = |n: usize| Arg::Int(n as i64);
        let even = |draw: &mut Self| 2 * draw.between(1, 4);
        let (frames, a_frame, prompt) = (self.between(2, 5), 16, self.between(0, 20));
        let svg = |width: usize| {
            vec![
                ("prompt_length", int(prompt)),
                ("num_frames", int(frames)),
                ("token_per_frame", int(a_frame)),
                ("width", int(width)),
            ]
        };
        let mut spatial = svg(self.between(1, 2));
        spatial.push(("round_width", int([4, 8, 16][self.rng.below(3)])));
        spatial.push(("attn_sink", Arg::Bool(self.rng.below(2) == 0)));
        let temporal = svg(self.between(1, 2));
        let video = [prompt + frames * a_frame; 2];
        let tiled = |kernel: [usize; 2], tile: [usize; 2]| {
            let [kw, kh] = kernel.map(int);
            let [tw, th] = tile.map(int);
            vec![("W", int(8)), ("H", int(8)), ("K_W", kw), ("K_H", kh), ("T_W", tw), ("T_H", th)]
        };
        let grid = |w: usize, h: usize| {
            vec![("canvas_w", int(w)), ("canvas_h", int(h)), ("kernel_w", int(kw)), ("kernel_h", int(kh))]
        };
        let sides = [[2, 4][self.rng.below(2)], [2, 4][self.rng.below(2)]];
        vec![
            Case { module: "natten", entry: "generate_natten", args: grid(w, h), lengths: [w * h, w * h] },
            Case {
                module: "natten",
                entry: "generate_tiled_natten",
                args: tiled([kw.min(5), kh.min(5)], sides),
                lengths: [64, 64],
            },
            Case { module: "natten", entry: "generate_morton_natten", args: grid(8, 8), lengths: [64, 64] },
            Case {
                module: "sta",
                entry: "generate_sta_mask_mod_2d",
                args: vec![
                    ("canvas_hw", tuple(&[8, 8])),
                    ("kernel_hw", tuple(&[even(self), even(self)])),
                    ("tile_hw", tuple(&[2, 2])),
                    ("text_seq_len", int(text)),
                ],
                lengths: [64 + text; 2],
            },
            Case {
                module: "sta",
                entry: "generate_sta_mask_mod_3d",
                args: vec![
                    ("canvas_twh", tuple(&[4, 6, 4])),
                    ("kernel_twh", tuple(&[2, even(self).min(6), 2])),
                    ("tile_twh", tuple(&[2, 2, 2])),
                    ("text_seq_len", int(text)),
                ],
                lengths: [96 + text; 2],
            },
            Case { module: "svg", entry: "generate_spatial_head_mask_mod", args: spatial, lengths: video },
            Case { module: "svg", entry: "generate_temporal_head_mask_mod", args: temporal, lengths: video },
        ]
    }
}

#[test]
fn every_block_of_attention_gyms_masks_is_right() {
    let Ok(package) = std::env::var("MASKLOOM_ATTN_GYM") else {
        maskloom_testing::needs::missing("gym", "MASKLOOM_ATTN_GYM names no folder with the attn_gym package");
        return;
    };
    let folder = Folder(package.into());
    let mut draw = Draw { rng: Rng::new(47), folder: &folder };
    let mut checked = 0;
    for _ in 0..3 {
        for case in draw.cases() {
            let source = folder.load(&format!("attn_gym.masks.{}", case.module)).expect("a module of attention-gym");
            let args = case.args.iter().map(|(name, arg)| (name.to_string(), arg.clone())).collect();
            let request =
                TraceRequest { args, loader: &folder, ..TraceRequest::new(source, case.entry, ModKind::Mask) };
            let traced = trace(&request);
            let reported = || traced.diagnostics.iter().map(|d| d.render()).collect::<String>();
            let mask = traced.result.as_ref().unwrap_or_else(|| panic!("{}: {}", case.entry, reported()));
            let [q, kv] = case.lengths;
            let shape = MaskShape { batch: 2, heads: 3, lengths: Lengths::new(q, kv).expect("lengths") };
            for _ in 0..2 {
                let size = BlockSize { q: draw.between(1, 32), kv: draw.between(1, 32) };
                check_all(case.entry, mask, shape, size);
            }
            checked += 1;
        }
    }
    println!("{checked} masks of attention-gym");
}
