"""Select kernel models: a criterion scores a learner on a kernel, a search walks the candidates, the best is verified.

The public names are loaded when they are first used, so that ``import kernsel`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from kernsel.version import __version__

if TYPE_CHECKING:
    from kernsel import comparison as comparison
    from kernsel import criteria as criteria
    from kernsel import errors as errors
    from kernsel import evaluation as evaluation
    from kernsel import kernels as kernels
    from kernsel import learners as learners
    from kernsel import registry as registry
    from kernsel.comparison import Comparison as Comparison
    from kernsel.comparison import compare as compare
    from kernsel.estimators import KernelClassifier as KernelClassifier
    from kernsel.estimators import KernelRegressor as KernelRegressor
    from kernsel.evaluation import nested as nested
    from kernsel.evaluation.bounds import Bounds as Bounds
    from kernsel.evaluation.bounds import bounds as bounds
    from kernsel.evaluation.perturbation import Stability as Stability
    from kernsel.evaluation.perturbation import stability as stability
    from kernsel.evaluation.relevance_study import RelevanceStudy as RelevanceStudy
    from kernsel.evaluation.relevance_study import study_relevances as study_relevances
    from kernsel.learning import LearnedKernel as LearnedKernel
    from kernsel.learning import WeightedKernel as WeightedKernel
    from kernsel.learning import learn_mkl as learn_mkl
    from kernsel.learning import learn_relevances as learn_relevances
    from kernsel.model.model import Model as Model
    from kernsel.model.model import load as load
    from kernsel.report.page import write_report as write_report
    from kernsel.report.pictures import plot as plot
    from kernsel.selection.api import select as select
    from kernsel.selection.result import Selection as Selection

__all__ = [
    "Bounds",
    "Comparison",
    "KernelClassifier",
    "KernelRegressor",
    "LearnedKernel",
    "Model",
    "RelevanceStudy",
    "Selection",
    "Stability",
    "WeightedKernel",
    "__version__",
    "bounds",
    "compare",
    "comparison",
    "criteria",
    "errors",
    "evaluation",
    "kernels",
    "learn_mkl",
    "learn_relevances",
    "learners",
    "load",
    "nested",
    "plot",
    "registry",
    "select",
    "stability",
    "study_relevances",
    "write_report",
]

_MODULES = {"comparison", "criteria", "errors", "evaluation", "kernels", "learners", "registry"}
_NAMES = {
    "Bounds": "evaluation.bounds",
    "Comparison": "comparison",
    "KernelClassifier": "estimators",
    "KernelRegressor": "estimators",
    "LearnedKernel": "learning",
    "Model": "model.model",
    "RelevanceStudy": "evaluation.relevance_study",
    "Selection": "selection.result",
    "Stability": "evaluation.perturbation",
    "WeightedKernel": "learning",
    "bounds": "evaluation.bounds",
    "compare": "comparison",
    "learn_mkl": "learning",
    "learn_relevances": "learning",
    "load": "model.model",
    "nested": "evaluation.nestedcv",
    "plot": "report.pictures",
    "select": "selection.api",
    "stability": "evaluation.perturbation",
    "study_relevances": "evaluation.relevance_study",
    "write_report": "report.page",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"kernsel.{name}")
    if name in _NAMES:
        return getattr(import_module(f"kernsel.{_NAMES[name]}"), name)
    from kernsel.deprecation import current  # of a name that there isn't: no start of Python waits for it

    if (new := current("name", name)) != name:
        return __getattr__(new)
    raise AttributeError(f"module 'kernsel' has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return list(__all__)
