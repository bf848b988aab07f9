import torch


def packed_targets(contexts: tuple = (1024, 512), targets: tuple = (1024, 512), total: int = 4096):
    """Packed samples of a context and its targets: the context is causal, a target sees the context and itself, no other target.

    What is left of the sequence belongs to no sample and is a causal context of its own. Samples that reach beyond it are cut.

    Source: HSTU, arXiv:2402.17152; the packed mask of NVIDIA's benchmark of cudnn.flex_attention.

    Args:
        contexts: tokens of each sample's context, in order
        targets: tokens of each sample's targets, in order
        total: tokens of the sequence [1..q_len] follows q_len
    """
    assert len(contexts) == len(targets), f"there are {len(contexts)} contexts and {len(targets)} numbers of targets"
    rest = max(0, total - sum(contexts) - sum(targets))
    parts = [size for pair in zip(contexts, targets) for size in pair] + [rest]
    part = torch.repeat_interleave(torch.arange(len(parts)), torch.tensor(parts))[:total]

    def mask_mod(b, h, q_idx, kv_idx):
        own, other = part[q_idx], part[kv_idx]
        context = (own // 2 == other // 2) & (other % 2 == 0)
        return ((q_idx >= kv_idx) & context) | (q_idx == kv_idx)

    return mask_mod
