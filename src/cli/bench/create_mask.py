"""PyTorch's eager create_mask, timed for `maskloom bench language`: one JSON request a line, one answer a line.

{"text": mask_mod's Python text, "q_len", "kv_len"} makes the mask once and answers its kept cells by row and by column;
{"time": true} makes it again and answers {"ms": ...}.
"""

import json
import sys
import time

import torch
from torch.nn.attention.flex_attention import create_mask

torch.set_num_threads(int(sys.argv[1]))
print(json.dumps({"torch": torch.__version__, "threads": torch.get_num_threads()}), flush=True)

mask_mod, shape = None, (0, 0)
for line in sys.stdin:
    request = json.loads(line)
    try:
        if "text" in request:
            names = {"__name__": "workload"}
            exec(compile(request["text"], "workload.py", "exec"), names)
            mask_mod, shape = names["mask_mod"], (request["q_len"], request["kv_len"])
            mask = create_mask(mask_mod, 1, 1, *shape, device="cpu")[0, 0]
            answer = {"rows": mask.sum(1).tolist(), "columns": mask.sum(0).tolist()}
            del mask
        else:
            start = time.perf_counter()
            create_mask(mask_mod, 1, 1, *shape, device="cpu")
            answer = {"ms": (time.perf_counter() - start) * 1e3}
    except Exception as why:
        answer = {"error": f"{type(why).__name__}: {why}"}
    print(json.dumps(answer), flush=True)
