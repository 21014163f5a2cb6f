# %% [markdown]
# ### Two real models (not graded)
#
# Does it work in practice? The next cell trains two language models, a target and a draft model with 30 times fewer
# weights. Both predict characters and learn a text of simple sentences. The training takes less than a minute.

# %%
text = story(800)
target, target_losses = train(text, width=128, layers=2, heads=4, steps=200)
draft, draft_losses = train(text, width=32, layers=1, heads=1, steps=300)
print(text[:200], "...\n")
rows = [
    (name, f"{model.num_parameters():,}", f"{model.weight_bytes / 1e3:,.0f}", f"{losses[0]:.2f}", f"{losses[-1]:.2f}")
    for name, model, losses in (("target", target, target_losses), ("draft", draft, draft_losses))
]
Table(("model", "weights", "kB of weights", "loss at first", "loss at last"), rows)

# %% [markdown]
# Now let them generate text. First they decode *greedily*: both models take their most likely character, and the target
# accepts a draft if it is its own most likely character. So the result must be the text that the target generates
# alone, character by character. The next cell checks that first.
#
# `alpha` is measured: the accepted drafts divided by the drafts that the target looked at. The columns "by 4.2" are
# your formulas for this `alpha`, where `c` is the size of the draft model divided by that of the target. The other
# columns are *counted*: the bytes of the target's weights per character, and how many times fewer bytes both models
# read in total, including keys, values and activations. For a memory-bound model, fewer bytes mean less time.

# %%
prompts = ["the old fox ", "the quiet king ", "the happy baker ", "the small owl "]
c = draft.weight_bytes / target.weight_bytes


def compare_gammas(step, temperature):
    """{gamma: the counted run}, and a table that compares all of them with plain decoding."""
    runs = {g: speculate(target, draft, prompts, 96, g, step, temperature=temperature) for g in (0, 1, 2, 4, 8)}
    plain, rows = runs[0].bytes_per_token, []
    for gamma, run in runs.items():
        alpha = run.acceptance if gamma else 0
        given = [f"{run.tokens_per_pass:.2f}", f"{tokens_per_pass(gamma, alpha):.2f}"]
        weights = target.weight_bytes * run.passes / run.written / 1e3
        fewer = [f"{plain / run.bytes_per_token:.2f}", f"{speculative_speedup(gamma, alpha, c):.2f}"]
        rows.append((gamma, f"{alpha:.2f}" if gamma else "", run.passes, *given, f"{weights:,.0f}", *fewer))
    head = ("drafts", "acceptance", "passes", "characters per pass", "by 4.2", "kB of target weights per character")
    return runs, Table((*head, "times fewer bytes", "by 4.2"), rows, f"{runs[0].written} characters")


runs, table = compare_gammas(greedy_step, temperature=0)
for run in runs.values():
    pairs = zip(run.texts, runs[0].texts, prompts, strict=True)
    same = all(one[: len(start) + 96] == plain[: len(start) + 96] for one, plain, start in pairs)
    assert same, "greedy speculative decoding gave another text than plain decoding"
print(runs[4].texts[0], "\n")
table

# %% [markdown]
# The text is the same, and the target's weights are read far less often. Your formula predicts the characters per pass
# well. It assumes one probability `alpha` for all drafts, while real drafts differ: the end of a word is easier to
# predict than the first letter of the next one. The bytes fall a little less than predicted, because the prediction
# counts only the weights.
#
# ## b4.3 Speculative decoding with sampling ({points b4_3})
#
# Most language models do not take the most likely token. They *sample* the next token from their probabilities p. Can
# speculative decoding give exactly the distribution of the target, however bad the draft model is? It can, with the
# following rule. Let q be the probabilities of the draft model, from which it sampled the draft x:
#
# - Accept x with probability min(1, p(x)/q(x)).
# - If x is rejected, sample a token in its place from max(p - q, 0), scaled so that it sums to 1. The later drafts are
#   dropped.
# - If all drafts are accepted, sample one more token from the target's p after the last draft.
#
# Write two functions:
#
# - `expected_acceptance(p, q)`: the probability that a draft sampled from q is accepted. p and q are arrays of V
#   probabilities.
# - `speculative_step(p, q, drafts, uniforms)`: the tokens that one step gives, as a list of ints. With G drafts the
#   arguments are:
#     - `p`, an array (G + 1, V): the target's probabilities at the position of each draft, and after the last one
#     - `q`, an array (G, V): the draft model's probabilities at the position of each draft
#     - `drafts`, a list of G tokens
#     - `uniforms`, G + 1 random numbers in [0, 1): number i decides whether draft i is accepted, and the last one
#       samples the extra token
#
# <details><summary>Hint 1: accept with a given probability</summary>
#
# A uniform random number u is below a threshold t with probability t.
# </details>
# <details><summary>Hint 2: sample a token with one uniform random number</summary>
#
# `np.cumsum` of the probabilities divides the interval from 0 to 1 into one part for each token. Take the token whose
# part contains u.
# </details>


# %% nbgrader={"grade_id": "b4_3", "solution": true} rooflab={"counters": false}
def expected_acceptance(p, q):
    """Probability that a token drawn from q (V,) is accepted by a target with p (V,)."""
    ### BEGIN SOLUTION
    return float(np.minimum(p, q).sum())
    ### END SOLUTION


def speculative_step(p, q, drafts, uniforms):
    """The accepted drafts and one more token: a list of 1 to G + 1 ints."""
    ### BEGIN SOLUTION
    accepted, weights = 0, p[-1]
    for place, token in enumerate(drafts):
        if uniforms[place] * q[place, token] >= p[place, token]:
            weights = np.maximum(p[place] - q[place], 0)
            break
        accepted += 1
    ends = np.cumsum(weights)
    drawn = int(np.searchsorted(ends, uniforms[-1] * ends[-1], side="right"))
    return [*drafts[:accepted], drawn]
    ### END SOLUTION


# %% nbgrader={"grade_id": "b4_3_test", "grade": true, "points": 1}
def check_acceptance(p, q, expected):
    got = expected_acceptance(np.array(p), np.array(q))
    case = f"expected_acceptance({np.round(p, 3).tolist()}, {np.round(q, 3).tolist()})"
    assert is_number(got), f"{case} must return a number, got {got!r}"
    hint = "how likely is it that token x is drafted, and then accepted? Any token may be the one"
    assert is_near(got, expected, 1e-6), f"{case} returned {got}, expected {expected:.6g}. Hint: {hint}"


check_acceptance([0.5, 0.3, 0.2], [0.2, 0.3, 0.5], 0.7)
check_acceptance([0.5, 0.5], [0.25, 0.75], 0.75)
### BEGIN HIDDEN TESTS
check_acceptance([1.0, 0.0, 0.0], [0.125, 0.5, 0.375], 0.125)
check_acceptance([0.2, 0.8], [0.2, 0.8], 1.0)
for size in (2, measure.draw(3, 9), measure.draw(10, 50)):
    p, q = measure.rng().dirichlet(np.ones(size), 2)
    check_acceptance(p, q, 1 - np.abs(p - q).sum() / 2)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "b4_3_step_test", "grade": true, "points": 2}
from itertools import product


def check_step(target, draft, gamma, parts):
    """Try all drafts with all uniform numbers of a fine grid, instead of sampling.

    target(known) and draft(known) are the probabilities after the tokens `known`, as whole `parts`.
    """
    middles = [(part + 0.5) / parts for part in range(parts)]
    found = {}  # the probability that a step begins with these tokens
    for drafts in product(range(len(draft(()))), repeat=gamma):
        q = np.array([draft(drafts[:place]) for place in range(gamma)]) / parts
        p = np.array([target(drafts[:place]) for place in range(gamma + 1)]) / parts
        share = np.prod([q[place, token] for place, token in enumerate(drafts)]) / parts ** (gamma + 1)
        for uniforms in product(middles, repeat=gamma + 1) if share else ():
            tokens = speculative_step(p, q, list(drafts), np.array(uniforms))
            is_list = isinstance(tokens, (list, tuple)) and all(is_count(token) for token in tokens)
            said = f"speculative_step with gamma = {gamma} must return a list of 1 to {gamma + 1} ints, got {tokens!r}"
            assert is_list and 1 <= len(tokens) <= gamma + 1, said
            for length in range(1, len(tokens) + 1):
                begin = tuple(int(token) for token in tokens[:length])
                found[begin] = found.get(begin, 0) + share
    for length in range(gamma + 1):
        for known in product(range(len(draft(()))), repeat=length):
            p, reached = np.array(target(known)) / parts, sum(v for one, v in found.items() if one[:-1] == known)
            got = np.array([found.get((*known, token), 0) for token in range(len(p))])
            said = f"gamma = {gamma}: after the tokens {list(known)} the next token has the probabilities"
            said += f" {got / reached if reached else got}, expected those of the target, {p}"
            hint = "check the acceptance, the distribution after a rejection, and the token after the last draft"
            assert np.allclose(got, reached * p), f"{said}. Hint: {hint}"
            if known:
                before = tuple(known[:-1])
                came = sum(v for one, v in found.items() if one[:-1] == before)
                ours, theirs = (np.array(of(before)) / parts for of in (target, draft))
                most = came * np.minimum(ours, theirs)[known[-1]]
                said = f"gamma = {gamma}: the step goes on after {list(known)} with probability {reached:.6g}"
                assert np.allclose(reached, most), f"{said}, expected {most:.6g}: check when a draft is accepted"


def check_border(p, q, draft):
    """The draft is accepted just below p(x)/q(x), and not just above; no token without probability is returned."""
    p, q = np.array([p, p]), np.array([q])
    border = p[0, draft] / q[0, draft]
    accepted = {border - 1e-9: True, 0.0: True, border + 1e-9: False} if border else {0.0: False, 1e-9: False}
    for uniform, stays in accepted.items():
        seen = measure.call(speculative_step, p, q, [draft], np.array([uniform, 0.0]))
        case = (
            f"speculative_step of p = {p.tolist()}, q = {q.tolist()}, drafts = [{draft}], uniforms = [{uniform}, 0.0]"
        )
        assert not seen.changed, f"{case} wrote into an argument: compute new arrays"
        right = [draft, int(np.flatnonzero(p[1])[0])] if stays else [int(np.flatnonzero(p[0] > q[0])[0])]
        said = f"{case} must return a list of ints, got {seen.value!r}"
        assert isinstance(seen.value, (list, tuple)) and all(map(is_count, seen.value)), said
        got = list(seen.value)
        assert got == right, f"{case} returned {got}, expected {right}: which numbers from 0 to 1 belong to each token?"


check_border([0.0, 0.3, 0.7], [0.25, 0.5, 0.25], draft=1)
check_border([0.0, 0.3, 0.7], [0.25, 0.5, 0.25], draft=0)
ONE_TARGET = {(): (3, 3, 2), (0,): (4, 1, 3), (1,): (0, 8, 0), (2,): (1, 2, 5)}
check_step(ONE_TARGET.get, lambda known: (2, 2, 4), gamma=1, parts=8)
check_step(ONE_TARGET.get, lambda known: (3, 3, 2), gamma=1, parts=8)
### BEGIN HIDDEN TESTS
share = measure.draw(2, 48) / 100
check_border([0.0, share, 0.0, 1 - share], [0.2, 0.5, 0.1, 0.2], draft=1)
check_border([0.0, share, 0.0, 1 - share], [0.2, 0.5, 0.1, 0.2], draft=2)
for p, q in [((4, 3, 1), (8, 0, 0)), ((0, 5, 3), (4, 1, 3))]:
    order, after = measure.rng().permutation(3), measure.rng().multinomial(8, [1 / 3] * 3, 3).tolist()
    p, q = ([one[token] for token in order] for one in (p, q))
    check_step({(): p, (0,): after[0], (1,): after[1], (2,): after[2]}.get, lambda known, q=q: q, 1, 8)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "b4_3_drafts_test", "grade": true, "points": 2}
rows = [(2, 1, 1), (1, 1, 2), (0, 0, 4)]
check_step(lambda known: rows[sum(known) % 2], lambda known: rows[1], gamma=2, parts=4)
### BEGIN HIDDEN TESTS
order = measure.rng().permutation(3)
rows = [[row[token] for token in order] for row in rows]
check_step(lambda known: rows[(1 + len(known) + sum(known)) % 2], lambda known: rows[1 if known else 2], 2, 4)
### END HIDDEN TESTS

# %% [markdown]
# With your `speculative_step` the two models sample their characters. The next cell compares the measured acceptance
# with theory: the mean of `expected_acceptance` over all positions that the target looked at.

# %%
runs, table = compare_gammas(speculative_step, temperature=1)
for gamma, run in runs.items():
    if gamma:
        theory = np.mean([expected_acceptance(p, q) for p, q in run.tested])
        print(f"gamma = {gamma}: {run.acceptance:.2f} of {len(run.tested)} accepted, {theory:.2f} expected")
print("\n" + runs[4].texts[0], "\n")
table
