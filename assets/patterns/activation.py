import torch


def activation(function: str = "relu", offset: float = 1.0):
    """Another activation in softmax's place: `log(f(score) + offset)`, so that the weights become `f(score) + offset`.

    Softmax divides by their sum; undo it with the lse: `out * exp(lse) - offset * sum of the seen v` is `f(scores) @ v`.

    Source: attention-gym's activation score mods; Wortsman et al., replacing softmax with ReLU, arXiv:2309.08586.

    Args:
        function: relu, relu_squared, sigmoid or silu
        offset: keeps the logarithm's argument positive [0.3..8 step 0.1]
    """
    names = ["relu", "relu_squared", "sigmoid", "silu"]
    assert function in names, f"{function} is none of {names}"

    def f(score):
        if function == "relu":
            return score.clamp(min=0.0)
        if function == "relu_squared":
            positive = score.clamp(min=0.0)
            return positive * positive
        if function == "silu":
            return score * torch.sigmoid(score)
        return torch.sigmoid(score)

    def score_mod(score, b, h, q_idx, kv_idx):
        return torch.log(f(score) + offset)

    return score_mod
