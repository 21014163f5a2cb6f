"""What the words of a declaration declare."""

from __future__ import annotations


def is_function(words: list[str]) -> bool:
    """Whether a { behind these words begins a function's body, and neither a type nor an initial value."""
    at, is_within, has_parameters = 0, 0, False  # of parentheses, and of a template's parameters
    while at < len(words):
        word = words[at]
        if word in ("alignas", "__align__"):
            at = closing_parenthesis(words, at + 1)
        elif word == "operator":
            return True
        elif word == "=" and not is_within:
            return False
        elif word in ("(", ")"):
            has_parameters |= word == "("
            is_within += 1 if word == "(" else -1
        elif word == "template" and words[at + 1 : at + 2] == ["<"]:
            at = closing_angle(words, at + 1)
        at += 1
    return has_parameters


def closing_angle(words: list[str], at: int) -> int:
    """Where the < closes that opens at `at`."""
    depth = 0
    for end in range(at, len(words)):
        depth += (words[end] == "<") - (words[end] == ">")
        if depth == 0:
            return end
    return len(words) - 1


def without_defaults(words: list[str]) -> list[str]:
    """The words of a list of parameters without their default values."""
    depth, kept, is_default = 0, [], False
    for word in words:
        depth += (word in "([{<") - (word in ")]}>")
        is_default = (is_default or word == "=") and not (word == "," and depth == 0)
        if not is_default:
            kept.append(word)
    return kept


def is_host_variable(words: list[str], of_device: set[str]) -> bool:
    """Whether the words of a declaration that ends in ; make a variable, with none of the words `of_device`. A constant
    number is the device's too, and an array of constants is not.
    """
    of_device = {"__global__", "__shared__", "constexpr", "using", "typedef", *of_device}
    starts = {"struct", "class", "union", "enum", "template", "namespace", "static_assert"}
    before = words[: words.index("=")] if "=" in words else words
    is_number = "const" in words and not ("[" in before and "=" in words)
    return not (is_number or set(words) & of_device or words[0] in starts or "(" in before)


def is_variable(words: list[str]) -> bool:
    """Whether what follows ``__device__`` declares no function: something else than a parameter list comes first."""
    at = 1
    while at < len(words):
        if words[at] in ("__launch_bounds__", "__align__", "alignas", "decltype"):
            at += 1 + closing_parenthesis(words[at + 1 :], 0)
        elif words[at] in ("(", "operator", "struct", "class"):
            return False
        elif words[at] in ("=", ";", "{", "["):
            return True
        at += 1
    return False


def is_constant(before: list[str], words: list[str]) -> bool:
    """Whether the variable that follows ``__device__`` is constant itself; a pointer to what is constant is not."""
    end = next((at for at, word in enumerate(words) if word in ("=", ";", "{", "[")), len(words))
    found = [*before, *words[:end]]
    behind = found[len(found) - found[::-1].index("*") :] if "*" in found else found
    return "constexpr" in found or "const" in behind


def parameters_begin(words: list[str]) -> int | None:
    """Where the last parenthesis outside of others opens: the list of parameters."""
    depth, found = 0, None
    for at, word in enumerate(words):
        if word == "(" and depth == 0:
            found = at
        depth += (word == "(") - (word == ")")
    return found


def closing_parenthesis(words: list[str], at: int) -> int:
    """Where the parenthesis closes that opens at `at`."""
    depth = 0
    for end in range(at, len(words)):
        depth += (words[end] == "(") - (words[end] == ")")
        if depth == 0:
            return end
    return len(words) - 1


def spelled(words: list[str]) -> str:
    """``flash<64, float>`` from its tokens, as NVRTC names it."""
    text = ""
    for word in words:
        is_between_words = text and (text[-1].isalnum() or text[-1] == "_") and (word[0].isalnum() or word[0] == "_")
        text += (" " if is_between_words else "") + (", " if word == "," else word)
    return text
