"""The fitted model: predictions, its file, and its forms in scikit-learn and ONNX."""

from kernsel.model.model import Model, load

__all__ = ["Model", "load"]
