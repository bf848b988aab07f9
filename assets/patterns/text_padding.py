import torch


def text_padding(text: int = 512, lengths: tuple = (384,), start: int = 0):
    """Padding of the text is seen by nobody: `kv_idx - start` is outside the text, or below the prompt's length.

    `lengths[b]` is the number of real text tokens of batch entry b (the last one serves further entries). The text begins
    at `start`: 0 for Flux and Qwen-Image (text, image), after the video for HunyuanVideo.

    Source: diffusers' joint attention of FLUX.1, Qwen-Image and HunyuanVideo.

    Args:
        text: text tokens, padding included [1..4096] follows text.len
        lengths: real text tokens of each batch entry [0..text]
        start: first text token [0..kv_len] follows text.start
    """
    real = torch.tensor(lengths)
    last = len(lengths) - 1

    def mask_mod(b, h, q_idx, kv_idx):
        k = kv_idx - start
        return (k < 0) | (k >= text) | (k < real[b.clamp(max=last)])

    return mask_mod
