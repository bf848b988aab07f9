"""The package's flex_attention under torch.compile(fullgraph=True): one graph, and never older than what its mods read.

python package_compile.py [inductor]   (with it also a model under Inductor, whose C++ takes a minute)
"""

import subprocess
import sys
import tempfile

import package
import torch
import torch._dynamo
from torch._dynamo.testing import CompileCounterWithBackend

maskloom = package.found()
from maskloom._call import _without_compiler, reads_closures  # noqa: E402

B, H, S, D = 2, 2, 64, 16


def inputs(tokens=S, seed=0):
    draw = torch.Generator().manual_seed(seed)
    return [torch.randn(B, H, tokens, D, generator=draw).requires_grad_() for _ in range(3)]


def documents(doc):
    return lambda b, h, q, kv: (doc[q] == doc[kv]) & (q >= kv)


def window(width):
    return lambda b, h, q, kv: (q >= kv) & (q - kv < width)


def bias_of(table, factor=1.0):
    return lambda score, b, h, q, kv: score * factor + table[h, (q - kv).clamp(-4, 4) + 4]


def attend(q, k, v, score_mod, mask):
    out, lse = maskloom.flex_attention(q * 1.0, k, v, score_mod, mask, return_lse=True)
    return out * 2, lse


def both(compiled, q, k, v, score_mod, mask, learned=()):
    """The compiled call has the results and gradients of the plain one, bit by bit."""
    results = []
    for function in (attend, compiled):
        out, lse = function(q, k, v, score_mod, mask)
        grads = torch.autograd.grad(out.square().sum() + lse.sum(), [q, k, v, *learned])
        results.append([out, lse, *grads])
    for a, b in zip(*results):
        assert torch.equal(a, b), (a - b).abs().max()


def made(mod, tokens=S):
    return maskloom.create_block_mask(mod, None, None, tokens, tokens, device="cpu", BLOCK_SIZE=16)


def one_graph(backend):
    """Masks, captured tensors with gradients, other values, numbers and lengths."""
    torch._dynamo.reset()
    counter = CompileCounterWithBackend(backend)
    compiled = torch.compile(attend, fullgraph=True, backend=counter)
    q, k, v = inputs()
    both(compiled, q, k, v, None, None)
    both(compiled, q, k, v, None, made(window(20)))
    both(compiled, q, k, v, None, made(window(7)))
    doc = torch.arange(S) // 10
    both(compiled, q, k, v, None, made(documents(doc)))
    frames = counter.frame_count
    both(compiled, q, k, v, None, made(documents(torch.arange(S) // 23)))
    assert counter.frame_count == frames, "another document mask compiled again"
    table = torch.randn(H, 9).requires_grad_()
    both(compiled, q, k, v, bias_of(table), made(documents(doc)), [table])
    frames = counter.frame_count
    other = torch.randn(H, 9).requires_grad_()
    both(compiled, q, k, v, bias_of(other), made(documents(torch.arange(S) // 5)), [other])
    assert counter.frame_count == frames, "another bias compiled again"
    both(compiled, q, k, v, bias_of(other, 0.5), made(documents(doc)), [other])
    with torch.no_grad():
        table += 1
    both(compiled, q, k, v, bias_of(table), made(documents(doc)), [table])
    for tokens in (48, 80, 96):
        both(compiled, *inputs(tokens, tokens), None, made(window(9), tokens))


def other_lengths(backend):
    """Tensors that mods read are as long as the sequence: one graph serves all lengths."""
    torch._dynamo.reset()
    counter = CompileCounterWithBackend(backend)
    compiled = torch.compile(attend, fullgraph=True, backend=counter)
    for at, tokens in enumerate((48, 80, 96, 112, 80)):
        doc = torch.arange(tokens) // (7 + at)
        table = torch.randn(tokens, generator=torch.Generator().manual_seed(at)).requires_grad_()
        by_key = lambda score, b, h, q, kv, table=table: score + table[kv]
        both(compiled, *inputs(tokens, tokens), by_key, made(documents(doc), tokens), [table])
        if at == 1:
            frames = counter.frame_count
    assert counter.frame_count == frames, "another length compiled again"
    # two tensors that are equal at one length each get their own gradient
    first, second = (torch.zeros(72, requires_grad=True) for _ in range(2))
    torch._dynamo.reset()
    pair = lambda score, b, h, q, kv: score + first[kv] - second[q]
    compiled = torch.compile(attend, fullgraph=True, backend=counter)
    with torch.no_grad():
        second += 1
    both(compiled, *inputs(72), pair, None, [first, second])
    for tokens in (40, 56):
        first, second = (torch.zeros(tokens, requires_grad=True) for _ in range(2))
        pair = lambda score, b, h, q, kv, first=first, second=second: score + first[kv] - second[q]
        both(compiled, *inputs(tokens), pair, None, [first, second])


class Layer(torch.nn.Module):
    """Attention and an MLP, each after a norm."""

    def __init__(self, width=64, heads=4):
        super().__init__()
        self.heads = heads
        self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(width) for _ in range(2))
        self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def forward(self, x, mask):
        batch, tokens, width = x.shape
        split = (batch, tokens, self.heads, width // self.heads)
        q, k, v = (part.view(split).transpose(1, 2) for part in self.qkv(self.norms[0](x)).chunk(3, -1))
        out = maskloom.flex_attention(q, k, v, None, mask)
        x = x + self.out(out.transpose(1, 2).reshape(x.shape))
        return x + self.down(torch.nn.functional.gelu(self.up(self.norms[1](x))))


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(Layer() for _ in range(2))

    def forward(self, x, mask):
        for layer in self.layers:
            x = layer(x, mask)
        return x


def under_inductor():
    """A model over packed documents of six lengths: two graphs, and the plain model's outputs and gradients."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    model, counter = Model(), CompileCounterWithBackend("inductor")
    compiled = torch.compile(model, fullgraph=True, backend=counter)
    for tokens in (64, 48, 80, 96, 112, 200):
        x, mask = torch.randn(2, tokens, 64), made(documents(torch.arange(tokens) // 13), tokens)
        results = []
        for run in (model, compiled):
            out = run(x, mask)
            results.append([out, *torch.autograd.grad(out.square().mean(), list(model.parameters()))])
        apart = [float((a - b).abs().max()) for a, b in zip(*results)]
        print(f"{tokens} tokens: outputs within {apart[0]:.1e}, gradients within {max(apart[1:]):.1e}", flush=True)
        assert apart[0] < 2e-6 and max(apart[1:]) < 2e-6
    assert counter.frame_count == 2, counter.frame_count


def extents():
    """A mod that asks for a tensor's length is compiled for each of them."""
    torch._dynamo.reset()
    compiled = torch.compile(attend, fullgraph=True, backend="eager")
    for tokens in (48, 80, 96):
        doc = torch.zeros(tokens, dtype=torch.int64)
        late = lambda b, h, q, kv, doc=doc: (doc[q] == doc[kv]) & (kv < doc.shape[0] - 20)
        both(compiled, *inputs(tokens), None, made(late, tokens))


def refusals():
    """What a compiled graph would not see change."""
    q, k, v = inputs()
    state = {"width": 3}
    doc = torch.arange(S) // 9
    for mod in (
        lambda b, h, q, kv: q - kv < state["width"],
        lambda b, h, q, kv: q - kv < S,
        lambda b, h, q, kv: q - kv < int(doc.max()),
    ):
        torch._dynamo.reset()
        try:
            torch.compile(attend, fullgraph=True, backend="eager")(q, k, v, None, made(mod))
        except Exception as why:
            assert "compiled graph does not see" in str(why), why
        else:
            raise AssertionError("accepted")


def lists_that_were_replaced():
    """They are not compared in a graph."""
    mask = made(window(20))
    mask.kv_num_blocks = torch.zeros_like(mask.kv_num_blocks)
    torch._dynamo.reset()
    try:
        torch.compile(attend, fullgraph=True, backend="eager")(*inputs(), None, mask)
    except Exception as why:
        assert "lists of block_mask were replaced" in str(why), why
    else:
        raise AssertionError("accepted")


class Attention(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.mask = made(window(width))

    def forward(self, q, k, v):
        return maskloom.flex_attention(q, k, v, block_mask=self.mask)


def exported(folder):
    """A program names its mods: in a process that has not recorded them it is refused, and never has another mask."""
    qkv = [t.detach() for t in inputs()]
    program = torch.export.export(Attention(9), tuple(qkv))
    want = Attention(9)(*qkv)
    assert torch.equal(program.module()(*qkv), want)
    torch.export.save(program, f"{folder}/program.pt2")
    torch.save((qkv, want), f"{folder}/values.pt")
    ran = subprocess.run([sys.executable, __file__, "load", folder], capture_output=True, text=True)
    assert ran.returncode == 0 and "another process" in ran.stdout, ran.stdout + ran.stderr


def load(folder):
    qkv, want = torch.load(f"{folder}/values.pt")
    Attention(9)(*qkv)  # a program is read where its operators are known
    program = torch.export.load(f"{folder}/program.pt2").module()
    for width in (3, 30):
        torch.export.export(Attention(width), tuple(qkv))
        try:
            program(*qkv)
            raise AssertionError("another mask")
        except maskloom.ArgumentError as why:
            print(why)
    torch.export.export(Attention(9), tuple(qkv))
    assert torch.equal(program(*qkv), want)


def between_graphs():
    """Before PyTorch 2.7 nothing of a call is compiled, and its results are those of a plain one."""
    alone = maskloom.flex_attention
    if reads_closures():
        alone = _without_compiler(maskloom.flex_attention, torch._C._dynamo.eval_frame)
    nodes = []

    def backend(graph, inputs):
        nodes.extend(str(node.target) for node in graph.graph.nodes if node.op.startswith("call"))
        return graph.forward

    def outside(q, k, v, score_mod, mask):
        out, lse = alone(q * 1.0, k, v, score_mod, mask, return_lse=True)
        return out * 2, lse

    table = torch.randn(H, 9).requires_grad_()
    torch._dynamo.reset()
    compiled = torch.compile(outside, backend=backend)
    for width in (7, 20):
        both(compiled, *inputs(seed=width), bias_of(table), made(window(width)), [table])
    assert len(nodes) == 2 and not any("maskloom" in node for node in nodes), nodes
    try:
        torch.compile(outside, backend=backend, fullgraph=True)(*inputs(), None, None)
    except torch._dynamo.exc.Unsupported:
        return
    raise AssertionError("one graph")


if "load" in sys.argv:
    load(sys.argv[2])
    sys.exit(0)
if reads_closures():
    one_graph("eager")
    one_graph("aot_eager")
    other_lengths("aot_eager")
    extents()
    if "inductor" in sys.argv:
        under_inductor()
    refusals()
    lists_that_were_replaced()
    with tempfile.TemporaryDirectory() as folder:
        exported(folder)
between_graphs()
print("compiled calls have one graph and the results of plain ones")
