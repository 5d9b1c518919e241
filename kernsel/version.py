"""The version of kernsel."""

__version__ = "0.1.0"
