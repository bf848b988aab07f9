import torch


def shared_prefix(prefix: int = 512, lengths: tuple = (256, 256, 256, 256), total: int = 2048):
    """One prompt, several answers: each answer sees the prompt and itself, causally, and no other answer.

    Source: attention-gym's shared_prefix; Hydragen, arXiv:2402.05099.

    Args:
        prefix: tokens of the shared prompt [0..q_len]
        lengths: tokens of each answer, in order
        total: tokens of the sequence [1..q_len] follows q_len
    """
    rest = total - prefix - sum(lengths)
    assert rest >= 0, f"prompt and answers have {prefix + sum(lengths)} tokens, the sequence only {total}"
    sizes = [prefix] + list(lengths) + [rest]
    part = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))

    def mask_mod(b, h, q_idx, kv_idx):
        return (q_idx >= kv_idx) & ((kv_idx < prefix) | (part[q_idx] == part[kv_idx]))

    return mask_mod
