"""Docstrings as reStructuredText. They are written for `help()`, as plain text in NumPy's style with `code` in
backticks, so characters that mean something in reStructuredText alone are escaped.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterable

from .subjects import documented

_SPAN = re.compile(r"``.+?``|`[^`]+`|\b(?:rl|rooflab)(?:\.[A-Za-z]\w*)+|_+(?!\w)|[\\*|]", re.DOTALL)
_ENDS_MARKUP = re.compile(r"$|[\s'\")\]}>/:.,;!?-]")  # what may follow it
_UNDERLINE = re.compile(r"\s*-{3,}$")
_ITEM = re.compile(r"\s*[-*] ")


def restructured(text: str) -> str:
    """A docstring with its markup escaped, and what it names in rooflab as links.

    Before the first section, an indented block is shown as it is written. Examples stay as they are.

    Examples
    --------
    >>> restructured("The dtype of `x`, or 2 * x_.")
    'The dtype of ``x``, or 2 \\\\* x\\\\_.'
    >>> restructured("As rl.exp, elementwise.")
    'As :py:obj:`rl.exp <rooflab.exp>`, elementwise.'
    """
    made: list[str] = []
    has_sections = False
    for block in re.split(r"\n\s*\n", text.strip("\n")):
        lines = block.split("\n")
        is_heading = any(map(_UNDERLINE.match, lines))
        has_sections = has_sections or is_heading
        if lines[0].startswith(" ") and not has_sections and not _ITEM.match(lines[0]):
            made.append(f".. code-block:: {'python' if _is_python(block) else 'text'}\n\n{block}")
            continue
        example = next((place for place, line in enumerate(lines) if line.lstrip().startswith(">>>")), len(lines))
        words = escaped("\n".join(_with_lists_apart(lines[:example])))
        made.append("\n".join(filter(None, (words, "\n".join(lines[example:])))))
    return "\n\n".join(made)


def escaped(text: str) -> str:
    """Plain text without markup, but for `code` and for links to names such as rl.exp.

    Examples
    --------
    >>> escaped("`Sample`s of rl.nothing")
    '``Sample``\\\\ s of rl.nothing'
    """

    def replaced(found: re.Match[str]) -> str:
        span = found[0]
        follows = "" if _ENDS_MARKUP.match(text, found.end()) else "\\ "
        if not span.startswith(("`", "_", "\\", "*", "|")):
            return f":py:obj:`{span} <{target}>`{follows}" if (target := _target(span)) else span
        if span.startswith("`"):
            code = " ".join(span.strip("`").split())
            target = _target(code.removesuffix("()"))
            return (f":py:obj:`{code} <{target}>`" if target else f"``{code}``") + follows
        return "".join(f"\\{character}" for character in span)

    return _SPAN.sub(replaced, text)


def _target(name: str) -> str:
    """The full name of what `rl.name` or `rooflab.name` is, if the reference has an entry for it; "" otherwise."""
    full = re.sub(r"^rl\.", "rooflab.", name)
    return full if full in documented() else ""


def _is_python(text: str) -> bool:
    try:
        ast.parse(textwrap.dedent(text))
    except SyntaxError:
        return False
    return True


def _with_lists_apart(lines: Iterable[str]) -> list[str]:
    """Lines with an empty one where a list begins, which ends the paragraph above it."""
    made: list[str] = []
    for line in lines:
        if _ITEM.match(line) and made and not _ITEM.match(made[-1]) and not made[-1].startswith(" "):
            made.append("")
        made.append(line)
    return made
