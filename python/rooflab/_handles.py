"""What registering a hook returns."""

from __future__ import annotations

from collections.abc import Callable


class Handle:
    """A registered hook. `remove`, or the end of a `with` block, removes it; a second call does nothing.

    Examples
    --------
    >>> hooks = {1: print}
    >>> with Handle(hooks.clear):
    ...     len(hooks)
    1
    >>> hooks
    {}
    """

    def __init__(self, remove: Callable[[], object]) -> None:
        self._remove: Callable[[], object] | None = remove

    def remove(self) -> None:
        """Remove the hook."""
        if self._remove is not None:
            self._remove()
            self._remove = None

    def __enter__(self) -> Handle:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()
