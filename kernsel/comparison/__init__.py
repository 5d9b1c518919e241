"""Compare methods on the same splits of tables, as the papers do, and the curves that they draw."""

from kernsel.comparison.api import compare
from kernsel.comparison.comparison import Comparison
from kernsel.comparison.curves import bif_order, eta_sweep, fbif_landmarks, flkl_surface, rank_sweep
from kernsel.comparison.lines import Curve, Line, Surface
from kernsel.comparison.result import TableResult
from kernsel.comparison.trials import Trial

__all__ = [
    "Comparison",
    "Curve",
    "Line",
    "Surface",
    "TableResult",
    "Trial",
    "bif_order",
    "compare",
    "eta_sweep",
    "fbif_landmarks",
    "flkl_surface",
    "rank_sweep",
]
