"""How everything that is measured is shown, saved and compared; tables, and reports of tables and figures."""

from .mixin import ReadableMixin, ResultMixin
from .mixin import flat as flat  # this and what follows is for the package itself
from .pages import page as page
from .plain import settle as settle
from .report import Report
from .table import Table

__all__ = ["ReadableMixin", "Report", "ResultMixin", "Table"]
