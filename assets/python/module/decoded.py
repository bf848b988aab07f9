

def _decoded(text: str, dtype: torch.dtype, shape: tuple[int, ...]) -> Tensor:
    return torch.frombuffer(bytearray(base64.b64decode(text)), dtype=dtype).reshape(shape)
