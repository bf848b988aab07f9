import torch
from torch.nn.attention.flex_attention import noop_mask


def document_mask(mask: "mask_mod" = noop_mask, lengths: tuple = (1024, 512, 2048, 512), total: int = 4096):
    """Any mask, applied inside each of several packed documents with positions counted from the document's start.

    `d[q_idx] == d[kv_idx] and mask(q_idx - start[d], kv_idx - start[d])`.

    Source: attention-gym's generate_doc_mask_mod.

    Args:
        mask: the mask inside a document
        lengths: tokens of each document, in order
        total: tokens of the sequence [1..q_len] follows q_len
    """
    rest = total - sum(lengths)
    assert rest >= 0, f"the documents have {sum(lengths)} tokens, the sequence only {total}"
    sizes = torch.tensor(list(lengths) + [rest])
    document = torch.repeat_interleave(torch.arange(len(sizes)), sizes)
    start = torch.cumsum(sizes, 0) - sizes

    def mask_mod(b, h, q_idx, kv_idx):
        first = start[document[q_idx]]
        return (document[q_idx] == document[kv_idx]) & mask(b, h, q_idx - first, kv_idx - first)

    return mask_mod
