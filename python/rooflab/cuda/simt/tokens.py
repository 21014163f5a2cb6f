"""The words of CUDA C++, as a C++ compiler sees them. Where the two differed, code could hide in what is taken for a
comment or a text here. So what compilers read in several ways is refused.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""(?P<space>[ \t\f\v]+|//[^\n]*|/\*.*?\*/)
    |(?P<newline>\n)
    |(?P<raw>(?:u8|[uUL])?R")
    |(?P<string>(?:u8|[uUL])?"(?:\\.|[^"\\\n])*")
    |(?P<char>(?:u8|[uUL])?'(?:\\.|[^'\\\n])*')
    |(?P<number>\.?\d(?:[eEpP][+-]|'(?=\w)|[\w.])*)
    |(?P<name>[^\W\d]\w*)
    |(?P<sign>\#\#|<<<|%:|<:|<%|:>|%>|::|[!\#%&()*+,./:;<=>?[\]^{|}~-])""",
    re.DOTALL | re.VERBOSE | re.ASCII,
)
_CONTINUED = re.compile(r"\\[ \t\f\v]*\n")


class Refused(Exception):
    """Source that is not run here; `args` are the line and why."""


@dataclass(frozen=True)
class Token:
    """A word of the source, and where it stands."""

    kind: str
    text: str
    begin: int
    line: int

    @property
    def end(self) -> int:
        return self.begin + len(self.text)


def joined(text: str) -> str:
    """The text with each line that ends in a backslash joined to the next one, as a compiler does before all else: the
    two may be a word, or the end of a comment. Empty lines follow, so that all others keep their numbers.
    """
    first, *rest = _CONTINUED.split(text.replace("\r\n", "\n").replace("\r", "\n"))
    parts, owed = [first], 0
    for part in rest:
        owed += 1
        line, end, others = part.partition("\n")
        parts.append(line)
        if end:
            parts.append("\n" * (1 + owed) + others)
            owed = 0
    return "".join(parts) + "\n" * owed


def tokens(text: str, line: int) -> list[Token]:
    """The words of a text without continued lines, whose first line has the number `line`.

    Raises
    ------
    Refused
        At what is no C++, or not surely one word.
    """
    found, at = [], 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        kind = match.lastgroup or "" if match else ""
        if not match or kind == "raw" or (kind == "number" and text.startswith("'", match.end())):
            letter, shown = text[at], text[at : at + 10].splitlines()[0]
            if letter in "\"'":
                raise Refused(line, f"{shown} begins a string that nothing closes on its line")
            named = "" if letter.isascii() else f" (it begins with {unicodedata.name(letter, ascii(letter))})"
            raise Refused(line, f"{shown!r} is not C++ that is known here{named}")
        if kind == "sign" and text.startswith("/*", at):
            raise Refused(line, "a comment that nothing closes")
        found.append(Token(kind, match[0], at, line))
        line += match[0].count("\n")
        at = match.end()
    return found
