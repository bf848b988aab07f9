"""NVIDIA's cudnn.flex_attention of the user's own Python, for Maskloom's worker: masks as ranges of keys.

Lies next to maskloom_torch.py. Needs nvidia-cudnn-frontend 1.32 or newer. Knows nothing of files and messages, but for the ranges of a
mask, which it reads once.
"""

import os
import sys

from maskloom_beside import Refused, read_tensors, version_of
from maskloom_job import Prepared


def prepare(job):
    """Its pass on [B, H, S, D] views. Plans are made here, one without and, where gradients are wanted, one with the backward pass."""
    torch = job.torch
    try:
        import cudnn.flex_attention as flex
    except Exception as why:
        raise Refused("no-cudnn-flex", f"cudnn.flex_attention cannot be imported: {type(why).__name__}: {why}",
                      f"{sys.executable} -m pip install --upgrade nvidia-cudnn-frontend nvidia-cutlass-dsl") from None
    func = whole_batch(job, read_tensors(job.spec["mask_func"])["mask_func"])
    os.remove(job.spec["mask_func"])
    plans = {}

    def plan(backward):
        if backward not in plans:
            q, k, v = (t.transpose(1, 2) for t in job.copies[0])
            plans[backward] = flex.create_mask_plan(func, q, k, v, build_backward=backward)
        return plans[backward]

    def run(q, k, v, backward=False):
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        out, lse = flex.flex_attn_func(q, k, v, mask_plan=plan(backward), softmax_scale=job.scale, return_lse=True)
        return out.transpose(1, 2), lse

    try:
        run(*job.copies[0])
    except (ValueError, TypeError, NotImplementedError) as why:
        raise Refused("cudnn-flex-refused", f"cudnn.flex_attention refuses it: {why}", "use torch:flex, or flex") from why
    version = version_of("nvidia-cudnn-frontend")
    name = f"torch {torch.__version__} cudnn.flex_attention {version}, {job.spec['mask_words']}"
    ways = lambda _score_mod, _with_lse: [("", None, lambda q, k, v: run(q, k, v, backward=True))]
    return Prepared(job, name, run, ways, ("blocks", None), version)


def whole_batch(job, func):
    """int32 [H or 1, nfunc, B * q_len] on the device, of one whose rows are those of one or of all batch entries."""
    if not job.spec["mask_per_batch"]:
        func = func.repeat(1, 1, job.batch)
    return func.to(job.device, job.torch.int32).contiguous()
