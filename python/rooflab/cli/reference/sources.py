"""The pages of the reference as reStructuredText, from which Sphinx makes HTML."""

from __future__ import annotations

import argparse
import importlib
import inspect
import re
from collections.abc import Iterable
from dataclasses import dataclass

import jinja2

import rooflab as rl

from .ops import cases, formula, ladder, measured
from .prose import escaped, restructured
from .subjects import PACKAGES, packages, public_names, subjects

INTERNAL = "ops inside of others"  # ops that no public function of their name calls
OWN_PAGE = ("Tensor",)  # beside the ops


@dataclass(frozen=True)
class Entry:
    """A public name and its text on a page of names; "" where it has a page of its own."""

    name: str
    text: str


def pages(parser: argparse.ArgumentParser) -> dict[str, str]:
    """The source of each page, by its name without the ending.

    Parameters
    ----------
    parser : argparse.ArgumentParser
        The command line.
    """
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("rooflab.cli.reference", "pages"),
        trim_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["escaped"] = escaped
    ops = set(rl.ops())
    seen: dict[int, str] = {}  # what has an entry already, by its identity
    made: dict[str, str] = {}

    def render(page: str, template: str, **values: object) -> None:
        made[page] = environment.get_template(f"{template}.rst").render(**values)

    def page_of_op(op: str, entry: str) -> str:
        text, numbers = formula(op)
        render(
            f"op-{op}", "op", op=op, entry=entry, ladder=ladder(op), formula=text, numbers=numbers, cases=cases(op),
            measured=measured(op),
        )  # fmt: skip
        return f"op-{op}"

    by_subject = []
    for subject, names in subjects().items():
        if subject == PACKAGES:
            continue
        entries, below = [], []
        for name in names:
            text = _entry("rooflab", name, seen)
            if name in ops:
                below.append(page_of_op(name, text))
            elif name in OWN_PAGE:
                below.append(f"class-{name}")
                render(below[-1], "names", title=name, module="rooflab", introduction=text, entries=[], below=[])
            own = name in ops or name in OWN_PAGE
            entries.append(Entry(name, "" if own else text))
        by_subject.append(f"names-{re.sub(r'[^a-z]+', '-', subject.lower())}")
        title = subject[0].upper() + subject[1:]
        render(by_subject[-1], "names", title=title, module="rooflab", introduction="", entries=entries, below=below)
    internal = [page_of_op(op, "") for op in sorted(ops - {*dir(rl)})]
    introduction = "Other functions and methods run these ops, which count by these names." + _list(internal)
    by_subject.append("names-internal")
    render(
        by_subject[-1], "names", title=INTERNAL.capitalize(), module="rooflab", introduction=introduction, entries=[],
        below=internal,
    )  # fmt: skip
    for package in packages():
        module = importlib.import_module(package)
        head = f".. py:module:: {package}\n\n{restructured(module.__doc__ or '')}"
        entries = [Entry(name, _entry(package, name, seen)) for name in public_names(package)]
        page = f"package-{package}"
        render(page, "names", title=package, module=package, introduction=head, entries=entries, below=[])
    render("commands", "commands", commands=dict(_helps(parser)))
    render(
        "index", "index", version=rl.__version__, introduction=restructured(rl.__doc__ or ""), subjects=by_subject,
        packages=[f"package-{package}" for package in packages()],
    )  # fmt: skip
    return made


def _list(pages: Iterable[str]) -> str:
    return "".join(f"\n\n- :doc:`{page.removeprefix('op-')} <{page}>`" for page in pages)


def _entry(package: str, name: str, seen: dict[int, str]) -> str:
    """The directive that documents a name; for an object that has an entry under another name, a line that says so."""
    value = getattr(importlib.import_module(package), name)
    full = f"{package}.{name}"
    if not callable(value):
        shown = repr(value)
        text = f"``{shown}``" if len(shown) < 100 and "\n" not in shown else f"A {type(value).__name__}."
        return f".. py:data:: {name}\n\n   {text}"
    kind = "class" if inspect.isclass(value) else "function"
    if id(value) in seen:
        return f".. py:{kind}:: {name}\n\n   The same as :py:obj:`{seen[id(value)]}`."
    seen[id(value)] = full
    return f".. auto{kind}:: {name}" + ("\n   :members:" if kind == "class" else "")


def _helps(parser: argparse.ArgumentParser) -> Iterable[tuple[str, str]]:
    """Each command and its help, the commands of a group after the group."""
    yield parser.prog, parser.format_help()
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in dict.fromkeys(action.choices.values()):
                yield from _helps(command)
