"""Find the parts (kernels, learners, criteria, searches, formats, experiments), built in or not, by the entry points.

Nothing is looked for at import. ``names`` reads metadata only; ``get`` loads the one part that is asked for, so that a
broken plugin breaks nothing but itself. A name that a built-in part has is never taken over: the rival is reached as
``distribution:name``. ``KERNSEL_PLUGINS=off`` leaves the built-in parts alone.
"""

from __future__ import annotations

import functools
import os
import re
import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from importlib import metadata
from traceback import walk_tb
from types import FrameType
from typing import Any, Literal

from kernsel import protocols
from kernsel import text as parameters
from kernsel.errors import AmbiguousPlugin, BrokenPlugin, OptionError, PluginWarning, UnknownPlugin
from kernsel.words import NO_PARTS, own_name

GROUPS = {
    "kernel": "kernsel.kernels",
    "learner": "kernsel.learners",
    "criterion": "kernsel.criteria",
    "search": "kernsel.searches",
    "format": "kernsel.formats",
    "experiment": "kernsel.experiments",
}
"""The entry-point group of each kind of part."""

PROTOCOL = 1
"""The version of what parts and kernsel are to each other; it is raised where a part has to be written anew."""

_PROTOCOLS = {
    "kernel": protocols.Kernel,
    "learner": protocols.Learner,
    "criterion": protocols.Criterion,
    "search": protocols.Search,
    "format": protocols.Format,
    "experiment": protocols.Experiment,
}


@dataclass(frozen=True)
class Claim:
    """One distribution's claim to provide a part, as its metadata says; nothing has been loaded.

    Attributes
    ----------
    kind, name : str
        What the part is and is called.
    value : str
        Where it is: ``module:attribute``.
    distribution, version : str
        Who claims it.
    builtin : bool
        Whether that is kernsel itself.
    state : {"ok", "shadowed", "ambiguous"}
        Whether the bare name leads here, to a built-in part instead, or to an error since several claim it.
    """

    kind: str
    name: str
    value: str
    distribution: str
    version: str
    builtin: bool
    state: Literal["ok", "shadowed", "ambiguous"]

    @property
    def origin(self) -> str:
        """Distribution and version, for messages."""
        return f"{self.distribution} {self.version}"

    @property
    def address(self) -> str:
        """The name under which ``get`` returns this very part."""
        return self.name if self.state == "ok" else f"{self.distribution}:{self.name}"


def names(kind: str) -> list[str]:
    """Return the names that can be asked for, sorted, by metadata alone.

    Parameters
    ----------
    kind : {"kernel", "learner", "criterion", "search", "format", "experiment"}
        The kind of part.
    """
    return sorted({claim.name for claim in claims(kind)})


def claims(kind: str | None = None) -> list[Claim]:
    """Return every claim by kind, name and origin, the built-in one first; nothing is loaded.

    Parameters
    ----------
    kind : {"kernel", "learner", "criterion", "search", "format", "experiment"}, optional
        One kind only.
    """
    kinds = [kind] if kind is not None else list(GROUPS)
    for each in kinds:
        if each not in GROUPS:
            raise OptionError(f"there is no kind of part called {each!r}; there are {', '.join(GROUPS)}")
    found = [(kind, entry, origin) for origin, entry in _entries() for kind in kinds if entry.group == GROUPS[kind]]
    count = Counter((kind, entry.name) for kind, entry, _ in found)
    own = {(kind, entry.name) for kind, entry, origin in found if origin.builtin}

    def claim(kind: str, entry: metadata.EntryPoint, origin: _Origin) -> Claim:
        builtin, rivals = origin.builtin, count[kind, entry.name] > 1
        state: Literal["ok", "shadowed", "ambiguous"] = "ok"
        if rivals and not builtin:
            state = "shadowed" if (kind, entry.name) in own else "ambiguous"
        return Claim(kind, entry.name, entry.value, origin.name, origin.version, builtin, state)

    order = list(GROUPS)
    return sorted(
        (claim(*each) for each in found),
        key=lambda c: (order.index(c.kind), c.name, not c.builtin, c.distribution, c.value),
    )


def get(kind: str, name: str) -> type[Any]:
    """Load one part.

    Parameters
    ----------
    kind : {"kernel", "learner", "criterion", "search", "format", "experiment"}
        The kind of part.
    name : str
        Its name, or ``distribution:name`` where several distributions claim it.

    Returns
    -------
    type
        The frozen dataclass, such as ``kernsel.kernels.Gaussian``.

    Raises
    ------
    UnknownPlugin
        No distribution claims the name.
    AmbiguousPlugin
        Several plugins claim the name.
    BrokenPlugin
        The plugin can't be imported, or what it offers isn't such a part.

    Warns
    -----
    PluginWarning
        The part is the built-in one and a plugin claims its name.
    """
    known = claims(kind)
    distribution, _, bare = name.rpartition(":")
    matching = [c for c in known if c.name == bare and _same(distribution or c.distribution, c.distribution)]
    if not matching and (own := own_name(kind, name)) != name:  # only where no plugin has the name
        return get(kind, own)
    if not matching and any(c.builtin and c.name == name.lower() for c in known):  # SVR, as scikit-learn writes it
        return get(kind, name.lower())
    if not matching:
        raise UnknownPlugin(_unknown(kind, name, known))
    winner, *rivals = matching
    if rivals and not winner.builtin:
        raise AmbiguousPlugin(
            f"{kind} {name!r} is claimed by {parameters.listing(c.origin for c in matching)}; "
            f"say which, as {winner.distribution + ':' + bare!r}, or uninstall the others"
        )
    if rivals:
        warnings.warn(
            f"{kind} {name!r} is the built-in one; {parameters.listing(c.origin for c in rivals)} claims the name too: "
            f"ask for {parameters.listing(repr(c.address) for c in rivals)} to have that one",
            PluginWarning,
            stacklevel=2,
        )
    return _load(winner)


def find_fault(claim: Claim) -> str | None:
    """Load what is claimed; return why it is broken, or ``None``.

    Parameters
    ----------
    claim : Claim
        One of ``claims()``.
    """
    try:
        _load(claim)
    except BrokenPlugin as error:
        return str(error)
    return None


def build(kind: str, text: str) -> Any:
    """Build a part from ``name`` or ``name(parameter=value, ...)``, as it is written on a command line.

    Parameters
    ----------
    kind : {"kernel", "learner", "criterion", "search", "format", "experiment"}
        The kind of part.
    text : str
        Such as ``"newton-cv"`` or ``"cost-sensitive(fp=1, fn=5)"``.

    Returns
    -------
    object
        An instance of the part.

    Raises
    ------
    OptionError
        The text can't be read, or the part has no such parameter or refuses its value.
    """
    name, values = parameters.parse(f"{kind} {text!r}", text)
    return parameters.make(f"{kind} {name!r}", get(kind, name), values)


def maker_of(part: object) -> str | None:
    """Say whose a part is: its kind, name, distribution and version; None if it is kernsel's own, or no plugin's.

    Of a part that was made of others, such as a sum of kernels, that is the first plugin's among these.
    """
    kind = type(part)
    if kind.__module__.partition(".")[0] == "kernsel":
        inner = [*getattr(part, "parts", ()), *([part.part] if hasattr(part, "part") else [])]
        return next((maker for each in inner if (maker := maker_of(each))), None)
    for claim in claims():
        if claim.value.replace(":", ".") == f"{kind.__module__}.{kind.__qualname__}" or (
            claim.name == getattr(part, "name", None) and _package(claim.value) == _package(kind.__module__)
        ):
            return f"{claim.kind} {claim.name!r} of {claim.origin}"
    return None


def blame(error: BaseException, *parts: object) -> str | None:
    """Say which plugin an error is from, and what it is, in one line; None if no plugin had a part in it.

    That is the last one of the distributions whose code ran into it, or else that of the first of ``parts`` that is
    a plugin's.

    Parameters
    ----------
    *parts : Kernel, Learner or Criterion
        What was in use.
    """
    whose = maker_at((frame for frame, _ in walk_tb(error.__traceback__)), *parts)
    return whose and f"{whose} failed ({type(error).__name__}: {parameters.first_line(error)})"


def maker_at(frames: Iterable[FrameType], *parts: object) -> str | None:
    """Say which plugin's code the last of some frames are in, or else whose the first of ``parts`` that is a plugin's.

    Parameters
    ----------
    frames : iterable of frame
        The innermost last.
    *parts : Kernel, Learner or Criterion
        What was in use.
    """
    packages = {_package(claim.value): f"a part of {claim.origin}" for claim in claims() if not claim.builtin}
    whose = None
    for frame in frames:
        package = packages.get(_package(frame.f_globals.get("__name__", "")))
        if package is not None:
            whose = maker_of(frame.f_locals.get("self")) or package
    return whose or next((maker for part in parts if (maker := maker_of(part))), None)


def _package(module: str) -> str:
    return module.partition(":")[0].partition(".")[0]


@dataclass(frozen=True)
class _Origin:
    """A distribution: its metadata are a file that is read anew each time one of them is asked for."""

    name: str
    version: str

    @property
    def builtin(self) -> bool:
        return _normal(self.name) == "kernsel"


def _origin(distribution: metadata.Distribution) -> _Origin:
    fields = distribution.metadata
    name, version = (next(iter(fields.get_all(key, [])), None) for key in ("Name", "Version"))
    return _Origin(name or "a distribution without a name", version or "of no version")


def _entries() -> tuple[tuple[_Origin, metadata.EntryPoint], ...]:
    """Return the entry points of all distributions: read anew only where a folder of the path has changed since."""
    return _entries_of(tuple((place, _changed(place)) for place in sys.path), _plugins_are_off())


def _changed(place: str) -> int:
    try:
        return os.stat(place or ".").st_mtime_ns
    except OSError:
        return 0


@functools.lru_cache(maxsize=1)
def _entries_of(path: tuple[tuple[str, int], ...], off: bool) -> tuple[tuple[_Origin, metadata.EntryPoint], ...]:
    return tuple(_found(off))


def _found(off: bool) -> Iterator[tuple[_Origin, metadata.EntryPoint]]:
    seen = set()
    for distribution in metadata.distributions():
        try:
            # Most distributions have nothing for us; reading the metadata of all of them would take long.
            if "kernsel." not in (distribution.read_text("entry_points.txt") or ""):
                continue
            entries = distribution.entry_points
        except (TypeError, ValueError) as error:  # it is no text, or has lines without "="
            warnings.warn(
                f"the entry points of {_origin(distribution).name} can't be read ({parameters.first_line(error)}), "
                "so it is left out; reinstall or uninstall it",
                PluginWarning,
                stacklevel=3,
            )
            continue
        origin = _origin(distribution)
        name = _normal(origin.name)
        # The first on the path is the one that is imported.
        if name not in seen and (not off or origin.builtin):
            seen.add(name)
            yield from ((origin, entry) for entry in entries)


def _plugins_are_off() -> bool:
    value = os.environ.get("KERNSEL_PLUGINS", "").lower()
    if value not in ("", "on", "off"):
        raise OptionError(f"the environment variable KERNSEL_PLUGINS is {value!r}; it can be 'on' or 'off'")
    return value == "off"


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _same(one: str, other: str) -> bool:
    return _normal(one) == _normal(other)


def _load(claim: Claim) -> type[Any]:
    who = f"{claim.kind} {claim.name!r} of {claim.origin}"
    try:
        part = metadata.EntryPoint(claim.name, claim.value, GROUPS[claim.kind]).load()
    except (Exception, SystemExit) as error:  # a plugin may fail in any way at its import
        reason = f"{type(error).__name__}: {parameters.first_line(error)}"
        raise BrokenPlugin(f"{who} can't be imported ({reason}); reinstall or uninstall it") from error
    if not claim.builtin and (other := _other_protocol(claim)):
        raise BrokenPlugin(f"{who} {other}")
    if fault := _fault(claim, part):
        raise BrokenPlugin(f"{who} is not usable: {claim.value} {fault}; tell its authors, or uninstall it")
    return part  # type: ignore[no-any-return]  # _fault has seen that it is a dataclass


def _other_protocol(claim: Claim) -> str | None:
    """Say what to do about a module that is written for another protocol; one that names none is for the first."""
    module = sys.modules.get(claim.value.partition(":")[0])
    wanted = 1 if module is None else vars(module).get("kernsel_protocol", 1)  # not asked for: it may have __getattr__
    if wanted == PROTOCOL:
        return None
    newer = isinstance(wanted, int) and wanted > PROTOCOL
    instead = (
        f"kernsel, or install an older {claim.distribution}" if newer else f"{claim.distribution}, or uninstall it"
    )
    return f"is written for protocol {wanted!r} of kernsel, and this one has protocol {PROTOCOL}: upgrade {instead}"


def _fault(claim: Claim, part: object) -> str | None:
    """Say what a part lacks of its protocol."""
    if not (isinstance(part, type) and is_dataclass(part)):
        return "is not a dataclass"
    # A field without a default is an attribute of the instances alone.
    has = {field.name for field in fields(part)}.union(dir(part))
    if missing := sorted(_members(_PROTOCOLS[claim.kind]) - has):
        return f"has no {parameters.listing(missing)}"
    called = getattr(part, "name", None)
    return None if called == claim.name else f"calls itself {called!r}"


def _members(protocol: type) -> set[str]:
    return {name for name in {**protocol.__annotations__, **vars(protocol)} if not name.startswith("_")}


def _unknown(kind: str, name: str, known: list[Claim]) -> str:
    for other in GROUPS:
        if other != kind and name in names(other):
            return f"{name!r} is a {other}, not a {kind}; {kind} can be {parameters.listing(names(kind), 'or')}"
    if instead := NO_PARTS.get(kind, {}).get(name.lower()):
        return f"no {kind} is called {name!r}: {instead}"
    available = {address for c in known for address in (c.name, f"{c.distribution}:{c.name}")}
    there = f"there are {', '.join(sorted({c.name for c in known}))}" if known else "no installed package has one"
    meant = parameters.meant(name, available) or f"; {there}"
    if not any(c.builtin for c in claims()):
        meant = "; kernsel itself is not installed here: pip install it"
    elif _plugins_are_off():
        meant += " (KERNSEL_PLUGINS=off hides the plugins)"
    return f"no {kind} is called {name!r}{meant}"
