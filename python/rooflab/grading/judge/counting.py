"""How the judge has a call counted.

The worker is given stand-ins: numbers like the test's, but not the same ones. What it then records is repeated in the
runtime with the test's own. So a result that the recorded calls did not compute is wrong there, however it was made.
That holds as long as the worker has not been given the test's own numbers before: it could have kept their result.

And it holds only for a call that is given drawn numbers: floating-point numbers, of more than MARKS different values in
one tensor or array. All else, such as integers, masks, tensors of one element that is whole, and numbers of Python, is
given as it is. So the answer of a call with nothing else can be known to the worker, and its record can be forged.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import rooflab as rl
from rooflab.cuda import Finding
from rooflab.grading.jail.link import Link, Unfit
from rooflab.grading.judge.runtime import Runtime
from rooflab.grading.measure import one_call

FACTORS = 0.8, 1.25
MARKS = 3
FOLLOWS = (
    "({} was counted on other numbers than the test's, and its rl operations were repeated on the test's. What it "
    "computed from numbers that it took out of tensors, by item, float or NumPy, did not follow. Compute with rl "
    "tensors.)"
)
TWO_FORMS = (
    "The function {} was called twice to be counted, because its value is not of tensors alone. Only one of the two "
    "values had a tensor in some place. Return tensors in the same places in every call."
)
SHOWN = "The function {} cannot be counted on numbers that it got before. The test has to draw others."


@dataclass
class Counting:
    """Counts calls for one test cell. In `outside` are functions that took numbers out of tensors or put some in, in
    `heard` the texts that came from the student's code, in `ours` the words for what is measured and the names of ops,
    and in `found` what its kernels did wrong.
    """

    runtime: Runtime
    random: np.random.Generator
    outside: set[str] = field(default_factory=set)
    heard: set[str] = field(default_factory=set)
    ours: set[str] = field(default_factory=lambda: {"value", "changed", "launches", "profiles", "sections", "seconds"})
    found: list[Finding] = field(default_factory=list)

    def ask(self, link: Link, kind: str, *payload: Any, answer: Callable[..., Any] | None = None) -> Any:
        """What the worker answers. It is given the test's own numbers, which it may keep."""
        link.given.update(_digests(payload))
        return self.hear(link.ask(kind, *payload, answer=answer))

    def measure(
        self,
        link: Link,
        name: str,
        kind: str,
        call: tuple[tuple, dict, dict],
        through: str,
        answer: Callable[..., Any] | None,
    ) -> Any:
        """What `one_call` measures of a call (args, kwargs, options) of the student's function `name`.

        Plain numbers in the value cannot be computed again. So they are those of a second call, with the test's own
        arguments. Each count is then the larger one of the two calls: the second may use what the first has kept, and
        the first may do less than what gives the numbers.

        Raises
        ------
        Unfit
            Where one of the two calls returns a tensor, the other does not. Or the value has tensors, and the worker
            was given the test's own numbers before.
        """
        if kind not in one_call.COUNTED:
            seen = self.ask(link, "measure", kind, name, *call, through, answer=answer)
            if kind != "timed":
                return seen
            value, recorded = seen if type(seen) is tuple and len(seen) == 2 else (None, None)
            return {"value": value, **self._repeated(link, kind, (*call[:2], {}), recorded)}
        recorded = link.ask("measure", kind, name, *stand_ins(call, self.random), through)
        counted = self._repeated(link, kind, call, recorded)
        if _has_tensors(counted.get("value")) and not link.given.isdisjoint(_digests(call)):
            raise Unfit(SHOWN.format(name))
        if not _is_of_tensors(counted.get("value")):
            own = self._repeated(link, kind, call, self.ask(link, "measure", kind, name, *call, through))
            if _form(counted["value"]) != _form(own["value"]):
                raise Unfit(TWO_FORMS.format(name))
            counted = _larger(counted, own) | {"value": _with_numbers(counted["value"], own["value"])}
        passes = [counted, *(counted.get(one, {}) for one in ("forward", "backward"))]
        if any(one.get(way, 0) for one in passes for way in ("uploaded_bytes", "downloaded_bytes")):
            self.outside.add(name)
        return counted

    def _repeated(self, link: Link, kind: str, call: tuple[tuple, dict, dict], recorded: Any) -> dict:
        seen = self.runtime.measure(kind, *call, recorded, link.limits.seconds)
        for one in (seen, seen.get("forward", {}), seen.get("backward", {})):
            self.ours.update(one, one.get("by_op", ()))
        return seen

    def hear(self, value: Any) -> Any:
        """The same value; its texts are remembered."""
        self.heard.update(set(texts(value)) - self.ours)
        return value

    def shown(self, message: str, source: str) -> str:
        """A message of hidden tests without the texts that student code gave, which may hold the hidden inputs. Of
        findings it has the line and the kind.
        """
        for one in self.found:  # its numbers may come from the inputs
            where = f"line {one.line}: " if one.line else ""
            message = message.replace(str(one), f"{where}{one.kind}, on inputs that are not shown.")
        for text in sorted(self.heard, key=len, reverse=True):
            for written in (text, repr(text)[1:-1]):
                if len(text) > 1 and text not in source:
                    message = message.replace(written, "...")
        return message

    def why(self) -> str:
        """What may have made a value wrong, as a sentence in brackets, or nothing."""
        return " " + FOLLOWS.format(" and ".join(sorted(self.outside))) if self.outside else ""


def stand_ins(value: Any, random: np.random.Generator, made: dict[int, Any] | None = None) -> Any:
    """The same tensors, arrays, lists and dicts with other floating-point numbers in them.

    Each number is multiplied by a random factor from FACTORS: zeros, signs, infinities and NaN stay. Where all are
    whole numbers, each is drawn from among them; up to MARKS different ones may be marks of a mask, and stay. One
    object has one stand-in.
    """
    made = {} if made is None else made
    if isinstance(value, (list, tuple)):
        return type(value)(stand_ins(one, random, made) for one in value)
    if isinstance(value, dict):
        return {key: stand_ins(one, random, made) for key, one in value.items()}
    if id(value) not in made:
        made[id(value)] = _stand_in(value, random)
    return made[id(value)]


def texts(value: Any) -> Iterator[str]:
    """The texts in a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from texts([*value.keys(), *value.values()])
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from texts(one)


def _is_of_tensors(value: Any) -> bool:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return all(map(_is_of_tensors, value))
    return value is None or isinstance(value, rl.Tensor)


def _has_tensors(value: Any) -> bool:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return any(map(_has_tensors, value))
    return isinstance(value, rl.Tensor)


def _form(value: Any) -> Any:
    """Where a value has tensors: its lists, tuples and dicts that hold some, and "" for all else."""
    if not _has_tensors(value):
        return ""
    if isinstance(value, dict):
        return {key: _form(one) for key, one in value.items()}
    return type(value)(map(_form, value)) if isinstance(value, (list, tuple)) else rl.Tensor


def _with_numbers(value: Any, own: Any) -> Any:
    """The tensors of `value`, and all else from `own`, which has the same form."""
    if not _has_tensors(value):
        return own
    if isinstance(value, dict):
        return {key: _with_numbers(one, own[key]) for key, one in value.items()}
    return type(value)(map(_with_numbers, value, own)) if isinstance(value, (list, tuple)) else value


def _larger(first: dict, own: dict) -> dict:
    """Of each count the larger one, and all else from `own`."""
    larger = first | own
    for name in first.keys() & own.keys():
        if isinstance(own[name], dict) and isinstance(first[name], dict):
            larger[name] = _larger(first[name], own[name])
        elif type(own[name]) is type(first[name]) is int:
            larger[name] = max(first[name], own[name])
    return larger


def _digests(value: Any) -> Iterator[bytes]:
    """One text for each tensor or array of floating-point numbers in a value, marks of masks aside."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for one in value:
            yield from _digests(one)
    elif _has_numbers(value):
        numbers = value.detach().to("float64").cpu().numpy() if isinstance(value, rl.Tensor) else value
        if _has_many(numbers):
            yield hashlib.blake2b(np.asarray(numbers, np.float64, "C").tobytes()).digest()


def _has_numbers(value: Any) -> bool:
    """Whether it is a tensor or an array of floating-point numbers."""
    if isinstance(value, rl.Tensor):
        return value.dtype.is_floating_point and not value.device.startswith("meta")
    return isinstance(value, np.ndarray) and value.dtype.kind == "f"


def _stand_in(value: Any, random: np.random.Generator) -> Any:
    if not _has_numbers(value):
        return value
    if isinstance(value, rl.Tensor):
        numbers = _others(value.detach().to("float64").cpu().numpy(), random)
        made = rl.tensor(numbers, dtype=value.dtype, device=value.device)
        return made.requires_grad_() if value.requires_grad else made
    return _others(value, random).astype(value.dtype)


def _others(numbers: np.ndarray, random: np.random.Generator) -> np.ndarray:
    finite = numbers[np.isfinite(numbers)]
    if (finite != np.round(finite)).any():
        return numbers * random.uniform(*FACTORS, numbers.shape)
    return random.choice(numbers.ravel(), numbers.shape) if _has_many(finite) else numbers


def _has_many(numbers: np.ndarray) -> bool:
    """Whether more than MARKS different numbers are in it, NaN being one. Drawn ones are told by the first few."""
    flat, step = numbers.ravel(), 1 << 12
    found = flat[:0]
    for start in range(0, flat.size, step):
        found = np.unique(np.concatenate([found, flat[start : start + step]]))
        if len(found) > MARKS:
            return True
    return False
