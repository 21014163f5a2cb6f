"""The table that notebooks show."""

from rooflab.results import Table

__all__ = ["Table"]
