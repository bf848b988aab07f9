"""What Maskloom's worker in the user's own Python needs besides attention: refusals, tensor files, what is installed.

Lies next to maskloom_torch.py in the folder that both sides can read. Knows nothing of problems and masks.
"""

import contextlib
import importlib.metadata
import importlib.util
import json
import os
import sys
import types


class Refused(Exception):
    """What the user should read instead of a traceback: a code, what is wrong, what to do."""

    # whether PyTorch does not offer what was asked for: a refusal, and no failure
    refusal = False

    def __init__(self, code, message, hint=""):
        super().__init__(message)
        self.code, self.message, self.hint = code, message, hint


class NoGradient(Refused):
    """PyTorch gives no gradient here."""

    refusal = True


# ---- safetensors, so that the package need not be installed


def dtypes():
    import torch

    return {
        "BOOL": torch.bool, "U8": torch.uint8, "I8": torch.int8, "I16": torch.int16, "I32": torch.int32,
        "I64": torch.int64, "F16": torch.float16, "BF16": torch.bfloat16, "F32": torch.float32, "F64": torch.float64,
    }  # fmt: skip


def read_tensors(path):
    import torch

    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        body = bytearray(file.read())
    out = {}
    for name, info in header.items():
        if name != "__metadata__":
            start, end = info["data_offsets"]
            dtype = dtypes()[info["dtype"]]
            flat = torch.frombuffer(body, dtype=dtype, count=(end - start) // dtype.itemsize, offset=start) \
                if end > start else torch.empty(0, dtype=dtype)
            out[name] = flat.reshape(info["shape"])
    return out


def write_tensors(path, tensors):
    import torch

    names = {dtype: name for name, dtype in dtypes().items()}
    header, blobs, at = {}, [], 0
    for name, tensor in tensors.items():
        tensor = tensor.detach().cpu().contiguous()
        blob = tensor.reshape(-1).view(torch.uint8).numpy() if tensor.numel() else b""
        size = tensor.numel() * tensor.element_size()
        header[name] = {"dtype": names[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [at, at + size]}
        blobs.append(blob)
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for blob in blobs:
            file.write(memoryview(blob))


def provide_safetensors():
    """Exported modules read large captured tensors with safetensors; where it is not installed, ours is used."""
    if "safetensors" in sys.modules or importlib.util.find_spec("safetensors") is not None:
        return
    package, submodule = types.ModuleType("safetensors"), types.ModuleType("safetensors.torch")
    submodule.load_file = lambda path, device="cpu": {n: t.to(device) for n, t in read_tensors(path).items()}
    package.torch = submodule
    sys.modules.update({"safetensors": package, "safetensors.torch": submodule})


# ---- what is installed


def version_of(name):
    try:
        return importlib.metadata.version(name)
    except Exception:
        return None


def facts(device):
    try:
        import torch
    except ImportError as why:
        raise Refused("no-torch", f"{sys.executable} has no PyTorch that can be imported: {why}",
                      f"{sys.executable} -m pip install torch") from None
    named = ("torch", "triton", "flash-attn", "flash-attn-3", "flash-attn-4", "nvidia-cudnn-frontend", "nvidia-cutlass-dsl",
             "diffusers", "transformers")
    versions = {name: version_of(name) for name in named}
    versions["python"] = sys.version.split()[0]
    versions["torch"] = torch.__version__
    if torch.version.cuda:
        versions["torch cuda"] = torch.version.cuda
    with contextlib.suppress(Exception):
        if torch.backends.cudnn.is_available():
            versions["torch cudnn"] = str(torch.backends.cudnn.version())
    if device.startswith("cuda"):
        check_cuda(torch, device)
    name = torch.cuda.get_device_name(device) if device.startswith("cuda") else f"cpu ({torch.get_num_threads()} threads)"
    return {"versions": {k: v for k, v in versions.items() if v}, "device_name": name,
            "cuda": torch.cuda.is_available(), "flex_flash": flash_available(), "cudnn_flex": cudnn_available(),
            "capability": capability(torch, device)}


def capability(torch, device):
    """90 for compute capability 9.0; None without a GPU."""
    if not device.startswith("cuda"):
        return None
    major, minor = torch.cuda.get_device_capability(device)
    return 10 * major + minor


def check_cuda(torch, device):
    if torch.version.cuda is None:
        raise Refused("torch-without-cuda", f"this PyTorch ({torch.__version__}) is built without CUDA",
                      f"install a CUDA build: {sys.executable} -m pip install torch --index-url "
                      "https://download.pytorch.org/whl/cu128")
    if not torch.cuda.is_available():
        raise Refused("torch-no-gpu", f"PyTorch {torch.__version__} (CUDA {torch.version.cuda}) sees no GPU",
                      "update the driver to one for that CUDA version, or install a PyTorch built for the driver's")
    index = int(device.split(":")[1]) if ":" in device else 0
    if index >= torch.cuda.device_count():
        raise Refused("torch-no-gpu", f"PyTorch sees {torch.cuda.device_count()} GPUs; there is no {device}",
                      "choose another device, or check CUDA_VISIBLE_DEVICES")


def cudnn_available():
    """Whether the package cudnn has flex_attention, without importing it: that loads the library."""
    with contextlib.suppress(Exception):
        places = importlib.util.find_spec("cudnn").submodule_search_locations
        return any(os.path.isdir(os.path.join(place, "flex_attention")) for place in places)
    return False


def flash_available():
    try:
        return importlib.util.find_spec("flash_attn.cute") is not None
    except Exception:
        return False
