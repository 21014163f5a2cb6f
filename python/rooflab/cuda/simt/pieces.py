"""The alignment of each structure that is copied whole, which says in what pieces a GPU copies it.

The compiler's hooks pass the size alone. Its own form of the functions (-fdump-tree-optimized-uid) has the name of the
structure behind the hooks of a copy, and its list of classes (-fdump-lang-class) the alignment of each name.
"""

from __future__ import annotations

import re

_FUNCTION = re.compile(r"^;; Function .+ \((\S+), funcdef_no=.*\n((?:(?!;; Function ).*\n?)*)", re.MULTILINE)
_HOOK = re.compile(r" +__builtin___(tsan_(?:read|write)(?:_range|16|8|4|2))\S* \(.*?(?:, (\d+))?\);")
# What may stand between the hooks of a copy and the copy: the addresses of its places.
_BETWEEN = re.compile(r" *(#.*|__builtin___tsan.*|[\w.$]*_\d+ = (&.*|[\w.$()]+( [-+*] [\w.$()]+)?);)?")
_CLASS = re.compile(r"^Class (.*)\n +size=(\d+) align=(\d+)$", re.MULTILINE)
_TYPE = r"(?:const |volatile )*(?:struct|union) (\S+?)D\.\d+"
_IN_PLACE = re.compile(rf"MEM\[\({_TYPE} [&*]\)[^\[\]]*\]")
_POINTED = re.compile(r"\*(_\d+|[A-Za-z$][\w$]*?)(?:_\d+)?(?:\(D\))?")
_ELEMENT = re.compile(r"([\w.$]+D\.\d+)(?:\[[\w.$]+\])*")


def alignments(dump: str, classes: str) -> dict[str, list[tuple[str, int]]]:
    """By function, each call of a hook for 2 bytes or more, in order, with the alignment of the structure there.

    Parameters
    ----------
    dump, classes : str
        What -fdump-tree-optimized-uid and -fdump-lang-class write.

    Returns
    -------
    dict of str to list of (str, int)
        The hook without its underscores, and bytes; 0 where there is no structure, or its alignment is not known.
    """
    known = _Classes(classes)
    return {name: _calls(body, known) for name, body in _FUNCTION.findall(dump)}


class _Classes:
    """Alignments by name and size."""

    def __init__(self, text: str) -> None:
        self.named: dict[tuple[str, int], set[int]] = {}
        self.own: dict[int, set[int]] = {}  # of the kernel's source
        self.any: dict[int, set[int]] = {}
        for name, size, alignment in _CLASS.findall(text):
            self.named.setdefault((_plain(name), int(size)), set()).add(int(alignment))
            self.any.setdefault(int(size), set()).add(int(alignment))
            if not name.startswith("rl_"):
                self.own.setdefault(int(size), set()).add(int(alignment))

    def alignments(self, name: str, size: int) -> set[int]:
        """A name that is not there is another one for a class that is; classes of one name may differ."""
        return self.named.get((name, size)) or self.own.get(size) or self.any.get(size) or {0}


def _plain(name: str) -> str:
    """A class's name without what is around it and without template arguments, as the functions have it."""
    before = ""
    while name != before:
        before, name = name, re.sub(r"<[^<>]*>|\([^()]*\)", "", name)
    return name.rpartition("::")[2]


def _calls(body: str, known: _Classes) -> list[tuple[str, int]]:
    head, _, code = body.partition("  <bb ")
    found: list[tuple[str, int]] = []
    waiting: list[tuple[str, int]] = []
    for line in code.splitlines():
        if hook := _HOOK.match(line):
            waiting.append((hook[1], int(hook[2] or hook[1].replace("read", "write").partition("write")[2])))
        elif waiting and not _BETWEEN.fullmatch(line):
            names = {name for side in line.strip(" ;").split(" = ") if (name := _structure(side, head))}
            for called, size in waiting:
                of_names = {0}.union(*(known.alignments(name, size) for name in names)) - {0}
                found.append((called, min(of_names) if len(of_names) == 1 else 0))
            waiting = []
    return found + [(called, 0) for called, _ in waiting]


def _structure(place: str, head: str) -> str:
    """The name of the structure that lies at a place as a whole; "" where this is not seen."""
    if found := _IN_PLACE.fullmatch(place):
        return found[1]
    for pattern, declared in ((_POINTED, r" [*&] (?:restrict )?{}(?:D\.\d+)?[,;)]"), (_ELEMENT, r" {}(?:[\[,;)]| =)")):
        if (found := pattern.fullmatch(place)) and (
            of := re.search(_TYPE + declared.format(re.escape(found[1])), head)
        ):
            return of[1]
    return ""
