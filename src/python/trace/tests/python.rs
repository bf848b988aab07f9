//! Python that an earlier version silently ran differently: each text asserts CPython 3.12's result, and keeps a causal
//! window of `W`.

use crate::python::trace::tests::*;

/// Runs the text; its own assertions report differences. Or it is refused in words.
#[track_caller]
fn as_python(text: &str) {
    let text = format!("{text}\nmod = lambda b, h, q, k: q >= k\n");
    let traced = trace(&request(&text, ModKind::Mask));
    let reported = said(&traced);
    assert!(traced.result.is_some() && !reported.contains("[skipped]"), "{reported}\n{text}");
}

#[track_caller]
fn refused(text: &str, code: &str) {
    let traced = trace(&request(&format!("{text}\nmod = lambda b, h, q, k: q - k < W\n"), ModKind::Mask));
    let first = traced.diagnostics.first().map(|d| d.code.to_string()).unwrap_or_default();
    assert!(traced.result.is_none() && first == code, "{}\n{text}", said(&traced));
}

#[test]
fn classes() {
    as_python("def twice(cls):\n    cls.w = cls.w * 2\n    return cls\n@twice\nclass C:\n    w = 4\nassert C.w == 8");
    as_python(
        "class Base:\n    known = []\n    def __init_subclass__(cls, tag=None, **kw):\n        Base.known.append((cls.__name__, tag))\n\
         class A(Base, tag='a'):\n    pass\nclass B(A):\n    pass\nassert Base.known == [('A', 'a'), ('B', None)], Base.known",
    );
    as_python(
        "class S:\n    def __init__(self):\n        self.x = 1\n    def __setattr__(self, name, value):\n        super().__setattr__(name, value * 2)\n\
         s = S()\ns.y = 5\nassert (s.x, s.y) == (2, 10), (s.x, s.y)",
    );
    as_python("class G:\n    def __getattr__(self, name):\n        return len(name)\nassert G().abc == 3");
    as_python(
        "class P:\n    def __str__(self):\n        return 'p'\n    def __repr__(self):\n        return 'P()'\n    def __format__(self, spec):\n        \
         return f'<{spec}>'\np = P()\nassert (f'{p}', f'{p!r}', f'{p:x}', str(p), repr(p), format(p, 'y')) == ('<>', 'P()', '<x>', 'p', 'P()', '<y>')",
    );
    as_python("class C:\n    x = 9\n    ys = [i for i in range(x)]\nassert len(C.ys) == 9");
    as_python(
        "class One:\n    made = None\n    def __new__(cls, n):\n        if One.made is None:\n            One.made = super().__new__(cls)\n        \
         return One.made\n    def __init__(self, n):\n        self.n = n\na, b = One(1), One(2)\nassert a is b and a.n == 2",
    );
    as_python(
        "from functools import cached_property\nlog = []\nclass C:\n    @cached_property\n    def x(self):\n        log.append(1)\n        return 5\n\
         c = C()\nassert (c.x, c.x, log) == (5, 5, [1])",
    );
    as_python(
        "class A:\n    tag = 'a'\n    def __init__(self, w):\n        self.w = w\n    @property\n    def v(self):\n        return self.w + 1\n\
         class B(A):\n    tag = 'b'\n    @property\n    def v(self):\n        return super().v * 10\n    def old(self):\n        return super().tag\n\
         b = B(4)\nassert (b.v, b.old(), b.tag) == (50, 'a', 'b'), (b.v, b.old(), b.tag)",
    );
    refused("class M(type):\n    pass\nclass C(metaclass=M):\n    w = 5\nW = C.w", "unsupported");
}

#[test]
fn functions() {
    as_python("assert (pow(2, 5, 11), pow(3, -1, 7), pow(2, 10), pow(7, 2, -5)) == (10, 5, 1024, -1)");
    as_python("assert issubclass(bool, int) and issubclass(KeyError, LookupError) and not issubclass(int, bool)");
    as_python("assert (hash(3), hash(-1), hash(True), hash(2.0)) == (3, -2, 1, 2)");
    refused("W = hash('abc') % 7", "unsupported");
    refused(
        "from functools import singledispatch\n@singledispatch\ndef f(x):\n    return 3\nW = f(5)",
        "unknown-function",
    );
    refused("from other_lib import deco\n@deco\ndef f():\n    return 3\nW = f()", "unknown-module");
    as_python(
        "from functools import cache, lru_cache\n@cache\ndef fib(n):\n    return n if n < 2 else fib(n - 1) + fib(n - 2)\n\
         @lru_cache(maxsize=None)\ndef f(x, y=1):\n    return x + y\nassert fib(60) == 1548008755920 and f(1) == 2 and f(1, y=2) == 3",
    );
    as_python("total = 0\nfound = [(last := x) for x in [1, 2, 3]]\nassert last == 3");
    as_python(
        "primes = []\nfor n in range(2, 2000):\n    for p in primes:\n        if p * p > n:\n            primes.append(n)\n            break\n        \
         if n % p == 0:\n            break\n    else:\n        primes.append(n)\nassert len(primes) == 303",
    );
}

#[test]
fn tables_of_8192_squared_fit() {
    let text = "keep = torch.ones(8192, 8192, dtype=torch.bool).tril()\ndef mod(b, h, q, k):\n    return keep[q, k]\n";
    assert!(trace(&request(text, ModKind::Mask)).result.is_some());
    let refused =
        "a = torch.ones(3000, 3000)\nb = torch.ones(3000, 3000)\ndef mod(b_, h, q, k):\n    return (a + b)[q, k] > 0\n";
    let limits = Limits { tensor_bytes: 64 << 20, ..Limits::default() };
    let reported = said(&trace(&TraceRequest { limits, ..request(refused, ModKind::Mask) }));
    assert!(reported.contains("64 MiB of host tensors in all, of which 34 are used"), "{reported}");
}

#[test]
fn arguments_of_methods_are_not_passed_over() {
    for line in [
        "'aXbXc'.replace('X', '-', 1) == 'a-bXc' and 'aXbX'.replace('X', '-', -1) == 'a-b-'",
        "'abcabc'.count('b', 2) == 1 and 'abcabc'.startswith('c', 2) and 'abcabc'.endswith('b', 0, 2)",
        "'a b  c'.split(None, 1) == ['a', 'b  c'] and 'a b c'.rsplit(None, 1) == ['a b', 'c']",
        "'a\\nb'.splitlines(True) == ['a\\n', 'b'] and 'a\\tb'.expandtabs(4) == 'a   b'",
        "[1, 2, 3, 2].index(2, 2) == 3 and (5, 6, 5).index(5, 1) == 2 and [1, 2].index(2, -1) == 1",
        "round(1234, -2) == 1200 and round(1250, -2) == 1200 and round(-1350, -2) == -1400 and round(15, -1) == 20",
        "int('0b101', 0) == 5 and int('-0x1f', 16) == -31 and int('12', 0) == 12 and int('+7') == 7",
        "range(2, 9, 3).stop == 9 and (5).real == 5 and (5).imag == 0",
    ] {
        as_python(&format!("assert {line}"));
    }
    as_python("import math\nassert math.hypot(2, 3, 6) == 7.0 and math.hypot() == 0.0 and math.hypot(-3) == 3.0");
    as_python("d = {}\nd.update([('a', 1), ('b', 2)], c=3)\nassert d == {'a': 1, 'b': 2, 'c': 3}");
    as_python("try:\n    list(zip([1], [1, 2], strict=True))\n    W = 1\nexcept ValueError:\n    W = 2\nassert W == 2");
    as_python("try:\n    ','.join([1])\n    W = 1\nexcept TypeError:\n    W = 2\nassert W == 2");
}

#[test]
fn partials_of_partials_are_one() {
    let head = "from functools import partial\ndef f(*a, **k):\n    return a, k\n";
    as_python(&format!(
        "{head}p = partial(partial(f, 1, x=2), 3, x=4, y=5)\nassert p(6, z=7) == ((1, 3, 6), {{'x': 4, 'y': 5, 'z': 7}})"
    ));
    as_python(&format!(
        "{head}p = partial(partial(f, 1, x=2), 3, y=5)\nassert (p.func is f, p.args, p.keywords) == (True, (1, 3), {{'x': 2, 'y': 5}})"
    ));
    // what is left of a mod's parameters, however they are bound
    let window = |q: i64, k: i64| (2..9).contains(&(q - k));
    let body = "return (q - k < hi) & (q - k >= lo)";
    let plain = format!("import functools\ndef m(b, h, q, k, lo, hi):\n    {body}\n");
    for made in [
        "mod = functools.partial(functools.partial(m, lo=2), hi=9)",
        "p = functools.partial(m, hi=9)\nmod = functools.partial(p, lo=2)",
        "mod = functools.partial(functools.partial(m, lo=5, hi=9), lo=2)",
    ] {
        check(&format!("{plain}{made}\n"), Expect::Mask(&|_, _, q, k| window(q, k)));
    }
    let method = format!("import functools\nclass C:\n    def m(self, b, h, q, k, lo, hi):\n        {body}\nmod = ");
    for made in ["functools.partial(C().m, lo=2, hi=9)", "functools.partial(functools.partial(C().m, lo=2), hi=9)"] {
        check(&format!("{method}{made}\n"), Expect::Mask(&|_, _, q, k| window(q, k)));
    }
}

#[test]
fn the_environment_is_empty_and_says_so() {
    let with = |line: &str| format!("import os\nW = 3\n{line}\ndef m(b, h, q, k):\n    return q - k < W\n");
    let first = |line: &str| trace(&request(&with(line), ModKind::Mask)).diagnostics[0].clone();
    let missing = first("W = int(os.environ['WINDOW'])");
    assert_eq!((&*missing.code, missing.line_column()), ("environment", Some((3, 9))));
    assert!(missing.message.contains("`WINDOW` has no value here"), "{missing}");
    let asked = first("if 'WINDOW' in os.environ:\n    W = 5");
    assert!(asked.code == "environment" && asked.message.contains("`WINDOW` is not set here"), "{asked}");
    as_python("import os\ntry:\n    W = int(os.environ['RANK'])\nexcept KeyError:\n    W = 0\nassert W == 0");
}

#[test]
fn counters_count() {
    let head = "from collections import Counter\nc = Counter('aab')\n";
    as_python(&format!("{head}c.update('ab')\nassert dict(c) == {{'a': 3, 'b': 2}}"));
    as_python(&format!("{head}c.update({{'a': 5}}, b=1)\nassert dict(c) == {{'a': 7, 'b': 2}}"));
    as_python(&format!("{head}c.subtract('ab')\nassert (dict(c), c.total()) == ({{'a': 1, 'b': 0}}, 1)"));
    as_python(&format!("{head}assert c['z'] == 0 and len(c) == 2 and sorted(c.elements()) == ['a', 'a', 'b']"));
}

#[test]
fn augmented_assignment_changes_the_object() {
    as_python("s = {1}\nt = s\ns |= {2}\nassert t == {1, 2}");
    as_python("d = {'a': 1}\ne = d\nd |= {'b': 2}\nassert e == {'a': 1, 'b': 2}");
    as_python("x = [1]\ny = x\nx *= 2\nassert y == [1, 1]");
    as_python("t = (1,)\nu = t\nt += (2,)\nassert u == (1,) and t == (1, 2)");
    as_python(
        "class V:\n    def __init__(self, x):\n        self.x = x\n    def __add__(self, o):\n        return V(self.x + o)\n    \
         def __iadd__(self, o):\n        self.x += 100\n        return self\nv = V(2)\nw = v\nv += 1\nassert (w.x, v is w) == (102, True)",
    );
}

#[test]
fn values_as_text() {
    for line in [
        "'{:#x} {:#b} {:#o} {:#X}'.format(255, 5, 8, 255) == '0xff 0b101 0o10 0XFF'",
        "'{:g} {:.3g} {:G} {:.3E}'.format(1e10, 1234.5, 1e-10, 0.00012) == '1e+10 1.23e+03 1E-10 1.200E-04'",
        "f'{1e300:.3g}' == '1e+300' and f'{float(\"inf\"):.2f}' == 'inf' and f'{1 / 3:.4}' == '0.3333' and f'{3.0:.4}' == '3.0'",
        "(bin(5), hex(255), oct(8), bin(-5), hex(-1)) == ('0b101', '0xff', '0o10', '-0b101', '-0x1') and f'{-255:x}' == '-ff'",
        "repr(\"a'b\") == '\"a\\'b\"' and repr('a\\nb') == \"'a\\\\nb'\" and str(set()) == 'set()'",
        "type('a').__name__ == 'str' and type(None).__name__ == 'NoneType' and int.__name__ == 'int'",
    ] {
        as_python(&format!("assert {line}"));
    }
    as_python(
        "from dataclasses import dataclass\n@dataclass\nclass A:\n    x: int\n    y: str = 'q'\nassert str(A(1)) == \"A(x=1, y='q')\"",
    );
    as_python(
        "from collections import namedtuple\nP = namedtuple('P', 'x y')\nassert repr(P(1, [2])) == 'P(x=1, y=[2])'",
    );
    as_python(
        "from collections import namedtuple\ntry:\n    namedtuple('P', 'x,y x')\n    assert False\nexcept ValueError as e:\n    \
         assert 'duplicate field name' in str(e), str(e)",
    );
    as_python(
        "from enum import Enum\nclass K(Enum):\n    A = 1\nassert repr(K.A) == '<K.A: 1>' and str(K.A) == f'{K.A}' == 'K.A'",
    );
    as_python("from types import SimpleNamespace as N\nassert N(a=1) == N(a=1) and N(a=1) != N(a=2)");
    as_python("try:\n    {}['a']\nexcept KeyError as e:\n    name = type(e).__name__\nassert name == 'KeyError'");
}

#[test]
fn objects_are_sorted_by_their_own_order() {
    as_python(
        "class V:\n    def __init__(self, x, n):\n        self.x, self.n = x, n\n    def __lt__(self, o):\n        return self.x < o.x\n\
         vs = [V(3, 'a'), V(1, 'b'), V(3, 'c'), V(2, 'd')]\n\
         assert [v.n for v in sorted(vs)] == ['b', 'd', 'a', 'c']\n\
         assert [v.n for v in sorted(vs, reverse=True)] == ['a', 'c', 'd', 'b']",
    );
}

#[test]
fn numpy_functions_mean_what_numpy_means() {
    for line in [
        "float(np.median([1, 3])) == 2.0 and np.median(np.arange(12).reshape(3, 4), axis=1).tolist() == [1.5, 5.5, 9.5]",
        "[p.tolist() for p in np.split(np.arange(6), 2)] == [[0, 1, 2], [3, 4, 5]]",
        "[p.tolist() for p in np.array_split(np.arange(7), 3)] == [[0, 1, 2], [3, 4], [5, 6]]",
        "np.flip([1, 2, 3]).tolist() == [3, 2, 1] and np.pad([1], 1).tolist() == [0, 1, 0]",
        "int(np.ptp(np.arange(5))) == 4",
        "np.cross([[1, 0, 0], [0, 1, 0]], [[0, 1, 0], [0, 0, 1]]).tolist() == [[0, 0, 1], [1, 0, 0]]",
        "np.cross([1, 0, 0], [0, 1, 0]).tolist() == [0, 0, 1]",
        "(np.arange(3) * 0.1).dtype == np.float64 and (np.arange(3, dtype=np.int8) * 0.5).dtype == np.float64",
        "(np.arange(3) + np.array([0.1], dtype=np.float32)).dtype == np.float64",
        "(np.array([0.1], dtype=np.float32) * 2.5).dtype == np.float32 and np.sqrt(np.arange(3)).dtype == np.float64",
        "np.where(np.arange(3) > 1, np.arange(3), 0.5).dtype == np.float64",
        "(np.arange(20) * 0.1 > 0.7).sum() == 13 and np.maximum(np.arange(3), 0.5).dtype == np.float64",
    ] {
        as_python(&format!("import numpy as np\nassert {line}"));
    }
}

#[test]
fn bases_are_looked_through_in_pythons_order() {
    let diamond = "class A:\n    w = 3\n    def f(self):\n        return 'A'\nclass B(A):\n    pass\nclass C(A):\n    w = 9\n    def f(self):\n        \
                   return 'C' + super().f()\nclass D(B, C):\n    pass\n";
    as_python(&format!("{diamond}assert (D.w, D().w, D().f()) == (9, 9, 'CA'), (D.w, D().f())"));
    // `super()` goes on in the order of the object's class
    as_python(
        "class A:\n    def f(self):\n        return 'A'\nclass B(A):\n    def f(self):\n        return 'B' + super().f()\nclass C(A):\n    \
         def f(self):\n        return 'C' + super().f()\nclass D(B, C):\n    def f(self):\n        return 'D' + super().f()\n\
         assert (D().f(), B().f()) == ('DBCA', 'BA'), D().f()",
    );
    as_python(
        "class One:\n    def __init__(self, **kw):\n        super().__init__(**kw)\n        self.a = 1\nclass Two:\n    def __init__(self, w=2, **kw):\n        \
         super().__init__(**kw)\n        self.w = w\nclass Both(One, Two):\n    @property\n    def v(self):\n        return super().width\n    \
         width = 1\nTwo.width = property(lambda self: self.w * 10) if False else 20\nb = Both(w=5)\nassert (b.w, b.a, b.v) == (5, 1, 20)",
    );
    // each class of a ladder stands once
    let mut ladder = String::from("class A0:\n    w = 1\nclass B0:\n    w = 2\n");
    for n in 1..31 {
        let m = n - 1;
        ladder += &format!("class A{n}(A{m}, B{m}):\n    pass\nclass B{n}(A{m}, B{m}):\n    pass\n");
    }
    as_python(&format!("{ladder}assert (A30().w, issubclass(A30, B0), isinstance(A30(), int)) == (1, True, False)"));
}

#[test]
fn what_a_property_gives_is_called() {
    as_python(
        "class A:\n    @property\n    def fn(self):\n        return lambda x: x + 1\n    def keep(self, x):\n        return self.fn(x)\n\
         assert (A().fn(3), A().keep(4)) == (4, 5)",
    );
    let text = "class Rules:\n    w = 7\n    @property\n    def mask(self):\n        return lambda b, h, q, k: (q - k < self.w) & (q - k >= 2)\n\
                rules = Rules()\nmod = lambda b, h, q, k: rules.mask(b, h, q, k)\n";
    check(text, Expect::Mask(&|_, _, q, k| (2..7).contains(&(q - k))));
}

#[test]
fn versions_compare_as_versions() {
    as_python(
        "import torch\nfrom torch import __version__ as v\nt = torch.__version__\n\
         assert t >= '2.5' and t > '2.9.1' and not t < '2.10' and '2.4.0.dev20240101' <= v and v >= '2.15.0a0+git12' and t != '2.6'",
    );
    as_python("import torch\nassert torch.__version__.split('.')[0] == '2' and torch.__version__ == '2.15.0'");
}

#[test]
fn names_that_pytorch_does_not_have_are_missing() {
    as_python(
        "import torch\nimport torch.nn.attention.flex_attention as fa\nassert not hasattr(torch, 'npu') and hasattr(torch, 'compile')\n\
         assert getattr(torch, 'no_such_function', 3) == 3 and hasattr(fa, 'noop_mask') and not hasattr(fa, 'create_nested_block_mask')",
    );
    as_python(
        "try:\n    from torch.nn.attention.flex_attention import create_nested_block_mask\n    W = 1\nexcept ImportError:\n    W = 2\nassert W == 2",
    );
    as_python(
        "try:\n    from torch.nn.attention.flex_attention import BlockMask, _DEFAULT_SPARSE_BLOCK_SIZE, flex_attention\n    W = 1\n\
         except ImportError:\n    W = 2\nassert W == 1",
    );
}

#[test]
fn types_by_pytorchs_older_names() {
    as_python(
        "import torch\nt = torch.tensor([1.7])\nassert t.type('torch.LongTensor').tolist() == [1] and t.type(torch.IntTensor).dtype == torch.int32\n\
         assert (t.type(), t.long().type(), t.to('cpu').dtype) == ('torch.FloatTensor', 'torch.LongTensor', torch.float32)",
    );
    let text = "import torch\ndef mod(b, h, q, k):\n    return (q / 2).type('torch.LongTensor') == k\n";
    check(text, Expect::Mask(&|_, _, q, k| q / 2 == k));
    let sizes = "import torch\ndef mod(b, h, q, k):\n    if q.shape == torch.Size([]) and torch.zeros(2, 3).shape == torch.Size([2, 3]):\n        \
                 return q >= k\n    return q < k\n";
    check(sizes, Expect::Mask(&|_, _, q, k| q >= k));
    as_python("import torch\nassert torch.Size() == () and torch.Size((2, 3)) + (4,) == (2, 3, 4)");
}

#[test]
fn partial_methods_flags_and_ranges() {
    let text = "import functools\nclass M:\n    def band(self, b, h, q, k, w, lo=0):\n        return (q - k < w) & (q - k >= lo)\n    \
                near = functools.partialmethod(band, w=6)\n    far = functools.partialmethod(band, w=9, lo=2)\nm = M()\n\
                mod = lambda b, h, q, k: m.near(b, h, q, k) & m.far(b, h, q, k)\n";
    check(text, Expect::Mask(&|_, _, q, k| (2..6).contains(&(q - k))));
    as_python(
        "from functools import partialmethod\nclass A:\n    def f(self, x, y=1):\n        return x + y\n    g = partialmethod(f, 5)\n    \
         h = partialmethod(f, y=7)\nassert (A().g(), A().h(1), A().g(y=3)) == (6, 8, 8)",
    );
    as_python(
        "from enum import IntFlag, auto\nclass F(IntFlag):\n    A = 1\n    B = 2\n    C = auto()\n    D = 9\n    E = auto()\n\
         assert (F.C.value, F.E.value, int(F.A | F.C), bool(F.A & F.B), F.A == 1) == (4, 16, 5, False, True)",
    );
    as_python(
        "assert (list(range(10)[2:8:3]), range(10)[::-1][0], len(range(2, 20, 3)[1:]), range(5)[9:]) == ([2, 5], 9, 5, range(5, 5))",
    );
    as_python(
        "r = []\ndef t(x):\n    r.append(x)\n    return x\nd = {t('a'): t(1), t('b'): t(2)}\nassert r == ['a', 1, 'b', 2]",
    );
    as_python("try:\n    raise ValueError('x')\nexcept ValueError as e:\n    assert e.args == ('x',)");
    refused("try:\n    raise StopIteration(5)\nexcept StopIteration as e:\n    W = e.value", "unsupported");
    for index in ["divmod(q, 4)[0] < W", "divmod(7, q + 1)[1] < W"] {
        let text = format!("W = 3\ndef mod(b, h, q, k):\n    return {index}\n");
        let told = trace(&request(&text, ModKind::Mask)).diagnostics[0].clone();
        assert!(told.code == "type-error" && told.message.contains("for divmod(): "), "{told}");
    }
}

#[test]
fn triangles_of_numpy_take_its_name_of_the_diagonal() {
    as_python(
        "import numpy as np\nm = np.triu(np.ones((4, 4)), k=-1) * np.tril(np.ones((4, 4)), 1) * np.tril(np.ones((4, 4)), k=2)\n\
         assert m.sum() == 10 and m[0, 2] == 0 and m[2, 0] == 0",
    );
}
