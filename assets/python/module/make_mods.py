

def make_mods(device: Device) -> tuple[MaskMod | None, ScoreMod | None]:
    """mask_mod and score_mod with their captured tensors on `device`; None for an absent mod."""
    name = f"mods_{str(device).replace(':', '_')}"
    mods = globals().get(name)
    if mods is None:
        # only such tensors are cached: torch.export's have no values, and those of inference mode have no backward pass
        with torch.inference_mode(False), _disable_current_modes():
            mods = globals()[name] = _mods(torch.device(device))
        for mod in mods:
            if mod is not None:
                # pickled by name: another process creates it again
                mod.__qualname__ = mod.__name__ if name == "mods_cpu" else f"{mod.__name__}_{name}"
                globals()[mod.__qualname__] = mod
    return cast("tuple[MaskMod | None, ScoreMod | None]", mods)


def __getattr__(name: str) -> object:
    """The mods of a device, which pickled block masks name."""
    for mod in ("mask_mod", "score_mod"):
        if name.startswith(f"{mod}_mods_"):
            kind, _, index = name.removeprefix(f"{mod}_mods_").partition("_")
            make_mods(f"{kind}:{index}" if index else kind)
            return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


mask_mod, score_mod = make_mods("cpu")
