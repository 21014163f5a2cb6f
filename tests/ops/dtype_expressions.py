"""Expressions whose dtypes and values are compared with those of PyTorch; `rl` stands for either library."""

import itertools
import re

# i, l: int32 and int64; h, b, f, d: float16, bfloat16, float32, float64; m: bool. A zero behind it: of no dimensions.
TENSORS = {
    "i": ([7, -3, 2], "int32"),
    "l": ([5, 2, -9], "int64"),
    "h": ([0.5, -2.0, 3.0], "float16"),
    "b": ([1.5, 2.0, -4.0], "bfloat16"),
    "f": ([2.5, -1.0, 0.25], "float32"),
    "d": ([0.1, 4.0, -2.5], "float64"),
    "m": ([True, False, True], "bool"),
    "i0": (3, "int32"),
    "l0": (2, "int64"),
    "h0": (0.5, "float16"),
    "f0": (1.5, "float32"),
    "d0": (0.1, "float64"),
    "m0": (True, "bool"),
    "column": ([[1], [2]], "int64"),
    "x": ([-1.0, 0.0, 1.0, 2.0, float("nan")], "float32"),
    "zeros": ([0, 1, 0], "int64"),
}
OPERATORS = ["+", "-", "*", "/", "//", "%", "**", "<", "=="]


def listed(text):
    """Expressions that two spaces or an end of line divide."""
    return re.split(r"\s{2,}", text.strip())


def pairs():
    """Two tensors of different dtypes, and tensors without dimensions."""
    for a, b in itertools.combinations("ilhbfdm", 2):
        yield from (f"{a} {op} {b}" for op in ("+", "*", "/", "<"))
    for op, (a, b) in itertools.product(["-", "//", "%", "**", ">=", "!="], ["fi", "lf", "hd", "mf", "bh"]):
        yield f"{a} {op} {b}"
    for a, b in itertools.product("lhfm", ["i0", "l0", "h0", "f0", "d0", "m0"]):
        yield f"{a} + {b}"
        yield f"{b} * {a}"
    yield from (f"m {op} m" for op in [*OPERATORS, "&", "|", "^", ">", "!="])
    yield from (f"l {op} l" for op in ["/", "**", "&"])
    yield from listed("""
        m & l  l | m  i ^ l  m & f  l & f  ~m  ~i  ~f  -m  abs(l)  abs(m)  -i
        column + f  column * m  column / l  f0 + d0  i0 + l0  h0 * f0  m0 + m0  l0 / l0
    """)


def numbers():
    """A tensor and a number."""
    for a, op, number in itertools.product("lhm", OPERATORS, ["2", "2.0", "1.5", "True"]):
        yield f"{a} {op} {number}"
    for a, op in itertools.product("ifm", ["+", "-", "/", "//", "%", "**"]):
        yield f"2 {op} {a}"
        yield f"1.5 {op} {a}"
    yield from (f"{a} * np.{number}" for a in "lfhm" for number in ["float64(1.5)", "float32(1.5)", "int64(2)"])
    yield from listed("""
        l ** -1  l ** 0  f ** -1  2 ** l  f ** 0.5  l ** 0.5  m ** 2  f == None  f != None
        l // 0  l % 0  l / 0  f // 0  f % 0  l // zeros  l % zeros  i // 0  i % zeros  1 // zeros
        l // 0.0  l % 0.0  m // 0  1 % zeros  f // zeros  l // 2.5  l % 2.5  7 // f  l // -2  l % -2
        i + 2**31  i * 2**40  l < 1.5  l > 10**30  m < 1  i == 7.0  h * 70000  h + 1e300  i < 2**40
    """)


def functions():
    """Functions of integers and bools, choices, and reductions."""
    names = ["exp", "log", "sqrt", "rsqrt", "sin", "cos", "tanh", "sigmoid", "relu", "abs", "neg", "bitwise_not"]
    yield from (f"rl.{name}({a})" for name in names for a in "lm")
    yield from (
        f"rl.{name}({a}, {b})" for name in ["maximum", "minimum"] for a, b in ["lf", "hd", "ml", "bh", "mm", "li"]
    )
    yield from (f"rl.{name}({a}, {b})" for name in ["add", "mul", "sub", "div", "pow"] for a, b in ["lf", "mf", "hf"])
    yield from (
        f"rl.where(m, {a}, {b})" for a, b in itertools.product(["l", "f", "h"], ["0.5", "0", "d", "m", "i", "l0"])
    )
    yield from listed("""
        rl.where(m, 0.0, float('-inf'))  rl.where(m, 1, 2)  rl.where(m, 1, 0.5)  rl.where(m, True, False)
        rl.where(m, 0.5, l)  rl.where(m, True, l)  rl.where(m, m, 1)  rl.where(m, h, 1e10)  rl.where(l, f, d)
        rl.clamp(l, 0.5)  rl.clamp(l, 0, 2.5)  rl.clamp(l, 0, 3)  rl.clamp(f, 0)  rl.clamp(h, max=1)
        rl.clamp(m, 0, 1)  rl.cat([f, l])  rl.cat([h, b])  rl.cat([m, l])  rl.cat([i, l])  rl.cat([f, d])
        rl.cat([m, h])  l.masked_fill(m, 2)  l.masked_fill(m, 2.0)  l.masked_fill(m, 0.5)  f.masked_fill(m, 2)
        m.masked_fill(m, 1)  rl.masked_fill(h, m, 1e10)  rl.masked_fill(l, m, float('inf'))  rl.sum(l)  rl.sum(i)
        rl.sum(m)  rl.sum(h)  rl.mean(f)  rl.mean(l)  rl.mean(m)  rl.amax(l)  rl.amax(m)  rl.amin(i)  rl.cumsum(m, 0)
        rl.cumsum(i, 0)  rl.cumsum(h, 0)  rl.argmax(l)  rl.any(l)  rl.all(m)  rl.var(l)  rl.isnan(l)  rl.isfinite(l)
        rl.softmax(l, 0)  rl.softmax(h, 0)  rl.tril(rl.ones(2, 2) > 0)  f @ f  f @ d  l @ l  f @ l  rl.allclose(f, f)
    """)


def made():
    """Functions that make tensors, and what gives a dtype."""
    kinds = ["float", "int", "bool", "rl.float64", "None"]
    yield from (f"rl.zeros(2, dtype={kind})" for kind in kinds)
    yield from (f"rl.ones_like(l, dtype={kind})" for kind in kinds)
    yield from (f"rl.arange(3, dtype={kind})" for kind in kinds)
    yield from (f"rl.tensor([1, 2], dtype={kind})" for kind in kinds)
    yield from (f"f.to({kind})" for kind in kinds[:-1])
    values = listed("3  3.0  True  np.float64(3)  np.float32(3)  np.int64(3)  np.int32(3)  np.bool_(1)  np.float16(3)")
    yield from (f"rl.tensor({value})" for value in values)
    yield from (f"rl.full((2,), {value})" for value in values)
    yield from (f"rl.tensor([{value}])" for value in values[3:])
    yield from (f"rl.full_like(l, {value})" for value in ["2", "2.0", "2.7", "True"])
    yield from listed("""
        rl.tensor([1, 2.5])  rl.tensor([True, 2])  rl.tensor([True, False])  rl.tensor([])  rl.tensor([[]])
        rl.tensor(np.ones(2))  rl.tensor(np.ones(2, np.float32))  rl.tensor(np.arange(2))  rl.tensor(np.array(3.0))
        rl.tensor(np.array(True))  rl.tensor([np.float64(1), 2])  rl.tensor([np.float32(1), 2.0])  rl.tensor([f0, f0])
        rl.tensor([np.ones(2), np.ones(2)])  rl.tensor((1, 2))  rl.tensor([True, 1.5])  rl.tensor(1e300)  rl.arange(3)
        rl.arange(3.0)  rl.arange(0, 1, 0.5)  rl.arange(np.int64(3))  rl.arange(np.float64(3))  rl.arange(0, 3, 1.0)
        rl.arange(True)  rl.arange(5, 1, -2)  rl.linspace(0, 1, 3)  rl.linspace(0, 1, 3, dtype=float)  rl.eye(2)
        rl.eye(2, dtype=int)  rl.eye(2, dtype=bool)  rl.full((2,), 1.5, dtype=float)  rl.full((2,), True, dtype=int)
        rl.full((2,), 3, dtype=rl.float32)  rl.randint(0, 1, (2,))  rl.randint(0, 1, (2,), dtype=float)  f.double()
        f.half()  f.int()  f.long()  f.bool()  l.float()  f.to('cpu').dtype == rl.float32  rl.zeros(2).dtype == float
        l0.item()  m0.item()  f0.item()  l.tolist()  float(l0)  int(f0)
    """)


def written():
    """Writes in place; the value is that of the tensor afterwards."""
    yield from listed("""
        t = f.clone(); t += l  t = f.clone(); t += d  t = h.clone(); t += f  t = h.clone(); t *= d
        t = l.clone(); t += i  t = i.clone(); t += l  t = l.clone(); t += m  t = f.clone(); t *= m
        t = l.clone(); t += 2  t = l.clone(); t += 2.0  t = l.clone(); t += 2.5  t = l.clone(); t *= 0.5
        t = l.clone(); t /= 2  t = l.clone(); t += f  t = m.clone(); t += m  t = m.clone(); t &= m
        t = m.clone(); t += 1  t = m.clone(); t &= l  t = l.clone(); t //= 2  t = l.clone(); t %= 2
        t = l.clone(); t //= 0  t = l.clone(); t **= 2  t = l.clone(); t -= True  t = f.clone(); t[0] = 3
        t = f.clone(); t[:] = l  t = f.clone(); t[0] = True  t = h.clone(); t[m] = 2  t = f.clone(); t.fill_(2)
        t = l.clone(); t[0] = True  t = f.clone(); t.add_(l)  t = f.clone(); t.mul_(2)  t = f.clone(); t -= d0
        t = h.clone(); t += 1e10  t = f.clone(); t.copy_(l)
    """)


def gradients():
    """The value is the gradient of x, or of the first tensor of the call; also its dtype."""
    yield from listed("""
        grad(lambda x: rl.clamp(x, 0, 1), x)  grad(lambda x: rl.clamp(x, 0.0), x)
        grad(lambda x: rl.clamp(x, max=1), x)  grad(lambda x: rl.clamp(x, 1, 0), x)
        grad(lambda x: rl.clamp(x, 1, 1), x)  grad(rl.relu, x)  grad(rl.abs, x)
        grad(lambda x: rl.maximum(x, x * 0), x)  grad(lambda x: rl.maximum(x, f0 * 0), x)
        grad(lambda x: rl.minimum(x, rl.ones(5)), x)  grad(lambda x: rl.amax(x), rl.tensor([2.0, 1.0, 2.0]))
        grad(lambda x: rl.amin(x, 0), rl.tensor([1.0, 1.0, 2.0]))  grad(lambda x: x ** 2, x)
        grad(lambda x: x ** 0, x)  grad(lambda x: x ** x.detach(), rl.tensor([0.0, 1.0, 2.0]))
        grad(lambda x: x * l, f)  grad(lambda x: x * d, f)  grad(lambda x: x + f, h)  grad(lambda x: x / i, h)
        grad(lambda x: l / x, f)  grad(lambda x: x * m, f)  grad(lambda x: f - x, b)
        grad(lambda x: rl.where(m, x, d), f)  grad(lambda x: rl.where(m, x, 0.5), h)
        grad(lambda x: rl.cat([x, d]), f)  grad(lambda x: rl.maximum(x, d), f)
        grad(lambda x: d ** x, rl.tensor([1.0, 2.0, 3.0]))  grad(lambda x: x * d0, f)  grad(lambda x: x * f, d0)
        grad(lambda x: x.to(rl.float64) * d, f)  grad(lambda x: x % 1.5, f)  grad(lambda x: rl.where(m, l, x), f)
        grad(lambda x: x - column, f)  grad(lambda x: x * column * m, h)  grad(rl.sqrt, rl.tensor([0.0, 4.0]))
        grad(rl.sigmoid, x)  grad(lambda x: rl.floor_divide(x, 2) + x, f)
    """)


SUBJECTS = {
    subject.__name__: list(dict.fromkeys(subject()))
    for subject in (pairs, numbers, functions, made, written, gradients)
}


def described(value):
    """The dtype and the values, as JSON holds them; numbers in 7 digits, because functions differ in the last one."""
    if hasattr(value, "tolist"):
        if getattr(value, "requires_grad", False):
            value = value.detach()
        return {
            "dtype": str(value.dtype).rpartition(".")[2],
            "shape": list(value.shape),
            "values": shown(value.tolist()),
        }
    return {"dtype": type(value).__name__, "values": shown(value)}


def shown(value):
    if isinstance(value, list):
        return [shown(element) for element in value]
    return f"{value:.7g}" if isinstance(value, float) else value


def evaluated(text, rl, np):
    """What an expression gives with this library: a dictionary, or "error"."""

    def grad(function, x):
        leaf = x.detach().clone()
        leaf.requires_grad = True
        function(leaf).sum().backward()
        return leaf.grad

    names = {"rl": rl, "np": np, "grad": grad}
    for name, (values, dtype) in TENSORS.items():
        names[name] = rl.tensor(values, dtype=getattr(rl, dtype, None) or rl.bool_)
    try:
        if text.startswith("t = "):
            exec(text, names)
            return described(names["t"])
        return described(eval(text, names))
    except Exception as error:
        return {"error": "ZeroDivisionError" if "ZeroDivisionError" in repr(error) else "an error"}
