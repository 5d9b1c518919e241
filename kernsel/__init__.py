"""Select kernel models: a criterion scores a learner on a kernel, a search walks the candidates, the best is verified.

The public names are loaded when they are first used, so that ``import kernsel`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernsel import criteria as criteria
    from kernsel import errors as errors
    from kernsel import kernels as kernels
    from kernsel import learners as learners
    from kernsel import registry as registry
    from kernsel.learning import LearnedKernel as LearnedKernel
    from kernsel.learning import WeightedKernel as WeightedKernel
    from kernsel.learning import learn_mkl as learn_mkl
    from kernsel.learning import learn_relevances as learn_relevances
    from kernsel.model import Model as Model
    from kernsel.model import load as load
    from kernsel.relevance import RelevanceStudy as RelevanceStudy
    from kernsel.relevance import study_relevances as study_relevances
    from kernsel.selection import Selection as Selection
    from kernsel.selection import select as select

__version__ = "0.1.0"

__all__ = [
    "LearnedKernel",
    "Model",
    "RelevanceStudy",
    "Selection",
    "WeightedKernel",
    "__version__",
    "criteria",
    "errors",
    "kernels",
    "learn_mkl",
    "learn_relevances",
    "learners",
    "load",
    "registry",
    "select",
    "study_relevances",
]

_MODULES = {"criteria", "errors", "kernels", "learners", "registry"}
_NAMES = {
    "LearnedKernel": "learning",
    "Model": "model",
    "RelevanceStudy": "relevance",
    "Selection": "selection",
    "WeightedKernel": "learning",
    "learn_mkl": "learning",
    "learn_relevances": "learning",
    "load": "model",
    "select": "selection",
    "study_relevances": "relevance",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"kernsel.{name}")
    if name in _NAMES:
        return getattr(import_module(f"kernsel.{_NAMES[name]}"), name)
    raise AttributeError(f"module 'kernsel' has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return list(__all__)
