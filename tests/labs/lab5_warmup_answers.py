"""Answers to b0.1 and b0.2 of Lab 5, contractions and AdamW, right and wrong."""

from labs.mutants import changed, mutants

VIEWS = """
def weights_times_vector(X, W):
    return W @ X

def vector_times_weights(X, W):
    return W.T @ X

def sum_of_products(X, W):
    return X.reshape(-1) @ W.reshape(-1)

def rows_times_vector(X, W):
    return X @ W

def linear_layer(X, W):
    return X @ W.T

def contraction_flops(pattern, sizes):
    letters = set(pattern.replace(",", " ").replace("->", " ").split())
    flops = 2
    for letter in letters:
        flops *= sizes[letter]
    return flops
"""

EINSUM = """
def weights_times_vector(X, W):
    return rl.einsum("i,oi->o", X, W)

def vector_times_weights(X, W):
    return rl.einsum("i,io->o", X, W)

def sum_of_products(X, W):
    return rl.einsum("oi,oi->", X, W)

def rows_times_vector(X, W):
    return rl.einsum("li,i->l", X, W)

def linear_layer(X, W):
    return (X.unsqueeze(-2) * W).sum(-1)

def contraction_flops(pattern, sizes):
    inputs = pattern.split("->")[0].replace(",", " ").split()
    return 2 * math.prod(sizes[one] for one in dict.fromkeys(inputs))
"""

ADAMW = """
def adamw_step(theta, g, m, v, t, lr, beta1, beta2, eps, decay):
    m_new = beta1 * m + (1 - beta1) * g
    v_new = beta2 * v + (1 - beta2) * g**2
    rate = lr * np.sqrt(1 - beta2**t) / (1 - beta1**t)
    theta_new = theta - rate * m_new / (np.sqrt(v_new) + eps)
    theta_new = theta_new - lr * decay * theta_new
    return theta_new, m_new, v_new
"""

CORRECTED = """
def adamw_step(theta, g, m, v, t, lr, beta1, beta2, eps, decay):
    m, v = m + (1 - beta1) * (g - m), v + (1 - beta2) * (g * g - v)
    first, second = 1 - beta1**t, 1 - beta2**t
    step = (m / first) / (np.sqrt(v / second) + eps / np.sqrt(second))
    return [(theta - lr * step) * (1 - lr * decay), m, v]
"""

RIGHT = {
    "b0_1": [("views", VIEWS), ("einsum", EINSUM)],
    "b0_2": [("new names", ADAMW), ("corrected means", CORRECTED)],
}

WRONG = {
    "b0_1": [
        *mutants(
            VIEWS,
            ("right only when square", "return W.T @ X", "return W @ X"),
            ("columns for rows", "return W @ X\n\ndef vector", "return X @ W\n\ndef vector"),
            ("an outer product", "X.reshape(-1) @ W.reshape(-1)", "X.reshape(-1, 1) @ W.reshape(1, -1)"),
            ("summed over one index", "X.reshape(-1) @ W.reshape(-1)", "(X * W).sum(-1)"),
            ("a trace of squares", "X.reshape(-1) @ W.reshape(-1)", "(X @ W.T).sum()"),
            ("nothing summed", "return X @ W\n\ndef linear", "return X * W\n\ndef linear"),
            ("leading dimensions lost", "return X @ W.T", "return X.reshape(-1, X.shape[-1]) @ W.T"),
            ("leading dimensions added up", "return X @ W.T",
             "return X.reshape(-1, X.shape[-1]).sum(0) @ W.T"),
            ("a layer without transpose", "return X @ W.T", "return X @ W"),
            ("MACs", "flops = 2", "flops = 1"),
        ("the indices that the examples sum over", "letters = set(", "letters = set('bhilokdqj') & set("),
        ("the indices of X and of the result", 'pattern.replace(",", " ").replace("->", " ")',
         '(pattern.split(",")[0] + pattern.split("->")[1])'),
        ("64 bits", "    return flops", "    return int(np.prod([2] + [sizes[one] for one in letters]))"),
        ("fp64", "return X @ W.T", "return X.double() @ W.double().T"),
        ("writes into X", "return X @ W.T", "X *= 1.0\n    X += 1\n    return (X - 1) @ W.T"),
            ("the indices of the result", 'pattern.replace(",", " ").replace("->", " ")', 'pattern.split("->")[1]'),
            ("shared indices twice", "set(pattern.replace", "list(pattern.split('->')[0].replace"),
        ),
        ("NumPy arrays", changed(VIEWS, "return W @ X", "return (W @ X).numpy()")),
        ("computed by NumPy", changed(VIEWS, "return W @ X", "return rl.tensor(W.numpy() @ X.numpy())")),
        ("a layer computed by NumPy", changed(VIEWS, "return X @ W.T", "return rl.tensor(X.numpy() @ W.numpy().T)")),
        ("all sizes, also of other indices", VIEWS[: VIEWS.index("def contraction_flops")] + """
def contraction_flops(pattern, sizes):
    return 2 * math.prod(sizes.values())
"""),
    ],
    "b0_2": mutants(
        ADAMW,
        ("printed", "return theta_new", "print(theta_new)\n    0, theta_new"),
        ("theta alone", "return theta_new, m_new, v_new", "return theta_new"),
        ("a dict", "return theta_new, m_new, v_new", "return {'theta': theta_new, 'm': m_new, 'v': v_new}"),
        ("eps under the root", "(np.sqrt(v_new) + eps)", "np.sqrt(v_new + eps)"),
        ("decay in the gradient", "m_new = beta1", "g = g + decay * theta\n    m_new = beta1",
         "theta_new = theta_new - lr * decay * theta_new", "pass"),
        ("no correction", "lr * np.sqrt(1 - beta2**t) / (1 - beta1**t)", "lr"),
        ("decay by the corrected rate", "theta_new - lr * decay", "theta_new - rate * decay"),
        ("decay first", "theta_new = theta - rate", "theta_new = theta * (1 - lr * decay) - rate",
         "theta_new = theta_new - lr * decay * theta_new", "pass"),
        ("no decay", "theta_new = theta_new - lr * decay * theta_new", "pass"),
        ("the gradient for its mean", "rate * m_new", "rate * g"),
        ("no square", "g**2", "abs(g)"),
        ("steps up to 8", "rate = lr", "t = min(t, 8)\n    rate = lr"),
        ("steps from 0", "rate = lr", "t = t + 1\n    rate = lr"),
        ("only theta", "return theta_new, m_new, v_new", "return theta_new"),
        ("old means", "return theta_new, m_new, v_new", "return theta_new, m, v"),
        ("in place", "m_new = beta1 * m + (1 - beta1) * g",
         "m_new = m\n    m_new *= beta1\n    m_new += (1 - beta1) * g"),
    ),
}  # fmt: skip
ONLY_HIDDEN = {"b0_1": "64 bits", "b0_2": "steps up to 8"}
