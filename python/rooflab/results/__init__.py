"""How everything that is measured is shown, saved and compared; tables, and reports of tables and figures."""

from .mixin import ReadableMixin, ResultMixin, flat
from .pages import page
from .plain import settle
from .report import Report
from .table import Table

__all__ = ["ReadableMixin", "Report", "ResultMixin", "Table", "flat", "page", "settle"]
