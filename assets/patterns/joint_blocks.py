def joint_blocks(text: int = 512, text_sees_image: bool = False, image_sees_text: bool = True):
    """Text and image each see themselves; whether they see each other is chosen.

    Source: the joint attention of MMDiT, Esser et al., arXiv:2403.03206, taken apart.

    Args:
        text: text tokens, which come first [0..q_len] follows text.len
        text_sees_image: whether text queries see image keys
        image_sees_text: whether image queries see text keys
    """

    def mask_mod(b, h, q_idx, kv_idx):
        q_text = q_idx < text
        kv_text = kv_idx < text
        keep = q_text == kv_text
        if text_sees_image:
            keep = keep | q_text
        if image_sees_text:
            keep = keep | kv_text
        return keep

    return mask_mod
