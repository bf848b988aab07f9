"""Masks and score mods of an installed attention-gym with the cells that PyTorch computes: `python make_gym_cases.py SEED > cases.json`.

The integration test `attention_gym_traces_unmodified` runs it: nothing that it prints is kept, and no text of the package stands
here. A case names a module of the package, a function in it and its arguments; lengths and parameters are drawn anew by the seed.
Public generators without a case are named on stderr, so that a new release of the package is seen.
"""

import base64
import importlib
import json
import random
import sys
import warnings

import torch
from torch.nn.attention.flex_attention import create_mask

torch.set_num_threads(1)
warnings.filterwarnings("ignore")
B, H = 2, 3
SEED = int(sys.argv[1]) if len(sys.argv) > 1 else 1
DRAWN, GENERATOR = random.Random(SEED), torch.Generator().manual_seed(SEED)


class Mod:
    """A mask as an argument: the package's function, called with `kwargs` or, without them, taken as it is."""

    def __init__(self, module: str, function: str, **kwargs):
        self.module, self.function, self.kwargs = f"attn_gym.masks.{module}", function, kwargs

    def made(self):
        function = getattr(importlib.import_module(self.module), self.function)
        return function(**self.kwargs) if self.kwargs else function


def between(low: int, high: int) -> int:
    return DRAWN.randint(low, high)


def floats(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=GENERATOR)


def ints(high: int, *shape: int) -> torch.Tensor:
    return torch.randint(0, high, shape, generator=GENERATOR, dtype=torch.int32)


def offsets(documents: int, total: int) -> torch.Tensor:
    cuts = DRAWN.sample(range(1, total), documents - 1)
    return torch.tensor([0, *sorted(cuts), total], dtype=torch.int32)


def inner() -> Mod:
    return DRAWN.choice(
        [
            Mod("causal", "causal_mask"),
            Mod("sliding_window", "generate_sliding_window", window_size=between(1, 20)),
            Mod("prefix_lm", "generate_prefix_lm_mask", prefix_length=between(1, 20)),
        ]
    )


def base64_of(tensor: torch.Tensor) -> str:
    return base64.b64encode(tensor.contiguous().numpy().tobytes()).decode()


def written(value):
    """An argument as JSON: tensors by their bytes, tuples and masks by name."""
    if isinstance(value, torch.Tensor):
        dtype = str(value.dtype).removeprefix("torch.")
        return {"tensor": {"dtype": dtype, "shape": list(value.shape), "data": base64_of(value)}}
    if isinstance(value, tuple):
        return {"tuple": [written(item) for item in value]}
    if isinstance(value, Mod):
        kwargs = {name: written(item) for name, item in value.kwargs.items()}
        return {"mod": {"module": value.module, "function": value.function, "factory": bool(value.kwargs), "kwargs": kwargs}}
    return value


def python(value):
    return value.made() if isinstance(value, Mod) else value


def scores(mod, q_len: int, kv_len: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Scores and what the mod makes of each."""
    given = 4 * floats(B, H, q_len, kv_len)
    for dims in ((0, None, None, None, 0), (0, None, None, 0, None), (0, None, 0, None, None), (0, 0, None, None, None)):
        mod = torch.vmap(mod, in_dims=dims)
    counts = [torch.arange(n, dtype=torch.int32) for n in (B, H, q_len, kv_len)]
    return given, mod(given, *counts)


def case(package: str, module: str, function: str, q_len: int, kv_len: int, **kwargs) -> dict:
    """One case with its cells; a function without arguments is the mod itself."""
    path = f"attn_gym.{package}.{module}"
    made = getattr(importlib.import_module(path), function)
    factory, is_score = function.startswith(("generate_", "batchify_")), package == "mods"
    mod = made(**{name: python(value) for name, value in kwargs.items()}) if factory else made
    shown = ", ".join(f"{name}={value}" for name, value in kwargs.items() if isinstance(value, (int, float, tuple)))
    fields = {
        "name": f"{function}({shown})",
        "module": path,
        "function": function,
        "factory": factory,
        "score": is_score,
        "kwargs": {name: written(value) for name, value in kwargs.items()},
        "B": B,
        "H": H,
        "q_len": q_len,
        "kv_len": kv_len,
    }
    if is_score:
        given, want = scores(mod, q_len, kv_len)
        return fields | {"input": base64_of(given), "want": base64_of(want.float())}
    return fields | {"want": base64_of(create_mask(mod, B, H, q_len, kv_len, device="cpu"))}


def lines() -> list[dict]:
    """Masks over a line of tokens, and packed documents."""
    q, kv, total = between(12, 50), between(12, 50), between(20, 50)
    marked = ints(8, max(q, kv)) == 0
    starts = offsets(4, total)
    return [
        case("masks", "causal", "causal_mask", q, kv),
        case("masks", "sliding_window", "generate_sliding_window", q, kv, window_size=between(0, 30)),
        case(
            "masks",
            "dilated_sliding_window",
            "generate_dilated_sliding_window",
            q,
            kv,
            window_size=between(0, 30),
            dilation=between(1, 5),
        ),
        case(
            "masks",
            "global_sliding_window",
            "generate_global_sliding_window",
            q,
            kv,
            window_size=between(0, 10),
            is_global=marked,
        ),
        case("masks", "prefix_lm", "generate_prefix_lm_mask", q, kv, prefix_length=between(0, 30)),
        case("masks", "document_mask", "generate_doc_mask_mod", total, total, mask_mod=inner(), offsets=starts),
        case("masks", "document_mask", "generate_packed_causal_doc_mask_mod", total, total, offsets=starts),
        case("masks", "batchify", "batchify_mask_mod", q, kv, mask_mod=inner(), batchify_size=between(3, 20)),
        case(
            "masks",
            "shared_prefix",
            "generate_shared_prefix_mask_mod",
            total,
            total,
            offsets=starts,
            prefix_document_id=torch.tensor([0, 0, between(0, 2), between(0, 2)], dtype=torch.int32),
        ),
    ]


def drafts() -> list[dict]:
    """Masks of decoding, training and cross attention."""
    step, prefix, nodes, words = between(2, 6), between(0, 30), between(3, 20), between(3, 12)
    ancestors = torch.eye(nodes, dtype=torch.bool)
    for node in range(1, nodes):
        ancestors[node] |= ancestors[between(0, node - 1)]
    firsts = ints(20, 3, 1)
    tiles, of_a_tile = between(2, 5), between(2, 8)
    return [
        case(
            "masks",
            "block_diffusion",
            "generate_block_diffusion_mask",
            8 * step,
            8 * step,
            seq_len=4 * step,
            block_size=step,
        ),
        case(
            "masks",
            "jetspec",
            "generate_jetspec_tree_causal_mask_mod",
            nodes,
            prefix + nodes,
            prefix_length=prefix,
            ancestor_matrix=ancestors,
        ),
        case(
            "masks",
            "jetspec",
            "generate_jetspec_training_mask_mod",
            5 * step,
            prefix + 5 * step,
            prefix_length=prefix,
            block_size=step,
        ),
        case(
            "masks",
            "flamingo",
            "generate_vision_cross_attention_mask_mod",
            40,
            3 * words,
            intervals=torch.cat([firsts, firsts + 1 + ints(19, 3, 1)], dim=1),
            image_token_length=words,
        ),
        case(
            "masks",
            "vsa",
            "generate_vsa_mask_mod",
            tiles * of_a_tile,
            tiles * of_a_tile,
            topk_indices=ints(tiles, B, H, tiles, between(1, tiles)),
            tile_numel=of_a_tile,
            variable_block_sizes=DRAWN.choice([None, 1 + ints(of_a_tile, tiles)]),
        ),
    ]


def pictures() -> list[dict]:
    """Masks of images and videos."""
    w, h, text = between(4, 8), between(4, 7), between(0, 12)
    kernel_w, kernel_h = between(1, 4), between(1, 4)
    frames, of_a_frame, prompt = between(2, 4), 12, between(0, 12)
    even = lambda high: 2 * between(1, high)  # noqa: E731
    grid = {"kernel_w": kernel_w, "kernel_h": kernel_h}
    video = {"prompt_length": prompt, "num_frames": frames, "token_per_frame": of_a_frame, "width": between(1, 2)}
    video_tokens = prompt + frames * of_a_frame
    return [
        case("masks", "natten", "generate_natten", w * h, w * h, canvas_w=w, canvas_h=h, **grid),
        case(
            "masks",
            "natten",
            "generate_tiled_natten",
            64,
            64,
            W=8,
            H=8,
            K_W=kernel_w,
            K_H=kernel_h,
            T_W=even(1),
            T_H=2 * even(1),
        ),
        case("masks", "natten", "generate_morton_natten", 64, 64, canvas_w=8, canvas_h=8, **grid),
        case(
            "masks",
            "sta",
            "generate_sta_mask_mod_2d",
            64 + text,
            64 + text,
            canvas_hw=(8, 8),
            kernel_hw=(even(4), even(4)),
            tile_hw=(2, 2),
            text_seq_len=text,
        ),
        case(
            "masks",
            "sta",
            "generate_sta_mask_mod_3d",
            96 + text,
            96 + text,
            canvas_twh=(4, 6, 4),
            kernel_twh=(even(2), even(3), even(2)),
            tile_twh=(2, 2, 2),
            text_seq_len=text,
        ),
        case(
            "masks",
            "svg",
            "generate_spatial_head_mask_mod",
            video_tokens,
            video_tokens,
            **video,
            attn_sink=DRAWN.random() < 0.5,
            round_width=DRAWN.choice([4, 8]),
        ),
        case("masks", "svg", "generate_temporal_head_mask_mod", video_tokens, video_tokens, **video),
    ]


def biases() -> list[dict]:
    """Every score mod."""
    q, kv, buckets, hops = between(8, 24), between(8, 24), between(3, 8), between(1, 4)
    longest = max(q, kv)
    return [
        case("mods", "alibi", "generate_alibi_bias", q, kv, H=H),
        case("mods", "softcapping", "generate_tanh_softcap", q, kv, soft_cap=between(1, 40)),
        case("mods", "sandwich", "generate_sandwich_bias", q, kv, H=H, max_seq_len=longest, d_bar=8),
        case("mods", "activation", "generate_activation_score_mod", q, kv, offset=1.5),
        case(
            "mods",
            "graphormer",
            "generate_graphormer_spatial_bias",
            q,
            kv,
            spatial_bias=floats(H, buckets),
            distances=ints(buckets, B, longest, longest),
        ),
        case(
            "mods",
            "graphormer",
            "generate_graphormer_edge_bias",
            q,
            kv,
            edge_bias=floats(H, hops, buckets),
            path_edge_types=ints(buckets, B, longest, longest, hops),
            path_lengths=ints(hops + 1, B, longest, longest),
        ),
        case(
            "mods",
            "latent_attention",
            "generate_mla_rope_score_mod",
            q,
            kv,
            query_rope=floats(B, H, q, 8),
            key_rope=floats(B, 1, kv, 8),
            num_heads=H,
            scale=0.25,
        ),
    ]


def main() -> None:
    cases = lines() + drafts() + pictures() + biases()
    known = {made["function"] for made in cases}
    for package in ("masks", "mods"):
        public = vars(importlib.import_module(f"attn_gym.{package}"))
        missing = sorted(name for name in public if name.startswith("generate_") and name not in known)
        if missing:
            print(f"no case for {', '.join(missing)} of attn_gym.{package}", file=sys.stderr)
    json.dump(cases, sys.stdout)


if __name__ == "__main__":
    main()
