"""torchtitan's own Trainer with its Llama 3 on gloo: losses of a sequence that Maskloom divides, beside those of one
process.

usage: package_torchtitan.py

Left out where torchtitan is not installed. A processor stands for the GPU: torchtitan has no device "cpu". Packed
documents, other ones in each step; float32; AdamW.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import zlib

os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
STEPS, TOKENS, BLOCK, BATCH, VOCABULARY = 3, 192, 16, 2, 256

import package  # noqa: E402

maskloom = package.found()

import torch  # noqa: E402


class Processor:
    """What torchtitan asks of a device's module."""

    Stream = torch.cpu.Stream if hasattr(torch.cpu, "Stream") else None

    def __getattr__(self, name):
        return lambda *given, **more: None

    def current_device(self):
        return 0

    def get_device_name(self, *given):
        return "a processor"

    def get_device_properties(self, *given):
        import types

        return types.SimpleNamespace(total_memory=1 << 34, name="a processor")

    def memory_stats(self, *given):
        return {}


def on_a_processor():
    """Before torchtitan is imported."""
    torch._utils._get_available_device_type = lambda: "cpu"
    torch._utils._get_device_module = lambda kind: Processor()
    from torchtitan.tools import utils

    assert utils.device_type == "cpu"
    utils.get_local_device = lambda: torch.device("cpu")


def config(ranks, folder, dense):
    from dataclasses import dataclass

    from torchtitan.components.dataloader import BaseDataLoader
    from torchtitan.components.tokenizer import BaseTokenizer
    from torchtitan.models.llama3.config_registry import llama3_debugmodel

    class Documents(BaseDataLoader):
        """Packed documents of random tokens, the same on every rank."""

        @dataclass(kw_only=True, slots=True)
        class Config(BaseDataLoader.Config):
            pass

        def __init__(self, config, **more):
            self.step = 0

        def __iter__(self):
            while True:
                gen = torch.Generator().manual_seed(self.step)
                self.step += 1
                tokens = torch.randint(0, VOCABULARY, (BATCH, TOKENS + 1), generator=gen)
                positions = torch.zeros(BATCH, TOKENS, dtype=torch.int64)
                for row in range(BATCH):
                    cuts = sorted(torch.randperm(TOKENS - 1, generator=gen)[:4].add(1).tolist())
                    for start, end in zip([0, *cuts], [*cuts, TOKENS]):
                        positions[row, start:end] = torch.arange(end - start)
                yield {"input": tokens[:, :-1].contiguous(), "positions": positions}, tokens[:, 1:].contiguous()

        def state_dict(self):
            return {}

        def load_state_dict(self, state):
            pass

    class NoTokenizer(BaseTokenizer):
        @dataclass(kw_only=True, slots=True)
        class Config(BaseTokenizer.Config):
            pass

        def __init__(self, config, **more):
            super().__init__()

        def encode(self, *given, **more):
            return []

        def decode(self, *given, **more):
            return ""

        def get_vocab_size(self):
            return VOCABULARY

    made = llama3_debugmodel()
    model = made.model_spec.model
    model.layers = model.layers[:2]
    for layer in model.layers:
        layer.attention.inner_attention.block_size = BLOCK
    made.dataloader, made.tokenizer = Documents.Config(), NoTokenizer.Config()
    made.training.seq_len, made.training.local_batch_size, made.training.steps = TOKENS, BATCH, STEPS
    made.training.mixed_precision_param = "float32"
    made.training.disable_cuda_graphs = True
    made.debug.seed, made.dump_folder = 3, folder
    made.activation_checkpoint = None
    made.validator.enable = made.checkpoint.enable = False
    made.parallelism.pipeline_parallel_schedule = "1F1B"
    made.parallelism.context_parallel_degree = ranks
    if dense:
        made.override.imports = ["package_torchtitan.dense_attention"]
    else:
        # these two lines are what a user adds
        made.parallelism.context_parallel_load_balancer = "maskloom"
        made.override.imports = ["maskloom.integrations.torchtitan.attention"]
    return made


def dense_attention(config):
    """FlexAttention by its definition: PyTorch's has no gradients on a processor."""
    from dataclasses import dataclass

    from torchtitan.config.override import derive
    from torchtitan.models.common.attention import FlexAttention

    class Dense(FlexAttention):
        @dataclass(kw_only=True, slots=True)
        class Config(FlexAttention.Config):
            pass

        def forward(self, q_BLNH, k_BLNH, v_BLNH, *, attention_masks, scale=None, **more):
            q, k, v = (x.transpose(1, 2) for x in (q_BLNH, k_BLNH, v_BLNH))
            k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], 1) for x in (k, v))
            sizes = (q.shape[0], 1, q.shape[2], k.shape[2])
            at = [torch.arange(n).view([-1 if i == j else 1 for j in range(4)]) for i, n in enumerate(sizes)]
            kept = attention_masks.mask_mod(*at).expand(sizes)
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, kept, scale=scale).transpose(1, 2)

    return derive(config, Dense.Config)


@torch.no_grad()
def same_weights(model):
    """The same weights on any number of ranks: PyTorch's own draws differ by shard on a processor."""
    from torch.distributed.tensor import DTensor, distribute_tensor

    for name, parameter in model.named_parameters():
        gen = torch.Generator().manual_seed(zlib.crc32(name.encode()))
        whole = torch.randn(parameter.shape, generator=gen) * (0.1 if parameter.dim() > 1 else 0.3)
        whole += 1.0 if parameter.dim() == 1 else 0.0
        if isinstance(parameter, DTensor):
            own = distribute_tensor(whole, parameter.device_mesh, parameter.placements, src_data_rank=None)
            parameter.to_local().copy_(own.to_local())
        else:
            parameter.copy_(whole)


def train(ranks, folder, dense):
    """The losses of each step."""
    on_a_processor()
    sys.modules["package_torchtitan"] = sys.modules["__main__"]
    torch.set_num_threads(1)
    if dense:
        from torchtitan.config.override import override
        from torchtitan.models.common.attention import FlexAttention

        dense_attention.__module__ = "package_torchtitan"
        override(target=FlexAttention.Config, exact=True)(dense_attention)
    trainer = config(ranks, folder, dense).build()
    for part in trainer.model_parts[0].modules():
        if hasattr(part, "set_force_sum_reduction_for_comms"):
            # gloo has no PREMUL_SUM
            part.set_force_sum_reduction_for_comms(True)
    same_weights(trainer.model_parts[0])
    losses, calls = [], []
    trainer.metrics_processor.log = lambda step, loss, most, norm, **more: losses.append((loss, norm))
    trainer.metrics_processor.should_log = lambda step: True
    if not dense:
        from maskloom.integrations.torchtitan import PlannedAttention, PlannedMask

        planned = [part for part in trainer.model_parts[0].modules() if isinstance(part, PlannedAttention)]
        assert len(planned) == 2, planned
        right = trainer.post_dataloading_process

        def watched(*given):
            inputs, labels, more = right(*given)
            calls.append((inputs.shape, labels.shape, more["positions"].shape, type(more["attention_masks"])))
            return inputs, labels, more

        trainer.post_dataloading_process = watched
    trainer.train()
    if not dense:
        assert len(calls) == STEPS and all(kind is PlannedMask for *_, kind in calls), calls
        assert all(shapes[0] == shapes[1] == shapes[2] and shapes[0][1] < TOKENS for *shapes, _ in calls), calls
        refused(trainer)
    trainer.close()
    return losses


def refused(trainer):
    """A mask that nobody planned, a batch without a mask, settings that are unknown."""
    from maskloom.integrations import torchtitan as plugged

    layer = next(part for part in trainer.model_parts[0].modules() if isinstance(part, plugged.PlannedAttention))
    mask = maskloom.create_block_mask(lambda b, h, q, k: q >= k, None, None, 96, TOKENS, device="cpu", BLOCK_SIZE=BLOCK)
    x = torch.randn(1, 96, 2, 16)
    forward = plugged.PlannedAttention.forward
    prepare = plugged.trainer.prepare_context_parallel_input
    mesh = trainer.parallel_dims.get_mesh("cp")
    for code, work in (
        ("mask-lost", lambda: forward(layer, x, x, x, attention_masks=mask)),
        ("torchtitan", lambda: prepare(x, x, {"positions": x}, mesh, x.device, "maskloom")),
        ("torchtitan", lambda: plugged.attention(None, chunks=3)),
    ):
        try:
            work()
        except maskloom.MaskloomError as why:
            assert why.code == code and why.hint, why
        else:
            raise AssertionError(f"{code} was not raised")


def main():
    if importlib.util.find_spec("torchtitan") is None:
        print("left out: torchtitan is not installed")
        return
    with tempfile.TemporaryDirectory() as folder:
        found = {}
        for ranks, way in ((1, "dense"), (2, "plan"), (3, "plan")):
            began = []
            for rank in range(ranks):
                given = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": ranks, "MASTER_ADDR": "127.0.0.1"}
                given |= {"MASTER_PORT": 29600 + os.getpid() % 300 + ranks, "CUDA_VISIBLE_DEVICES": ""}
                env = os.environ | {name: str(value) for name, value in given.items()}
                out = f"{folder}/{way}{ranks}-{rank}.json"
                command = [sys.executable, __file__, str(ranks), way, out]
                began.append(
                    (subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT), out)
                )
            for process, out in began:
                said, _ = process.communicate(timeout=300)
                assert process.returncode == 0, said.decode()[-6000:]
                with open(out, encoding="utf-8") as of_rank:
                    found.setdefault((way, ranks), []).append(json.load(of_rank))
        want = found.pop(("dense", 1))[0]
        worst = 0.0
        for (_, ranks), of in found.items():
            for rank, losses in enumerate(of):
                assert len(losses) == STEPS == len(want)
                for (loss, norm), (other, other_norm) in zip(losses, want):
                    worst = max(worst, abs(loss - other) / other, abs(norm - other_norm) / other_norm)
                    assert worst < 2e-5, f"{ranks} ranks, rank {rank}: {losses}, one process: {want}"
        assert want[0][0] > want[-1][0] > 0 or abs(want[0][0] - want[-1][0]) > 1e-4, want
    text = ", ".join(f"{loss:.5f}" for loss, _ in want)
    print(f"torchtitan's losses and norms over 2 and 3 ranks are those of one process ({text}) to {worst:.1e}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        count, how, file = int(sys.argv[1]), sys.argv[2], sys.argv[3]
        losses = train(count, os.path.dirname(file), how == "dense")
        with open(file, "w", encoding="utf-8") as to:
            json.dump(losses, to)
        os._exit(0)
    main()
