import torch


def shared_prefixes(lengths: tuple = (512, 256, 256, 512, 256, 256), prefixes: tuple = (0, 0, 0, 3, 3, 3), total: int = 2048):
    """Several prompts, each with its answers: a token sees its own part causally, and all of the part it continues.

    `start[d] <= kv_idx <= q_idx`, or `d != p and start[p] <= kv_idx < start[p] + lengths[p]`, where d is the query's part
    and p the part that d continues; a prompt names itself. Tokens after the last part are one more part of their own.

    Source: attention-gym's shared prefix mask; Hydragen, arXiv:2402.05099.

    Args:
        lengths: tokens of each part (prompt or answer), in order
        prefixes: for each part the number of the part it continues; its own number for a prompt
        total: tokens of the sequence [1..q_len] follows q_len
    """
    assert len(lengths) == len(prefixes), f"{len(lengths)} parts need as many prefixes, not {len(prefixes)}"
    rest = total - sum(lengths)
    assert rest >= 0, f"the parts have {sum(lengths)} tokens, the sequence only {total}"
    sizes = torch.tensor(list(lengths) + [rest])
    part = torch.repeat_interleave(torch.arange(len(sizes)), sizes)
    start = torch.cumsum(sizes, 0) - sizes
    continues = torch.tensor(list(prefixes) + [len(prefixes)])

    def mask_mod(b, h, q_idx, kv_idx):
        own = part[q_idx]
        prefix = continues[own]
        itself = (start[own] <= kv_idx) & (kv_idx <= q_idx)
        before = (own != prefix) & (start[prefix] <= kv_idx) & (kv_idx < start[prefix] + sizes[prefix])
        return itself | before

    return mask_mod
