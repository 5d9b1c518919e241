"""Compare methods on the same splits of tables, as the papers do, and the curves that they draw."""

from kernsel.comparison.api import compare
from kernsel.comparison.result import Comparison, TableResult
from kernsel.comparison.trials import Trial

__all__ = ["Comparison", "TableResult", "Trial", "compare"]
