"""Random mask mods of mixed dtypes with the cells that PyTorch keeps: `python make_torch_masks.py COUNT SEED OUT.json`.

Every case is one expression over b, h, q, k and the captured tensors below; what PyTorch refuses is left out. Captured values
are small enough that float sums are exact in any order.
"""
import json, random, sys, warnings
import torch
from torch.nn.attention.flex_attention import create_mask

torch.set_num_threads(1)
warnings.filterwarnings("ignore")
B, H, Q, K = 2, 3, 12, 14

DTYPES = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64".split()


def captures():
    g = torch.Generator().manual_seed(1)
    out = {}
    for name in DTYPES:
        dtype = getattr(torch, name)
        for rank, tag in ((1, "v"), (2, "m")):
            shape = (16,) if rank == 1 else (16, 3)
            if dtype == torch.bool:
                t = torch.randint(0, 2, shape, generator=g).bool()
            elif dtype.is_floating_point:
                t = (torch.randn(shape, generator=g) * 3).to(dtype)
            else:
                info = torch.iinfo(dtype)
                lo, hi = max(info.min, -(2**33)), min(info.max, 2**33)
                t = torch.randint(lo, hi, shape, generator=g).to(dtype)
                t.view(-1)[::3] = torch.randint(0, 9, t.view(-1)[::3].shape, generator=g).to(dtype)
            out[f"{tag}_{name}"] = t
    return out


CAPS = captures()


class Gen:
    def __init__(self, seed):
        self.r = random.Random(seed)

    def pick(self, *xs):
        return self.r.choice(xs)

    def index(self):
        return self.pick("q", "k", "h", "b", "q", "k")

    def number(self, kind):
        r = self.r
        if kind == "int":
            return str(r.choice([0, 1, 2, 3, 5, 7, 9, 16, 100, 127, 200, 255, 300, 1000, 40000, 2**31 - 1, -1, -3, -130]))
        return repr(r.choice([0.1, 0.3, 0.5, 0.7, 1.0, 1.3, 2.5, -0.1, -1.5, 3.3, 100.7, 1e-3]))

    def tensor(self, kind):
        r = self.r
        names = {"int": DTYPES[1:6], "float": DTYPES[6:], "bool": ["bool"]}[kind]
        name = r.choice(names)
        if r.random() < 0.15:
            return f"m_{name}[{self.index()}, {r.randrange(3)}]"
        if r.random() < 0.12:
            return f"m_{name}[{self.index()}].{self.pick('sum', 'amax', 'amin')}()" if name not in ("bool", "float16", "bfloat16", "float32", "float64") else f"m_{name}[{self.index()}].{self.pick('any','all') if name=='bool' else self.pick('amax','amin')}()"
        return f"v_{name}[{self.index()}]"

    def int(self, d):
        r = self.r
        if d == 0:
            return self.pick(self.index(), self.index(), self.tensor("int"), self.number("int"))
        c = r.randrange(16)
        a = lambda: self.int(d - 1)
        if c < 5:
            return f"({a()} {self.pick('+', '-', '*', '&', '|', '^')} {a()})"
        if c == 5:
            return f"({a()} {self.pick('//', '%')} {self.pick('2','3','7','-3','16')})"
        if c == 6:
            return f"({a()} {self.pick('<<', '>>')} {self.pick('0','1','3','9','33','q','k','63','70')})"
        if c == 7:
            return f"({self.pick('-', '~')}{a()})"
        if c == 8:
            return f"torch.{self.pick('abs','sign','square')}({a()} + 0)"
        if c == 9:
            return f"torch.where({self.bool(d-1)}, {a()}, {a()})"
        if c == 10:
            return f"({a()} + 0*q).to(torch.{self.pick(*DTYPES[1:6])})"
        if c == 11:
            return f"({self.float(d-1)} * 1.0).to(torch.{self.pick(*DTYPES[1:6])})"
        if c == 12:
            return f"torch.{self.pick('minimum','maximum','fmin','fmax')}({self.tensor('int')}, {self.pick(self.tensor('int'), self.index())})"
        if c == 13:
            return f"({self.tensor('int')} ** {self.pick('2','3','0','5')})"
        if c == 14:
            return f"({self.tensor('int')}).clamp({self.pick('0','3','-5')}, {self.pick('9','300','100')})"
        return f"({self.bool(d-1)} + {self.pick('0', '1', self.index())})"

    def float(self, d):
        r = self.r
        if d == 0:
            return self.pick(f"({self.index()} * {self.number('float')})", self.tensor("float"), f"({self.index()} / {self.pick('3','7','10')})", f"({self.tensor('int')} * {self.number('float')})", self.number("float"))
        c = r.randrange(15)
        a = lambda: self.float(d - 1)
        if c < 4:
            return f"({a()} {self.pick('+', '-', '*', '/')} {a()})"
        if c == 4:
            return f"({a()} {self.pick('+', '-', '*')} {self.int(d-1)})"
        if c == 5:
            return f"({a()} {self.pick('//', '%')} {self.pick('0.3','1.3','-0.7','2')})"
        if c == 6:
            return f"torch.{self.pick('abs','floor','ceil','round','trunc','sign','square','relu','neg')}({a()} * 1.0 + 0.0*q)"
        if c == 7:
            return f"torch.where({self.bool(d-1)}, {a()}, {a()})"
        if c == 8:
            return f"({a()} + 0*q).to(torch.{self.pick(*DTYPES[6:])})"
        if c == 9:
            return f"torch.fmod({a()} + 0*q, {self.pick('0.3','1.3','-0.7','2')})"
        if c == 10:
            return f"torch.{self.pick('minimum','maximum','fmin','fmax')}({self.tensor('float')}, {self.tensor('float')})"
        if c == 11:
            return f"torch.round({a()} + 0*q, decimals={self.pick('1','2','-1')})"
        if c == 12:
            return f"({self.tensor('float')} ** {self.pick('2','3','-1','1','0')})"
        if c == 13:
            return f"({a()} + 0*q).clamp({self.pick('-1.5','0','0.1')}, {self.pick('0.3','2','5.5')})"
        return f"torch.div({a()}, {self.pick('0.3','7','-2')}, rounding_mode={self.pick(repr('floor'),repr('trunc'))})" if r.random() < .5 else f"({self.int(d-1)} / {self.pick('3','7','0.1')})"

    def bool(self, d):
        r = self.r
        if d == 0:
            return self.pick("(q >= k)", "(q > h)", f"{self.tensor('bool')}", f"({self.tensor('int')} > {self.index()})")
        c = r.randrange(10)
        cmp = self.pick("<", "<=", ">", ">=", "==", "!=")
        if c < 3:
            return f"({self.int(d-1)} {cmp} {self.int(d-1)})"
        if c < 7:
            return f"({self.float(d-1)} {cmp} {self.float(d-1)})"
        if c == 7:
            return f"({self.int(d-1)} {cmp} {self.float(d-1)})"
        if c == 8:
            return f"({self.bool(d-1)} {self.pick('&', '|', '^')} {self.bool(d-1)})"
        return f"(sum([{self.bool(d-1)}, {self.bool(0)}, (q > k)]) >= 2)"


def kept(text):
    scope = dict(CAPS, torch=torch)
    mod = eval(f"lambda b, h, q, k: {text}", scope)
    def mask(b, h, q, k):
        out = mod(b, h, q, k)
        return out
    return create_mask(mask, B, H, Q, K, device="cpu")


def main(count, seed, path):
    cases, tried = [], 0
    while len(cases) < count:
        g = Gen(seed * 1000003 + tried)
        tried += 1
        text = g.bool(g.r.choice([1, 2, 2, 3]))
        if text.count("[") + text.count("q") + text.count("k") < 2 or len(text) > 400:
            continue
        try:
            m = kept(text)
        except Exception as e:
            continue
        if m.dtype != torch.bool or m.shape != (B, H, Q, K):
            continue
        n = int(m.sum())
        if n in (0, m.numel()) and g.r.random() < 0.8:
            continue
        bits = "".join("1" if x else "0" for x in m.flatten().tolist())
        cases.append({"text": text, "kept": hex(int(bits[::-1], 2))[2:]})
    tensors = {n: {"dtype": str(t.dtype)[6:], "shape": list(t.shape), "values": [x if not isinstance(x, float) else float(x) for x in t.flatten().tolist()]} for n, t in CAPS.items()}
    with open(path, "w") as f:
        json.dump({"torch": torch.__version__, "batch": B, "heads": H, "q_len": Q, "kv_len": K, "tensors": tensors, "cases": cases}, f, indent=0)
    print(len(cases), "of", tried)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
