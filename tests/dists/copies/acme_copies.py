"""Copies of all built-in parts under other names: the same source, and no built-in part among their bases."""

import __future__

import inspect
import sys

from kernsel import registry


def copied(cls):
    """Return what the source of a part makes where its name, and those of parts that it derives from, are others."""
    name = f'name: ClassVar[str] = "{cls.name}"'
    source = inspect.getsource(cls).replace(name, name.replace('"', '"acme-', 1))
    bases = {base.__name__: copied(base) for base in cls.__bases__ if "name" in vars(base)}
    namespace = vars(sys.modules[cls.__module__]) | bases
    exec(compile(source, __file__, "exec", flags=__future__.annotations.compiler_flag), namespace)
    return namespace[cls.__name__]


def __getattr__(attribute):
    kind, _, name = attribute.partition("_")
    part = copied(registry.get(kind, name.replace("_", "-")))
    globals()[attribute] = part
    return part
