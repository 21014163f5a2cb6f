"""What is wrong with a kernel, in sentences that name the thread, the element and the line."""

from __future__ import annotations

import math
import re
import signal
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ...results import ReadableMixin
from .memory import Place

# In the order of `Fault` in runtime/protocol.h.
KINDS = (
    "out of bounds", "misaligned", "out of bounds", "missed barrier", "missed barrier", "missed threads of a warp",
    "stack overflow", "stack overwritten", "crash", "endless", "assertion", "division by zero", "no value", "race",
    "uninitialised", "constant written", "corrupt", "shift", "conversion", "trap", "missed threads of a warp",
    "shuffle width", "race",
)  # fmt: skip
_VERBS = ("reads", "writes", "changes", "uses")
_DYNAMIC, _ELSEWHERE = 1 << 62, 1 << 63
_PAGE = 4096  # an element of an array that begins at 0 is no null pointer itself


@dataclass(frozen=True)
class Finding(ReadableMixin):
    """Something wrong that a launch did.

    compute-sanitizer 2025.3 on an H100 says the same of 23 out of 32 small kernels, with the same lines
    (tests/golden/sanitizer.json). In the other nine:

    - four have a barrier that some threads never reach, because they took another way and ended. A GPU does not wait
      for threads that have ended, and synccheck says nothing. CUDA C++ does not allow such a barrier, so it is a
      finding here;
    - one has a shuffle of the whole warp that half of it goes past. A GPU waits until those threads have ended, and
      synccheck says nothing. CUDA C++ does not allow that either. Threads that end without going past it may be named;
    - one has a barrier in each branch of an if. The GPU waits for ever, and synccheck names no line;
    - in one, all threads write the same value to one place of shared memory: racecheck says nothing, and here it is a
      race;
    - in one, shared memory is read that nobody wrote: that version of initcheck looks at global memory only;
    - in one, global memory is read that nobody wrote. Only initcheck finds it: here each array counts as written.

    Races are found in shared and in global memory, within a block and between blocks; racecheck looks at shared memory
    only. `rooflab.cuda.simt` says which of them are not found.

    No tool of compute-sanitizer looks for what C++ and CUDA leave undefined without an access: a division by zero, a
    shift by as many bits as there are, a float that its integer type cannot hold, the value of a lane that takes no
    part in a shuffle. These are findings here, because a GPU and this machine make different values of them. A shuffle
    down or up may take such a value without a finding, as the last lanes of a sum by halves do: it is a wild value.

    Attributes
    ----------
    kind : str
        "out of bounds", "misaligned", "race", "uninitialised", "missed barrier", "missed threads of a warp", "nothing
        written", "stack overflow", "stack overwritten", "division by zero", "shift", "conversion", "shuffle width",
        "assertion", "trap", "no value", "endless", "constant written", "crash", or "corrupt" where the kernel's process
        wrote what it cannot have seen.
    what : str
        One sentence.
    line : int
        Of the source; 0 where it is not known.
    block, thread : tuple of three int
        Where it was seen first: ``blockIdx`` and ``threadIdx``.
    count : int
        How often it was seen on this line.
    """

    kind: str
    what: str
    line: int = 0
    block: tuple[int, int, int] = (0, 0, 0)
    thread: tuple[int, int, int] = (0, 0, 0)
    count: int = 1

    def __str__(self) -> str:
        return (f"line {self.line}: " if self.line else "") + self.what


class Words:
    """Turns the accountant's numbers, which hold neither names nor lines, into findings."""

    def __init__(
        self,
        grid: Sequence[int],
        block: Sequence[int],
        lines: Mapping[int, int],
        places: Sequence[Place],
        seconds: float,
        source: str = "",
    ) -> None:
        self.grid, self.block, self.lines, self.places, self.seconds = grid, block, lines, places, seconds
        self.source = source.splitlines()

    def findings(self, rows: Iterable[Sequence[int]]) -> list[Finding]:
        """Findings, each from (count, fault, block, thread, site, and three numbers more). Those that say the same are
        one, such as a race that both the load and the store of one statement found. A race comes before a read of what
        nobody had written yet, which it may have made.
        """
        found: dict[str, Finding] = {}
        for numbers in rows:
            one = self.finding(numbers)
            known = found.get(str(one))
            found[str(one)] = replace(one, count=one.count + known.count) if known else one
        in_order = sorted(found.values(), key=lambda one: one.kind == "uninitialised")
        return [_with_count(one) for one in in_order]

    def finding(self, numbers: Sequence[int]) -> Finding:
        """A finding whose sentence leaves out how often it was seen."""
        count, fault, block, thread, site, *rest = numbers
        line = self.line(site)
        if fault in (10, 19):
            line = rest[0]
        elif fault in (2, 12, 17, 18) or (fault == 11 and not rest[0]):
            line = rest[1] or line
        at = f"Thread {_shown(_unraveled(thread, self.block))} of block {_shown(_unraveled(block, self.grid))}"
        says = self.says(fault, rest)
        if fault == 5 and not rest[0] >> thread % 32 & 1:
            says = f"names lanes of its warp by the mask {rest[0]:#010x}, which leaves out its own lane {thread % 32}"
        at_block, at_thread = _unraveled(block, self.grid), _unraveled(thread, self.block)
        return Finding(KINDS[fault], f"{at} {says}.", line, at_block, at_thread, count)

    def line(self, site: int) -> int:
        """The source's line of a site."""
        return self.lines.get(site, 0)

    def says(self, fault: int, rest: Sequence[int]) -> str:
        """What the thread does, as the rest of a sentence."""
        a, b, c = rest
        if fault == 0:
            return f"{_VERBS[c]} {b} bytes at {self.place(a, b)}"
        if fault == 1:
            where = self.place(a).replace("an address that belongs to no array", "an address of its own or its block's")
            where = where.removesuffix(", which ends before it")
            return f"{_VERBS[c]} {b} bytes at {where}, where an address has to be a multiple of {b}"
        if fault == 2:
            shown = "an element" if a == (1 << 64) - 1 else f"element {a - (1 << 64) if a >> 63 else a}"
            return f"uses {shown} that is outside of its array"
        if fault == 3:
            return f"ended before a barrier that {b} threads of its block wait at (with {a - 1} more)"
        if fault == 4:
            other = _shown(_unraveled(b, self.block))
            return f"waits at another barrier than thread {other}, which waits on line {self.line(a)}"
        if fault == 5:
            lanes = ", ".join(str(lane) for lane in range(32) if b >> lane & 1)
            one = "," not in lanes
            why = (
                f"which do{'es' if one else ''} not come",
                "which went past it and ended",
                f"which {'is' if one else 'are'} in another operation",
            )[c]
            return f"waits for lane{'' if one else 's'} {lanes} of its warp, {why} (mask {a:#010x})"
        if fault == 6:
            return "needs more stack than there is: a large array, or a function that calls itself without end"
        if fault == 7:
            return "wrote over its own stack"
        if fault == 8:
            return f"made the process crash ({signal.Signals(a).name})"
        if fault == 9:
            blocks = math.prod(self.grid)
            done = f", when {a:,} of {blocks:,} blocks were: all may take longer, or" if a else ":"
            return f"was not done after {self.seconds:g} s{done} a loop may have no end"
        if fault == 10:
            return f"does not meet {self.assertion(a) or 'an assert'}"
        if fault == 11:
            return "divides an integer by zero" + (", or the least integer by -1" if a else "")
        if fault == 12:
            return "comes to the end of a function that has to return a value"
        if fault == 13:
            other = _shown(_unraveled(b, self.block))
            return (
                f"and thread {other} access one place of shared memory, one of them writing, with no barrier between: "
                f"{'the other on line ' + str(self.line(a)) if self.line(a) else 'see both'}"
            )
        if fault == 22:
            other = (
                f"thread {_shown(_unraveled(b & 1023, self.block))} of block {_shown(_unraveled(b >> 10, self.grid))}"
            )
            at = next((self.place(c) for place in self.places if place.begin <= c < place.begin + place.bytes), "")
            return (
                f"and {other} access {at or 'a __device__ variable'}, one of them writing, with no order between: "
                f"{'the other on line ' + str(self.line(a)) if self.line(a) else 'see both'}"
            )
        if fault == 15 and a & _ELSEWHERE:
            return f"{_VERBS[c]} {b} bytes of a __constant__ variable, which a kernel can only read"
        if fault == 15:
            return f"{_VERBS[c]} {b} bytes at {self.place(a)}, where the parameter points to const"
        if fault == 14:
            return f"reads {b} bytes of shared memory that no thread of its block has written"
        if fault == 17:
            by = a - (1 << 64) if a >> 63 else a
            return f"shifts an integer of {c} bits by {by}: a GPU shifts all bits out, C++ has no result"
        if fault == 18:
            number = struct.unpack("d", struct.pack("Q", a))[0]
            gives = "0" if number != number else "the nearest one"
            says = f"a GPU mostly takes {gives}, C++ has no result"
            return f"converts {number:g} to an integer type that cannot hold it: {says}"
        if fault == 19:
            return "comes to a __trap"
        if fault == 20:
            return f"takes the value of lane {b} of its warp, which does not take part in the shuffle (lanes {a:#010x})"
        if fault == 21:
            width = a - (1 << 32) if a >> 31 else a
            return f"shuffles with a width of {width}, which is not 1, 2, 4, 8, 16 or 32"
        return "left records that make no sense"

    def assertion(self, line: int) -> str:
        """``assert(n > 0)`` as it stands on a line of the source; "" where it does not."""
        text = self.source[line - 1] if 0 < line <= len(self.source) else ""
        found = re.search(r"\bassert\s*\(", text)
        depth = 1
        for end in range(found.end() if found else len(text), len(text)):
            depth += (text[end] == "(") - (text[end] == ")")
            if found and depth == 0:
                return text[found.start() : end + 1]
        return ""

    def place(self, address: int, size: int = 0) -> str:
        """An address in words: the nearest array before or behind it, and which of its elements it would be.

        For an access of `size` bytes that begins in an array also how many of them are past its end.
        """
        if address & _ELSEWHERE:
            if address - _ELSEWHERE < _PAGE:
                return "a null pointer"
            return "an address that belongs to no array"
        if address & _DYNAMIC:
            return f"byte {address - _DYNAMIC} of the dynamic shared memory, which ends before it"
        if not self.places:
            return "an address that belongs to no array"
        near = min(self.places, key=lambda place: max(place.begin - address, address - place.begin - place.bytes + 1))
        element = (address - near.begin) // near.item_bytes
        elements = near.bytes // near.item_bytes
        has = f"has {elements} element{'' if elements == 1 else 's'}"
        left = near.begin + near.bytes - address
        if near.begin <= address and left > 0:
            return f"{near.label}[{element}]" + (f", {size - left} past its end, as it {has}" if size > left else "")
        return f"{near.label}[{element}], which {has}"


def _with_count(one: Finding) -> Finding:
    if one.count == 1:
        return one
    return replace(one, what=f"{one.what[:-1]} ({one.count:,} times on this line).")


def _unraveled(number: int, of: Sequence[int]) -> tuple[int, int, int]:
    return number % of[0], number // of[0] % of[1], number // (of[0] * of[1])


def _shown(three: Sequence[int]) -> str:
    return str(three[0]) if three[1] == three[2] == 0 else f"({three[0]}, {three[1]}, {three[2]})"
