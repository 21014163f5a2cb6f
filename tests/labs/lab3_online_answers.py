"""Answers to questions 2.1 to 2.3 of Lab 3, the online softmax, right and wrong."""

from labs.mutants import mutants

UPDATE = """
def online_update(m, l, x):
    with np.errstate(invalid="ignore"):
        new = np.maximum(m, np.concatenate([x, m[:, None]], axis=1).max(axis=1))
        old = np.nan_to_num(l * np.exp(m - new), nan=0.0)
        return new, old + np.nan_to_num(np.exp(x - new[:, None]), nan=0.0).sum(axis=1)
"""

LOOPED = """
def online_update(m, l, x):
    m, l = m.copy(), l.copy()
    for row in range(len(x)):
        for value in x[row]:
            if value > m[row]:
                l[row] = l[row] * np.exp(m[row] - value) + 1
                m[row] = value
            elif value > -np.inf:
                l[row] += np.exp(value - m[row])
    return m, l
"""

AVERAGE = """
def online_average(m, l, O, x, V):
    new = np.maximum(m, x.max(axis=1, initial=-np.inf))
    base = np.where(new == -np.inf, 0, new)
    e = np.exp(x - base[:, None])
    factor = np.exp(m - base)
    return new, factor * l + e.sum(1), O * factor[:, None] + np.einsum("rn,nd->rd", e, V)
"""

COMBINE = """
def combine(m1, l1, O1, m2, l2, O2):
    m = np.maximum(m1, m2)
    with np.errstate(invalid="ignore"):
        a, b = (np.nan_to_num(np.exp(part - m), nan=0.0) for part in (m1, m2))
    return m, a * l1 + b * l2, a[:, None] * O1 + b[:, None] * O2
"""

NO_MAXIMUM = """
def online_update(m, l, x):
    return np.maximum(m, x.max(axis=1, initial=-np.inf)), l + np.exp(x).sum(axis=1)
"""

NAN_UPDATE = """
def online_update(m, l, x):
    new = np.maximum(m, x.max(axis=1, initial=-np.inf))
    return new, np.exp(m - new) * l + np.exp(x - new[:, None]).sum(axis=1)
"""

O_SUM, COMBINED = "O * factor[:, None]", "a[:, None] * O1 + b[:, None] * O2"


def listed(name, code):
    """The same answer, with a list for the tuple."""
    return "a list", f"{code}\nin_a_tuple = {name}\n\ndef {name}(*given):\n    return list(in_a_tuple(*given))\n"


RIGHT = {
    "q2_1": [("NaN replaced", UPDATE), ("one value at a time", LOOPED), listed("online_update", UPDATE)],
    "q2_2": [("einsum", AVERAGE), listed("online_average", AVERAGE)],
    "b2_3": [("NaN replaced", COMBINE), listed("combine", COMBINE)],
}  # fmt: skip

WRONG = {
    "q2_1": [
        ("NaN where nothing is seen", NAN_UPDATE),
        ("no maximum at all", NO_MAXIMUM),
        *mutants(
            UPDATE,
            ("the sum is not rescaled", "l * np.exp(m - new)", "l"),
            ("rescaled the wrong way", "np.exp(m - new)", "np.exp(new - m)"),
            ("base 2", "np.exp(", "np.exp2("),
            ("a mean", ".sum(axis=1)", ".mean(axis=1)"),
            ("m is overwritten", "        return new, old", "        m[:] = new\n        return new, old"),
            ("l is overwritten", "        return new, old", "        l *= 2\n        return new, old"),
        ),
        *mutants(
            LOOPED,
            ("the maximum of the chunk", "m, l = m.copy(), ", "m, l = x.max(axis=1, initial=-np.inf), "),
            ("no empty chunks", "m, l =", "x[:, 0]; m, l ="),
            ("its arguments are overwritten", "m.copy(), l.copy()", "m, l"),
        ),
    ],
    "q2_2": mutants(
        AVERAGE,
        ("O is not rescaled", O_SUM, "O"),
        ("l is not rescaled", "factor * l", "l"),
        ("divided at every step", f"{O_SUM} + np", f"({O_SUM} + np", "e, V)", "e, V)) / e.sum(1)[:, None]"),
        ("a small maximum for none", "new == -np.inf", "new < -1e4"),
        ("a plain sum", "e, V)", "np.ones_like(e), V)"),
        ("NaN where nothing is seen", "np.where(new == -np.inf, 0, new)", "new"),
        ("a mean for the sum", "e.sum(1)", "e.mean(1)"),
        ("x is overwritten", "    e = np.exp(x - base[:, None])", "    x -= base[:, None]\n    e = np.exp(x)"),
    ),
    "b2_3": mutants(
        COMBINE,
        ("sums without scaling", "a * l1 + b * l2", "l1 + l2"),
        ("l1 is overwritten", "a * l1 + b * l2", "np.multiply(a, l1, out=l1) + b * l2"),
        ("O without scaling", COMBINED, "O1 + O2"),
        ("the mean of the two", COMBINED, "(O1 + O2) / 2"),
        ("parts that were divided", COMBINED, "(a * l1)[:, None] * O1 + (b * l2)[:, None] * O2"),
        ("the wrong way round", "(m1, m2))\n    return", "(m2, m1))\n    return"),
        ("NaN of two empty parts", "np.nan_to_num(np.exp(part - m), nan=0.0)", "np.exp(part - m)"),
    ),
}  # fmt: skip
