//! Python that was silently run otherwise: each text asserts what CPython 3.12 gives, and keeps a causal window of `W`.

use crate::python::trace::tests::*;

/// Runs the text; its own assertions tell what differs. Or it is refused in words.
#[track_caller]
fn as_python(text: &str) {
    let text = format!("{text}\nmod = lambda b, h, q, k: q >= k\n");
    let traced = trace(&request(&text, ModKind::Mask));
    let told = said(&traced);
    assert!(traced.result.is_some() && !told.contains("[skipped]"), "{told}\n{text}");
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
    let told = said(&trace(&TraceRequest { limits, ..request(refused, ModKind::Mask) }));
    assert!(told.contains("64 MiB of host tensors in all, of which 34 are used"), "{told}");
}
