"""What measurements are shown in: tables, and reports of tables and figures."""

from .report import Report
from .table import Table

__all__ = ["Report", "Table"]
