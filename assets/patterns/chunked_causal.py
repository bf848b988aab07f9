def chunked_causal(chunk: int = 8192):
    """Causal inside chunks of `chunk` tokens: `kv_idx <= q_idx and q_idx // chunk == kv_idx // chunk`.

    Source: Llama 4's local layers, chunk 8192 (transformers' Llama4TextConfig.attention_chunk_size).

    Args:
        chunk: tokens of a chunk [1..kv_len]
    """

    def mask_mod(b, h, q_idx, kv_idx):
        return (q_idx >= kv_idx) & (q_idx // chunk == kv_idx // chunk)

    return mask_mod
