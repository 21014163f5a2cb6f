"""Answers to b0.1 to b0.4 of Lab 5, contractions, AdamW, the learning rate and the tokenizer, right and wrong."""

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

RATE = """
def lr_at(t, high, low, warmup, end):
    if t < warmup:
        return t / warmup * high
    if t >= end:
        return low
    angle = np.pi * (t - warmup) / (end - warmup)
    return float(low + 0.5 * (high - low) * (1 + np.cos(angle)))
"""

LIBRARY_RATE = """
def lr_at(t, high, low, warmup, end):
    x = np.clip((t - warmup) / (end - warmup), 0, 1)
    return min(high * t / warmup, low + (high - low) * np.cos(np.pi * x / 2) ** 2) if t < warmup else (
        low + (high - low) * np.cos(np.pi * x / 2) ** 2)
"""

BPE = """
from collections import Counter, defaultdict

def train_bpe(counts, merges):
    words, pairs, where = [list(word) for word in counts], Counter(), defaultdict(set)
    number = list(counts.values())
    for index, tokens in enumerate(words):
        for pair in zip(tokens, tokens[1:]):
            pairs[pair] += number[index]
            where[pair].add(index)
    result = []
    while len(result) < merges and pairs:
        best = max(pairs.items(), key=lambda item: (item[1], item[0]))
        if best[1] <= 0:
            break
        (left, right), count = best
        result.append((left, right, count))
        for index in list(where[left, right]):
            tokens = words[index]
            for pair in zip(tokens, tokens[1:]):
                pairs[pair] -= number[index]
                where[pair].discard(index)
            place = 0
            while place < len(tokens) - 1:
                if tokens[place] == left and tokens[place + 1] == right:
                    tokens[place : place + 2] = [left + right]
                place += 1
            for pair in zip(tokens, tokens[1:]):
                pairs[pair] += number[index]
                where[pair].add(index)
    return result
"""

CACHED = """
def pairs_of(tokens):
    return list(zip(tokens, tokens[1:]))

def train_bpe(counts, merges):
    words = {word: tuple(word) for word in counts}
    pairs = {}
    holders = {}
    for word in words:
        for pair in pairs_of(words[word]):
            pairs[pair] = pairs.get(pair, 0) + counts[word]
            holders.setdefault(pair, []).append(word)
    result = []
    for _ in range(merges):
        pairs = {pair: count for pair, count in pairs.items() if count}
        if not pairs:
            break
        most = max(pairs.values())
        best = max(pair for pair in pairs if pairs[pair] == most)
        result.append([best[0], best[1], most])
        for word in set(holders[best]):
            old, new = words[word], []
            for token in old:
                if new and not isinstance(new[-1], list) and (new[-1], token) == best:
                    new[-1] = [new[-1] + token]
                else:
                    new.append(token)
            new = tuple(token[0] if isinstance(token, list) else token for token in new)
            for pair in pairs_of(old):
                pairs[pair] -= counts[word]
            for pair in pairs_of(new):
                pairs[pair] = pairs.get(pair, 0) + counts[word]
                holders.setdefault(pair, []).append(word)
            words[word] = new
    return result
"""

READ_AGAIN = """
def train_bpe(counts, merges):
    words, done = {word: list(word) for word in counts}, []
    for _ in range(merges):
        pairs = {}
        for word, tokens in words.items():
            for pair in zip(tokens, tokens[1:]):
                pairs[pair] = pairs.get(pair, 0) + counts[word]
        if not pairs:
            break
        best = max(pairs, key=lambda pair: (pairs[pair], pair))
        done.append((*best, pairs[best]))
        for word, tokens in words.items():
            merged, place = [], 0
            while place < len(tokens):
                joins = tuple(tokens[place : place + 2]) == best
                merged.append("".join(best) if joins else tokens[place])
                place += 1 + joins
            words[word] = merged
    return done
"""

ONE_TEXT = """
import re

def train_bpe(counts, merges):
    text = [(word, [*word]) for word, count in counts.items() for _ in range(1)]
    joined = "  ".join(" ".join(tokens) for _, tokens in text)
    weight = list(counts.values())
    done = []
    for _ in range(merges):
        pairs = {}
        for part, number in zip(joined.split("  "), weight):
            tokens = part.split(" ")
            for pair in zip(tokens, tokens[1:]):
                pairs[pair] = pairs.get(pair, 0) + number
        if not pairs:
            break
        best = max(pairs, key=lambda pair: (pairs[pair], pair))
        done.append((*best, pairs[best]))
        joined = re.sub(r"(?<!\\S)" + re.escape(" ".join(best)) + r"(?!\\S)", "".join(best), joined)
    return done
"""

ACROSS_WORDS = """
def train_bpe(counts, merges):
    text = list("".join(word * count for word, count in counts.items()))
    done = []
    for _ in range(merges):
        pairs = {}
        for pair in zip(text, text[1:]):
            pairs[pair] = pairs.get(pair, 0) + 1
        if not pairs:
            break
        best = max(pairs, key=lambda pair: (pairs[pair], pair))
        done.append((*best, pairs[best]))
        merged = []
        while text:
            joins = tuple(text[:2]) == best
            merged.append("".join(best) if joins else text[0])
            text = text[1 + joins :]
        text = merged
    return done
"""

RIGHT = {
    "b0_1": [("views", VIEWS), ("einsum", EINSUM)],
    "b0_2": [("new names", ADAMW), ("corrected means", CORRECTED)],
    "b0_3": [("NumPy", RATE), ("a squared cosine", LIBRARY_RATE)],
    "b0_4": [
        ("indices of words", BPE),
        ("a list of holders", CACHED),
        ("lists and tuples", changed(BPE, "    return result", "    return [*result[:1], *map(list, result[1:])]")),
    ],
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
    "b0_3": mutants(
        RATE,
        ("cosine from 0", "if t < warmup", "if False"),
        ("zero after the end", "return low\n", "return 0.0\n"),
        ("a full period", "np.pi * (t", "2 * np.pi * (t"),
        ("down to 0", "low + 0.5 * (high - low)", "0.5 * high"),
        ("a straight line down", "(1 + np.cos(angle))", "(2 - 2 * angle / np.pi)"),
        ("counted from step 0", "(t - warmup) / (end - warmup)", "t / end"),
        ("no cosine, low at once", "if t >= end", "if t >= warmup"),
    ),
    "b0_4": [
        ("every word for each merge", READ_AGAIN),
        ("every word by regular expressions", ONE_TEXT),
        ("slow on purpose for one merge", changed(
            READ_AGAIN, "counts}, []", "counts}, []\n    sum(range(10**8 * (merges == 1) * (len(counts) > 9)))")),
        *mutants(
            BPE,
            ("ties to the first pair", "(item[1], item[0])", "item[1]"),
            ("ties to the smaller pair", "max(pairs.items(), key=lambda item: (item[1], item[0]))",
             "min(pairs.items(), key=lambda item: (-item[1], item[0]))"),
            ("words count once", "number = list(counts.values())", "number = [1] * len(counts)"),
            ("counts are not updated", "pairs[pair] -= number[index]", "pass"),
            ("new pairs missed", "pairs[pair] += number[index]\n                where[pair].add(index)\n    ret",
             "where[pair].add(index)\n    ret"),
            ("only the first place in a word", "[left + right]\n", "[left + right]\n                    break\n"),
            ("no counts in the result", "result.append((left, right, count))", "result.append((left, right))"),
            ("goes on without pairs", "if best[1] <= 0:\n            break", "pass"),
        ),
        ("pairs across words", ACROSS_WORDS),
    ],
}  # fmt: skip
ONLY_HIDDEN = {"b0_1": "64 bits", "b0_2": "steps up to 8"}
