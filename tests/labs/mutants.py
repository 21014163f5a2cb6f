"""A wrong answer is a right one with a line replaced: the line must be there."""


def changed(text, *pairs):
    """`text` with one change after the other, old then new; each must apply."""
    for old, new in zip(pairs[::2], pairs[1::2], strict=True):
        assert old in text, old
        text = text.replace(old, new)
    return text


def mutants(text, *cases):
    """(label, old, new ...) each -> (label, the changed text)."""
    return [(label, changed(text, *pairs)) for label, *pairs in cases]
