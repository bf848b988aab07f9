import torch


def token_tree(depth: int = 5, breadth_first: bool = False, tokens: int = 4096, spread: int = 20, seed: int = 0):
    """A binary tree of texts in one sequence: a token sees its own text up to itself, and all texts above it.

    Texts are laid out depth first (a text, then everything below its first child, then below its second) or breadth first (level by
    level). Their lengths are drawn around the same length.

    Source: the tree masks of NVIDIA's benchmark of cudnn.flex_attention (cudnn-frontend, benchmark/flex_attention); training on trees
    of rollouts that share prefixes.

    Args:
        depth: levels of the tree [1..10]
        breadth_first: whether the texts are laid out level by level
        tokens: tokens of the sequence [1..q_len] follows q_len
        spread: percent by which a text is shorter or longer at most [0..50]
        seed: of the texts' lengths
    """
    count = 2**depth - 1
    order, waiting = [], [0]
    while waiting:
        text = waiting.pop(0 if breadth_first else -1)
        order.append(text)
        below = [child for child in (2 * text + 1, 2 * text + 2) if child < count]
        waiting += below if breadth_first else below[::-1]
    seen = torch.zeros(count, count, dtype=torch.bool)
    for text in range(count):
        above = text
        while above >= 0:
            seen[text, above] = True
            above = (above - 1) // 2 if above else -1
    share = torch.randint(100 - spread, 101 + spread, (count,), generator=torch.Generator().manual_seed(seed))
    ends = torch.cumsum(share, 0) * tokens // share.sum()
    text_of = torch.repeat_interleave(torch.tensor(order), torch.diff(ends, prepend=torch.zeros(1, dtype=torch.long)))

    def mask_mod(b, h, q_idx, kv_idx):
        return (q_idx >= kv_idx) & seen[text_of[q_idx], text_of[kv_idx]]

    return mask_mod
