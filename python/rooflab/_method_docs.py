"""The docstring of a method, made of that of the function of the same name, so that the text is written once."""

from __future__ import annotations

import functools
import inspect
import re
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise

_TITLE = re.compile(r"^(Parameters|Returns|Raises|Warns|Notes|Examples)\n-+\n", re.MULTILINE)
_IMPORT = ">>> import rooflab as rl"
_OTHER_TYPES = "For anything but a tensor."  # what a function says of its first argument; a method has it already


def of_method(doc: str, function: str, method: str, parameters: Sequence[str] | Mapping[str, str]) -> str:
    """Turn the docstring of ``rl.function(x, ...)`` into that of ``x.method(...)``.

    The tensor itself is no parameter of the method, so a sentence says what it is. Parameters that the method lacks are
    left out, and examples call the method.

    Parameters
    ----------
    doc : str
        In NumPy style. The first parameter is the tensor.
    function, method : str
        Their names, which are mostly the same.
    parameters : sequence of str, or dict of str to str
        The parameters that the method has too. A dict tells under which names.

    Returns
    -------
    str
        The docstring of the method.

    Raises
    ------
    ValueError
        For a docstring without parameters.

    Examples
    --------
    >>> print(of_method("-x.\\n\\nParameters\\n----------\\nx : Tensor\\n    Of any shape.", "neg", "neg", []))
    -x.
    <BLANKLINE>
    `x` is this tensor: of any shape.
    """
    head, *rest = _TITLE.split(inspect.cleandoc(doc))
    sections = {title: text.strip("\n") for title, text in zip(rest[::2], rest[1::2], strict=True)}
    names = parameters if isinstance(parameters, Mapping) else {name: name for name in parameters}
    if "Parameters" not in sections:
        raise ValueError(f"[of_method] doc: expected one with parameters, got that of {function}")
    entries = list(_entries(sections["Parameters"]))
    receiver, *shared = _names(entries[0][0])
    about = _lower(" ".join(line.strip() for line in entries[0][1])).removesuffix(".")
    about = "" if shared or about == "(...)" else f": {about}"
    renamed = [f"`{old}` is `{new}`" for old, new in names.items() if old != new]
    head = head.rstrip() + f"\n\n`{receiver}` is this tensor{about}{''.join(', and ' + one for one in renamed)}."
    kept = []
    for title, body in entries:
        if own := [names[name] for name in _names(title) if name != receiver and name in names]:
            stars = "*" * title.startswith("*")
            kept.append("\n".join([f"{stars}{', '.join(own)} :{title.partition(' :')[2]}", *body]))
    sections["Parameters"] = "\n".join(kept)
    raised = [[title, *body] for title, body in _entries(sections.get("Raises", "")) if body != ["    " + _OTHER_TYPES]]
    sections["Raises"] = "\n".join("\n".join(lines) for lines in raised)
    sections["Examples"] = _calls(sections.get("Examples", ""), f"rl.{function}(", method)
    return "\n\n".join([head, *(f"{title}\n{'-' * len(title)}\n{text}" for title, text in sections.items() if text)])


def _entries(section: str) -> Iterator[tuple[str, list[str]]]:
    """The title of each entry of a section, "x : Tensor", and the lines below it."""
    lines = section.splitlines()
    starts = [number for number, line in enumerate(lines) if line and not line.startswith(" ")]
    for start, end in pairwise([*starts, len(lines)]):
        yield lines[start], lines[start + 1 : end]


def _names(title: str) -> list[str]:
    return [name.strip(" *") for name in title.partition(" :")[0].split(",")]


def _lower(text: str) -> str:
    """Text that follows a colon: its first letter is small, unless it begins an abbreviation."""
    return text[:1].lower() + text[1:] if text[1:2].islower() else text


def _calls(examples: str, call: str, method: str) -> str:
    """Examples with each ``rl.f(x, ...)`` as ``x.f(...)``."""
    begin = examples.find(call)
    if begin < 0:
        return examples
    depth, end = 0, begin + len(call)
    while depth or examples[end] not in ",)":
        depth += (examples[end] in "([{") - (examples[end] in ")]}")
        end += 1
    receiver, rest = examples[begin + len(call) : end], examples[end:]
    rest = rest.removeprefix(",").lstrip(" ")
    return examples[:begin] + receiver + f".{method}(" + _calls(rest, call, method)


def like(function: Callable, **names: str) -> Callable[[Callable], Callable]:
    """Give a method the docstring of a function, of whose parameters it has those in `names`, under other names."""

    def document(method: Callable) -> Callable:
        # Without the signatures that pybind11 writes where stubs are made.
        name = function.__name__
        signature = rf"^(\d+\. )?{name}\(.*\) -> .*\n|^{name}\(\*args, \*\*kwargs\)\n|^Overloaded function\.\n"
        text = re.sub(signature, "", f"{function.__doc__}\n", flags=re.MULTILINE)
        if _IMPORT not in text:
            text = text.replace("Examples\n--------\n", f"Examples\n--------\n{_IMPORT}\n")
        method.__doc__ = of_method(text, name, method.__name__, names)
        return method

    return document


def as_method(function: Callable) -> Callable:
    """The same function with the docstring of a method."""
    made = types.FunctionType(function.__code__, function.__globals__, function.__name__, None, function.__closure__)
    functools.update_wrapper(made, function)
    receiver, *others = inspect.signature(function).parameters.values()
    parameters = [receiver.replace(name="self"), *others]
    made.__signature__ = inspect.signature(function).replace(parameters=parameters)  # type: ignore[attr-defined]
    names = {other.name: other.name for other in others}
    return like(function, **names)(made)
