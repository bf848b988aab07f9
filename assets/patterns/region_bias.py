import torch


def region_bias(text: int = 512, gain: float = 1.0):
    """Image queries attend more to the text: `score + gain` where the query is image and the key text.

    Source: the attention reweighting of Prompt-to-Prompt, arXiv:2208.01626, as an additive bias.

    Args:
        text: text tokens, which come first [0..q_len] follows text.len
        gain: added to the score; negative weakens the text [-4..4 step 0.05]
    """

    def score_mod(score, b, h, q_idx, kv_idx):
        return torch.where((q_idx >= text) & (kv_idx < text), score + gain, score)

    return score_mod
