"""The masks and score mods that attention kernels are compared by: 8192 tokens unless a factory says otherwise."""

import torch


def causal(b, h, q_idx, kv_idx):
    return q_idx >= kv_idx


def window(b, h, q_idx, kv_idx):
    return (q_idx >= kv_idx) & (q_idx - kv_idx < 1024)


def prefix(b, h, q_idx, kv_idx):
    return (kv_idx < 2048) | (q_idx >= kv_idx)


def natten(b, h, q_idx, kv_idx):
    rows = (q_idx // 64 - kv_idx // 64).abs() <= 6
    columns = (q_idx % 64 - kv_idx % 64).abs() <= 6
    return rows & columns


def documents(tokens: int = 8192):
    seeded = torch.Generator().manual_seed(0)
    cuts = torch.sort(torch.randint(1, tokens, (tokens // 1024 - 1,), generator=seeded)).values
    document = (torch.arange(tokens)[:, None] >= cuts[None, :]).sum(1)

    def mask_mod(b, h, q_idx, kv_idx):
        return (q_idx >= kv_idx) & (document[q_idx] == document[kv_idx])

    return mask_mod


def painted(blocks: int = 64):
    seeded = torch.Generator().manual_seed(0)
    kept = (torch.rand(blocks, blocks, generator=seeded) < 0.3) | (torch.arange(blocks)[:, None] == torch.arange(blocks)[None, :])

    def mask_mod(b, h, q_idx, kv_idx):
        return kept[q_idx // 128, kv_idx // 128]

    return mask_mod


def every_third(b, h, q_idx, kv_idx):
    """No block is full and none is empty, and few of them differ."""
    return (q_idx * 7 + kv_idx * 13) % 3 != 0


def holes():
    """No block is full, none is empty, and no two are alike."""
    kept = torch.rand(65521, generator=torch.Generator().manual_seed(0)) < 0.95

    def mask_mod(b, h, q_idx, kv_idx):
        return kept[(q_idx * 8191 + kv_idx) % 65521]

    return mask_mod


def alibi(heads: int = 16):
    slopes = torch.exp2(-torch.arange(1, heads + 1) * 8.0 / heads)

    def score_mod(score, b, h, q_idx, kv_idx):
        return score + slopes[h] * (kv_idx - q_idx)

    return score_mod


def soft_cap(score, b, h, q_idx, kv_idx):
    return 50.0 * torch.tanh(score / 50.0)


def relative_bias(heads: int = 16, tokens: int = 8192):
    table = torch.randn(heads, 2 * tokens - 1, generator=torch.Generator().manual_seed(0))

    def score_mod(score, b, h, q_idx, kv_idx):
        return score + table[h, q_idx - kv_idx + (tokens - 1)]

    return score_mod


def alibi_fixed(heads: int = 16):
    """ALiBi without a tensor that learns."""

    def score_mod(score, b, h, q_idx, kv_idx):
        return score + torch.exp2(-(h + 1) * (8.0 / heads)) * (kv_idx - q_idx)

    return score_mod


def relative_fixed(heads: int = 16, tokens: int = 8192):
    """A table of distances that does not learn."""
    table = torch.randn(heads, 2 * tokens - 1, generator=torch.Generator().manual_seed(0))

    def score_mod(score, b, h, q_idx, kv_idx):
        return score + table[h, q_idx - kv_idx + (tokens - 1)].detach()

    return score_mod


def key_bias(tokens: int = 8192):
    bias = torch.randn(tokens, generator=torch.Generator().manual_seed(0))

    def score_mod(score, b, h, q_idx, kv_idx):
        return score + bias[kv_idx]

    return score_mod


def query_gate(tokens: int = 8192):
    gate = torch.rand(tokens, generator=torch.Generator().manual_seed(0)) + 0.5

    def score_mod(score, b, h, q_idx, kv_idx):
        return score * gate[q_idx]

    return score_mod


def dense_bias(tokens: int = 2048):
    """A bias of every cell, for all heads alike."""
    bias = torch.randn(tokens, tokens, generator=torch.Generator().manual_seed(0))

    def score_mod(score, b, h, q_idx, kv_idx):
        return score + bias[q_idx, kv_idx]

    return score_mod
