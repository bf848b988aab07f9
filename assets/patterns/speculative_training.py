def speculative_training(prefix: int = 1024, steps: int = 4):
    """Draft groups of `steps` tokens after a prefix: a token sees the prefix and its own group up to its own step.

    `kv_idx < P or (q_idx // s == (kv_idx - P) // s and (kv_idx - P) % s <= q_idx % s)`; queries are the draft tokens.

    Source: attention-gym's jetspec training mask.

    Args:
        prefix: tokens before the groups [0..kv_len]
        steps: tokens of a group [1..64]
    """

    def mask_mod(b, h, q_idx, kv_idx):
        draft = kv_idx - prefix
        same = (q_idx // steps == draft // steps) & (draft % steps <= q_idx % steps)
        return (kv_idx < prefix) | same

    return mask_mod
