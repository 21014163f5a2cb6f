"""``rl.cuda.compile`` in the worker: the student's kernels are compiled and run elsewhere, and the judge is asked to
have it done. So the worker starts no program, and no kernel's machine code is ever in it.

Nothing that is decided here decides points: the judge keeps what it was told of each launch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import rooflab.cuda.module
from rooflab.cuda import Launch, SimtKernel, SimtModule
from rooflab.cuda.simt.memory import Arguments
from rooflab.cuda.simt.module import Settings, SourceError, build
from rooflab.cuda.simt.toolchain import Library, NoCompiler
from rooflab.grading.measure.kernel import launch_of
from rooflab.grading.measure.kernel_arguments import packed, take_back


class AskedKernel(SimtKernel):
    """A kernel whose launches the judge has made."""

    def _run(self, launch: Launch, arguments: Arguments, settings: Settings) -> None:
        pieces, words = packed(arguments.values)
        module = self._module
        options = {"mode": launch.mode, **vars(settings)}
        pieces, plain = _ask(
            "run", module.source, module.options, self.name, launch.grid, launch.block, pieces, words, options
        )
        take_back(pieces, words, arguments.values)
        seen = launch_of(plain, launch.text)
        launch.counts, launch.lines, launch.findings = seen.counts, seen.lines, seen.findings
        launch.blocks, launch.wrote_nothing = seen.blocks, seen.wrote_nothing


class AskedModule(SimtModule):
    """A module of such kernels."""

    _kernel_type = AskedKernel

    def library(self, *, is_checked: bool) -> Library:
        """What the judge knows of its code; the code itself is not here."""
        if True not in self._libraries:
            how, *found = _ask("describe", self.source, self.options)
            if how == "missing":
                raise NoCompiler(*found)
            if how == "refused":
                raise SourceError(*found)
            self._libraries[True] = Library(Path(), [], *found)
        return self._libraries[True]


def install(ask: Callable[..., Any]) -> None:
    """From here on ``rl.cuda.compile`` makes such modules in this process, and `ask` asks the judge."""
    global _ask
    _ask = ask

    def asked(source: str, options: Sequence[str]) -> SimtModule:
        return build(source, options, AskedModule)

    rooflab.cuda.module.build = asked  # type: ignore[assignment]


_ask: Callable[..., Any]
