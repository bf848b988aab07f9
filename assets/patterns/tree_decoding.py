import torch


def tree_decoding(prefix: int = 1024, parents: tuple = (-1, 0, 0, 1, 1, 2, 2)):
    """A draft tree after a prefix: a draft token sees the prefix, its ancestors and itself.

    The queries are the draft tokens alone (query i is key prefix + i). `parents[i]` is the parent of draft token i, -1
    for a root.

    Source: Medusa, arXiv:2401.10774; attention-gym's jetspec tree mask.

    Args:
        prefix: tokens before the tree [0..kv_len]
        parents: parent of each draft token, -1 for a root
    """
    count = len(parents)
    seen = torch.zeros(count, count, dtype=torch.bool)
    for node in range(count):
        step = node
        for _ in range(count):
            if step >= 0:
                seen[node, step] = True
                step = parents[step]

    def mask_mod(b, h, q_idx, kv_idx):
        draft = kv_idx - prefix
        inside = (draft >= 0) & (draft < count)
        return (kv_idx < prefix) | (inside & seen[q_idx.clamp(0, count - 1), draft.clamp(0, count - 1)])

    return mask_mod
