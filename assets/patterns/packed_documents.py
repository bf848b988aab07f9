import torch


def packed_documents(lengths: tuple = (1024, 512, 2048, 512), causal: bool = True, total: int = 4096):
    """Several documents packed into one sequence; each token sees its own document only.

    `document[q_idx] == document[kv_idx]`, and causal inside where wanted. Tokens after the last document belong to one
    more, the padding, which sees itself only.

    Source: attention-gym's document masks; Krell et al., sequence packing, arXiv:2107.02027.

    Args:
        lengths: tokens of each document, in order
        causal: whether a token sees only itself and what stands before it
        total: tokens of the sequence [1..q_len] follows q_len
    """
    rest = total - sum(lengths)
    assert rest >= 0, f"the documents have {sum(lengths)} tokens, the sequence only {total}"
    sizes = list(lengths) + [rest]
    document = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))

    def same_document(b, h, q_idx, kv_idx):
        return document[q_idx] == document[kv_idx]

    def causal_document(b, h, q_idx, kv_idx):
        return (q_idx >= kv_idx) & (document[q_idx] == document[kv_idx])

    return causal_document if causal else same_document
