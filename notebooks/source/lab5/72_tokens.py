# %% [markdown]
# ## b0.4 A tokenizer ({points b0_4})
#
# A language model reads tokens, not letters. The tokens are made by **byte pair encoding**. Every word starts as a list
# of letters. Then, again and again, the most frequent pair of neighbouring tokens is merged into one new token.
#
# - `train_bpe(counts, merges)`: `counts` maps each word to how often it occurs in the text, `{"low": 5, ...}`. Return a
#   list of the first `merges` merges. Each merge is `(left, right, count)`: the two tokens, and how often the pair
#   occurred at that moment.
#     - Pairs are counted inside words only, never across the end of a word.
#     - If two pairs have the same count, take the greater one, as Python compares the tuples `(left, right)`.
#     - Inside a word, merge from left to right: merging `a` with `a` turns `a a a` into `aa a`.
#     - If no pair is left, stop early.
#
# A real text has millions of different words and 50,000 merges. So you must not read every word again for each merge.
# Only the words that contain the merged pair change, and only the counts of a few pairs. Store the counts, and *update*
# them.
#
# <details><summary>Hint</summary>
#
# Store the set of words that contain each pair. For each word with the merged pair: subtract its old pairs from the
# counts, merge, and add its new pairs.
# </details>


# %% nbgrader={"grade_id": "b0_4", "solution": true}
def train_bpe(counts, merges):
    """The first merges, [(left, right, count), ...], of words with their counts."""
    ### BEGIN SOLUTION
    words = {word: list(word) for word in counts}
    pairs, holders = {}, {}

    def enter(word, sign):
        tokens = words[word]
        for pair in pairwise(tokens):
            pairs[pair] = pairs.get(pair, 0) + sign * counts[word]
            if sign > 0:
                holders.setdefault(pair, set()).add(word)

    for word in words:
        enter(word, 1)
    done = []
    for _ in range(merges):
        best = max(pairs, key=lambda pair: (pairs[pair], pair), default=None)
        if best is None or pairs[best] == 0:
            break
        done.append((*best, pairs[best]))
        for word in holders.pop(best):
            enter(word, -1)
            tokens, merged = words[word], []
            while tokens:
                joins = tuple(tokens[:2]) == best
                merged.append("".join(best) if joins else tokens[0])
                tokens = tokens[1 + joins :]
            words[word] = merged
            enter(word, 1)
    return done
    ### END SOLUTION


# %% nbgrader={"grade_id": "b0_4_test", "grade": true, "points": 3}
def check_merges(case, got, expected):
    """The same merges; each may be a tuple or a list."""
    assert isinstance(got, list), f"{case} must return a list, got a {type(got).__name__}"
    for place, (one, right) in enumerate(zip(got, expected, strict=False), 1):
        said = f"{case}: merge {place} must be (left, right, count), got {one!r}"
        assert isinstance(one, (tuple, list)) and len(one) == 3, said
        assert tuple(one) == right, f"{case}: merge {place} is {tuple(one)}, expected {right}"
    said = f"{case} returned {len(got)} merges, expected {len(expected)}: stop only when no pair is left"
    assert len(got) == len(expected), said


def check_bpe(counts, merges, expected):
    got = train_bpe(dict(counts), merges)
    case = f"train_bpe({counts}, {merges})"
    check_merges(case, got, expected)


# Words with "es" and "st" the same number of times, pairs at the ends of words, and a letter three times.
check_bpe({"best": 3, "rest": 2, "tab": 4}, 3, [("s", "t", 5), ("e", "st", 5), ("t", "a", 4)])
check_bpe({"aaa": 4, "ba": 1}, 3, [("a", "a", 8), ("aa", "a", 4), ("b", "a", 1)])
check_bpe({"ab": 2}, 5, [("a", "b", 2)])
check_bpe({"abab": 3}, 2, [("a", "b", 6), ("ab", "ab", 3)])
### BEGIN HIDDEN TESTS
lecture = [("s", "t", 9), ("e", "st", 9), ("o", "w", 7), ("l", "ow", 7), ("w", "est", 6), ("n", "e", 6)]
check_bpe({"low": 5, "lower": 2, "widest": 3, "newest": 6}, 6, lecture)
check_bpe({"low": 5, "newest": 5, "widest": 8}, 3, [("s", "t", 13), ("e", "st", 13), ("w", "i", 8)])


def bpe_again(counts, merges):
    """Every word read for every merge."""
    words, done = {word: list(word) for word in counts}, []
    for _ in range(merges):
        pairs = {}
        for word, tokens in words.items():
            for pair in pairwise(tokens):
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


rng = measure.rng()
for letters, length in (("ab", 9), ("abc", 7), ("abcdefgh", 5)):
    made = {"".join(rng.choice(list(letters), rng.integers(1, length + 1))): int(rng.integers(1, 9)) for _ in range(30)}
    check_bpe(made, 12, bpe_again(made, 12))
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "b0_4_updates_test", "grade": true, "points": 2}
from time import process_time


def check_updates(words, length, merges):
    """Long words that no merge changes must be read only once, however many merges there are."""
    letters = "".join(map(chr, range(25_000, 25_000 + 2 * merges)))
    rare = {letters[2 * place : 2 * place + 2]: 10**7 + place for place in range(merges)}
    text = {("xyz" * length)[index : index + length]: 1 for index in range(words)} | rare
    start, pairs = process_time(), {}
    for word, count in text.items():
        for pair in pairwise(word):
            pairs[pair] = pairs.get(pair, 0) + count
    once = process_time() - start
    spent = measure.cpu_seconds(train_bpe, text, merges)
    right = [(*pair, rare[pair]) for pair in reversed(rare)]
    check_merges(f"train_bpe of {words} words of {length} letters and {merges} of 2", spent.value, right)
    times = f"train_bpe takes {spent.seconds / once:.1f} times as long for {merges} merges as to read all words once"
    said = f"{times}, expected less than {merges // 4} times: do not read words again that have no merged pair"
    assert spent.seconds < merges // 4 * once, said


got = train_bpe({"ab": 1}, 1)
assert len(got) == 1, f'train_bpe({{"ab": 1}}, 1) returned {got}, expected one merge'
check_updates(words=3, length=120_000, merges=64)
### BEGIN HIDDEN TESTS
check_updates(words=measure.draw(2, 4), length=measure.draw(130_000, 150_000), merges=measure.draw(56, 72))
### END HIDDEN TESTS

# %%
merged = train_bpe({"low": 5, "lower": 2, "widest": 3, "newest": 6}, 8)
Table(("left", "right", "count"), merged, title="The first merges of a text with four words")
