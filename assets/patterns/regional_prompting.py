import torch


def regional_prompting(
    prompts: tuple = (128, 192, 192),
    boxes: tuple = ((0, 0, 64, 64), (0, 0, 64, 32), (0, 32, 64, 64)),
    canvas_h: int = 64,
    canvas_w: int = 64,
):
    """Several prompts, each for its own box of the image: a prompt sees itself and its box, the image sees itself whole.

    Text first: `prompts[i]` tokens for box i, (top, left, bottom, right) in image tokens, half-open. An image token sees
    the prompts whose boxes cover it; prompts do not see each other.

    Source: regional prompting for FLUX, arXiv:2411.02395.

    Args:
        prompts: text tokens of each prompt, in order
        boxes: top, left, bottom and right of each prompt's box, in image tokens
        canvas_h: rows of the image [1..512] follows image.h
        canvas_w: columns of the image [1..512] follows image.w
    """
    assert len(prompts) == len(boxes), f"{len(prompts)} prompts need as many boxes, not {len(boxes)}"
    text = sum(prompts)
    owner = torch.repeat_interleave(torch.arange(len(prompts)), torch.tensor(prompts))
    table = torch.tensor(boxes)

    def covers(prompt, pixel):
        y = pixel // canvas_w
        x = pixel % canvas_w
        inside_y = (y >= table[prompt, 0]) & (y < table[prompt, 2])
        return inside_y & (x >= table[prompt, 1]) & (x < table[prompt, 3])

    def mask_mod(b, h, q_idx, kv_idx):
        q_text = q_idx < text
        kv_text = kv_idx < text
        q_prompt = owner[q_idx.clamp(max=text - 1)]
        kv_prompt = owner[kv_idx.clamp(max=text - 1)]
        within_text = q_text & kv_text & (q_prompt == kv_prompt)
        text_to_box = q_text & ~kv_text & covers(q_prompt, kv_idx - text)
        box_to_text = ~q_text & kv_text & covers(kv_prompt, q_idx - text)
        return (~q_text & ~kv_text) | within_text | text_to_box | box_to_text

    return mask_mod
