"""The report that Lab 2 ends in."""

from rooflab.results import Report

__all__ = ["Report"]
