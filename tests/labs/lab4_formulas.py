"""The two functions that most answers of Lab 4 consist of, from their formulas."""


def formulas(name, sizes, flops, moved, more=""):
    """`name`_flops(sizes) and `name`_bytes(sizes, n) as code; `more` stands before them."""
    return (
        f"{more}\ndef {name}_flops({sizes}):\n    return {flops}\n\ndef {name}_bytes({sizes}, n):\n    return {moved}\n"
    )


def wrong(name, sizes, flops, moved, cases):
    """(label, code) for each label and what replaces the right formulas: {"flops": ...} or {"moved": ...}."""
    right = {"flops": flops, "moved": moved}
    return [(label, formulas(name, sizes, **right | case)) for label, case in cases.items()]
