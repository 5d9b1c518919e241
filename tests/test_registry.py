"""The registry, on fake distributions: each folder of ``dists`` is laid on the path as if it had been installed."""

import importlib
import os
import shutil
import sys
from pathlib import Path

import pytest

from kernsel import registry
from kernsel import text as parameters
from kernsel.data import read_table
from kernsel.errors import AmbiguousPlugin, BrokenPlugin, DataError, OptionError, PluginWarning, UnknownPlugin
from kernsel.kernels import parse

DISTS = Path(__file__).parent / "dists"


@pytest.fixture
def install(monkeypatch):
    """Return a function that installs fake distributions until the test ends."""
    before = set(sys.modules)

    def add(*folders):
        for folder in folders:
            monkeypatch.syspath_prepend(DISTS / folder)

    yield add
    for module in set(sys.modules) - before:
        if module.startswith("acme_"):
            del sys.modules[module]
    importlib.invalidate_caches()


def plugins(kind=None):
    """Return the claims of the fake distributions; real plugins may be installed beside them."""
    return [claim for claim in registry.claims(kind) if claim.distribution.startswith("acme-")]


# What is there


def test_built_in_parts_are_entry_points_like_any_other():
    assert {"bif", "cv", "fbif", "newton-cv"} <= set(registry.names("criterion"))
    assert {"krr", "svm"} <= set(registry.names("learner"))
    assert {"gaussian", "laplacian", "linear", "matern32", "matern52", "polynomial"} <= set(registry.names("kernel"))


@pytest.mark.parametrize("claim", [c for c in registry.claims() if c.builtin], ids=lambda c: f"{c.kind}-{c.name}")
def test_every_built_in_part_keeps_its_promise(claim):
    assert claim.state == "ok"
    assert registry.find_fault(claim) is None
    assert registry.get(claim.kind, claim.name).name == claim.name


def test_names_are_sorted_and_unique(install):
    install("twins", "shadow")
    names = registry.names("criterion")
    assert names == sorted(set(names))
    assert "twin" in names


def test_listing_imports_nothing(install):
    install("broken", "exits", "hollow", "shadow", "sound", "twins")
    assert len(plugins()) == 13
    assert not [module for module in sys.modules if module.startswith("acme_")]


def test_claims_tell_their_origin_and_state(install):
    install("shadow", "sound", "twins")
    told = {(c.name, c.origin, c.state, c.address) for c in plugins("criterion")}
    assert told == {
        ("cv", "acme-shadow 2.0", "shadowed", "acme-shadow:cv"),
        ("sound", "acme-sound 1.0", "ok", "sound"),
        ("twin", "acme-one 1.0", "ambiguous", "acme-one:twin"),
        ("twin", "acme-two 1.1", "ambiguous", "acme-two:twin"),
    }
    assert plugins("kernel") == []


def test_a_distribution_that_is_twice_on_the_path_claims_once(install, tmp_path, monkeypatch):
    install("sound")
    info = tmp_path / "Acme.Sound-0.5.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: Acme.Sound\nVersion: 0.5\n")
    (info / "entry_points.txt").write_text("[kernsel.criteria]\nsound = elsewhere:Sound\n")
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    assert [c.origin for c in plugins()] == ["acme-sound 1.0"]


def test_garbled_metadata_leave_out_that_distribution_alone(install):
    install("garbled", "sound")
    with pytest.warns(PluginWarning, match="acme-garbled can't be read"):
        assert "sound" in registry.names("criterion")


def test_metadata_without_name_and_version(tmp_path, monkeypatch):
    info = tmp_path / "nameless-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Summary: nothing\n")
    (info / "entry_points.txt").write_text("[kernsel.criteria]\nlost = lost:Lost\n")
    monkeypatch.syspath_prepend(tmp_path)
    origins = {c.name: c.origin for c in registry.claims("criterion")}
    assert origins["lost"] == "a distribution without a name of no version"


# Protocols


@pytest.mark.parametrize(
    ("wanted", "instead"),
    [
        (2, "upgrade kernsel, or install an older acme-sound"),
        (0, "upgrade acme-sound, or uninstall it"),
        ("one", "upgrade acme-sound, or uninstall it"),
    ],
)
def test_a_part_for_another_protocol_is_refused_with_what_to_do(install, monkeypatch, wanted, instead):
    install("sound")
    assert registry.get("criterion", "sound").name == "sound"  # it names none: it is for the first
    monkeypatch.setattr("acme_sound.kernsel_protocol", wanted, raising=False)
    message = f"'sound' of acme-sound 1.0 is written for protocol {wanted!r} of kernsel, and this one has protocol 1"
    with pytest.raises(BrokenPlugin, match=f"{message}: {instead}"):
        registry.get("criterion", "sound")


def test_a_part_for_this_protocol_is_taken(install, monkeypatch):
    install("sound")
    _ = registry.get("criterion", "sound")
    monkeypatch.setattr("acme_sound.kernsel_protocol", registry.PROTOCOL, raising=False)
    assert registry.get("criterion", "sound").name == "sound"


# Formats of files


def test_a_plugins_format_is_read_by_name_and_by_content(install, tmp_path):
    install("formats")
    for name, head in (("table.pairs", ""), ("table.csv", "#pairs\n")):
        path = tmp_path / name
        path.write_text(f"{head}a=1 b=2\na=3 b=4\n")
        with pytest.warns(PluginWarning, match="format 'lost' of acme-formats 1.0 can't be imported"):
            table = read_table(path)
        assert table.to_dict("list") == {"a": [1.0, 3.0], "b": [2.0, 4.0]}


def test_other_files_are_read_as_before_beside_a_plugins_format(install, tmp_path):
    install("formats")
    path = tmp_path / "table.csv"
    path.write_text("a,b\n1,2\n3,4\n")
    with pytest.warns(PluginWarning, match="'lost'"):
        assert read_table(path).to_dict("list") == {"a": [1, 3], "b": [2, 4]}


PLAIN = """
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class Plain:
    name: ClassVar[str] = "plain"
    width = sparse = parameters = free = with_parameters = evaluate = diag = axes = spec = None
"""


def test_a_kernel_that_does_not_derive_from_the_base_class_is_reported_before_it_is_used(tmp_path, monkeypatch):
    info = tmp_path / "acme_plain-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: acme-plain\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[kernsel.kernels]\nplain = acme_plain:Plain\n")
    (tmp_path / "acme_plain.py").write_text(PLAIN)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(BrokenPlugin, match="kernel 'plain' of acme-plain 1.0 is not usable: .*Plain has no .*build"):
        parse("plain")
    sys.modules.pop("acme_plain")


FAULTY = """
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class Faulty:
    name: ClassVar[str] = "faulty"

    def fits(self, source, reading):
        {fits}

    def read(self, source, reading, expected):
        {read}
"""


@pytest.fixture
def faulty(tmp_path, monkeypatch):
    """Return a function that installs a format with some lines as its methods, and returns a file."""

    def make(fits, read):
        info = tmp_path / "acme_faulty-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Name: acme-faulty\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text("[kernsel.formats]\nfaulty = acme_faulty:Faulty\n")
        (tmp_path / "acme_faulty.py").write_text(FAULTY.format(fits=fits, read=read))
        monkeypatch.syspath_prepend(tmp_path)
        path = tmp_path / "t.csv"
        path.write_text("a,b\n1,2\n3,4\n")
        return path

    yield make
    sys.modules.pop("acme_faulty", None)


@pytest.mark.parametrize(
    ("fits", "reason"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("return None", "TypeError"),
        ("raise SystemExit", "SystemExit"),
    ],
)
def test_a_format_that_cannot_say_what_it_reads_is_left_out(faulty, fits, reason):
    path = faulty(fits, "return None")
    with pytest.warns(PluginWarning, match=rf"format 'faulty' of acme-faulty 1.0 failed \({reason}.*left out"):
        assert read_table(path).to_dict("list") == {"a": [1, 3], "b": [2, 4]}


def test_a_format_that_fails_at_a_file_is_named(faulty):
    path = faulty("return 4", "return {}['x']")
    with pytest.raises(DataError, match=r"t.csv can't be read.*format 'faulty' of acme-faulty 1.0 failed \(KeyError"):
        read_table(path)


def test_a_format_that_returns_no_table_is_named(faulty):
    path = faulty("return 4", "return None")
    with pytest.raises(DataError, match="t.csv can't be read.*format 'faulty' returned NoneType in place of a table"):
        read_table(path)


def test_a_format_may_have_nothing_to_say_of_a_file(faulty):
    path = faulty("return 4", "import pandas; return pandas.DataFrame({'a': [1.0]})")
    assert read_table(path).attrs["notes"] == []


# Unknown names


@pytest.mark.parametrize(
    ("kind", "name", "message"),
    [
        ("kernel", "gausian", "no kernel is called 'gausian'; did you mean 'gaussian'?"),
        ("kernel", "Gausian", "did you mean 'gaussian'?"),
        ("criterion", "kernsel:newtoncv", "did you mean 'kernsel:newton-cv'?"),
        ("criterion", "zzz", "; there are alignment, b"),
        ("kernel", "svm", "'svm' is a learner, not a kernel; kernel can be ard, "),
        ("learner", "", "no learner is called ''"),
    ],
)
def test_an_unknown_name_is_answered_with_a_known_one(kind, name, message):
    with pytest.raises(UnknownPlugin) as caught:
        registry.get(kind, name)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_unknown_kind():
    with pytest.raises(OptionError, match="no kind of part called 'kernels'; there are kernel, learner, .*, format"):
        registry.names("kernels")


def test_without_its_own_metadata_the_cause_is_said(monkeypatch):
    monkeypatch.setattr(sys, "path", [])
    with pytest.raises(UnknownPlugin, match="kernsel itself is not installed"):
        registry.get("kernel", "gaussian")


def test_what_is_installed_while_python_runs_is_found(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    assert "sound" not in registry.names("criterion")
    shutil.copytree(DISTS / "sound", tmp_path, dirs_exist_ok=True)
    os.utime(tmp_path, ns=(0, 0))  # two changes within a tick of the clock would look like one
    assert {"newton-cv", "sound"} <= set(registry.names("criterion"))


# Broken plugins


def test_a_plugin_that_cannot_be_imported_is_named_with_its_cause(install):
    install("broken")
    with pytest.raises(BrokenPlugin, match="a_library_that_is_not_there") as caught:
        registry.get("kernel", "cracked")
    assert "kernel 'cracked' of acme-broken 1.2" in str(caught.value)
    assert isinstance(caught.value.__cause__, ModuleNotFoundError)


def test_a_plugin_that_exits_at_import_does_not_end_the_process(install):
    install("exits")
    with pytest.raises(BrokenPlugin, match=r"criterion 'exits' of acme-exits 0\.3 .*SystemExit: usage: acme") as caught:
        registry.get("criterion", "exits")
    assert "\n" not in str(caught.value)


def test_an_interrupt_during_an_import_is_the_users(install):
    install("exits")
    with pytest.raises(KeyboardInterrupt):
        registry.get("criterion", "interrupted")


def test_a_broken_plugin_leaves_the_rest_working(install):
    install("broken", "exits", "sound")
    assert registry.get("criterion", "sound").name == "sound"
    assert "gaussian" in registry.names("kernel")


@pytest.mark.parametrize(
    ("kind", "name", "fault"),
    [
        ("criterion", "hollow", "has no score"),
        ("learner", "hollow-learner", "has no bias, loss and tasks"),
        ("criterion", "function", "is not a dataclass"),
        ("criterion", "alias", "calls itself 'another'"),
        ("criterion", "absent", "AttributeError"),
        ("criterion", "malformed", "can't be imported"),
    ],
)
def test_a_part_that_lacks_what_its_kind_must_have(install, kind, name, fault):
    install("hollow")
    with pytest.raises(BrokenPlugin, match=fault):
        registry.get(kind, name)


def test_check_gives_the_reason_instead(install):
    install("exits", "sound")
    reasons = {c.name: registry.find_fault(c) for c in plugins() if c.name != "interrupted"}
    assert reasons["sound"] is None
    assert "SystemExit" in reasons["exits"]


# Several claims on one name


def test_a_built_in_name_is_not_taken_over(install):
    install("shadow")
    with pytest.warns(PluginWarning, match=r"'cv' is the built-in one; acme-shadow 2\.0 .*'acme-shadow:cv'") as caught:
        part = registry.get("criterion", "cv")
    assert part.__module__.startswith("kernsel.")
    assert caught[0].filename == __file__


@pytest.mark.parametrize("address", ["acme-shadow:cv", "Acme_Shadow:cv"])
def test_the_rival_of_a_built_in_part_is_reached_by_its_distribution(install, address):
    install("shadow")
    assert registry.get("criterion", address).__name__ == "Rival"


def test_the_built_in_part_has_an_address_too_and_it_warns_of_nothing(install):
    install("shadow")
    assert registry.get("criterion", "kernsel:cv").__module__.startswith("kernsel.")


def test_two_plugins_on_one_name_fail_only_when_it_is_asked_for(install):
    install("twins", "sound")
    assert registry.get("criterion", "sound").name == "sound"
    with pytest.raises(AmbiguousPlugin, match=r"acme-one 1\.0 and acme-two 1\.1; say which, as 'acme-one:twin'"):
        registry.get("criterion", "twin")
    assert registry.get("criterion", "acme-two:twin").__module__ == "acme_two"


# Plugins switched off


def test_plugins_can_be_switched_off(install, monkeypatch):
    install("garbled", "shadow", "sound")
    monkeypatch.setenv("KERNSEL_PLUGINS", "off")
    with pytest.warns(PluginWarning, match="acme-garbled"):
        assert all(claim.builtin for claim in registry.claims())


def test_what_is_switched_off_is_said(install, monkeypatch):
    install("sound")
    monkeypatch.setenv("KERNSEL_PLUGINS", "OFF")
    with pytest.raises(UnknownPlugin, match="KERNSEL_PLUGINS=off hides the plugins"):
        registry.get("criterion", "sound")


@pytest.mark.parametrize("value", ["", "on"])
def test_plugins_are_on_by_default(install, monkeypatch, value):
    install("sound")
    monkeypatch.setenv("KERNSEL_PLUGINS", value)
    assert len(plugins()) == 1


def test_a_misspelt_switch_is_no_silent_on(monkeypatch):
    monkeypatch.setenv("KERNSEL_PLUGINS", "of")
    with pytest.raises(OptionError, match="KERNSEL_PLUGINS is 'of'"):
        registry.names("kernel")


# Parts from text


def test_build_without_and_with_parameters(install):
    install("sound", "twins")
    assert registry.build("criterion", "acme-two:twin").order == 2
    assert registry.build("criterion", " acme-two:twin ( ) ").order == 2
    part = registry.build("criterion", "sound(cost=2, folds=5, fit='exact', limit=inf, pure=True, weights=(1, 2.5))")
    assert (part.cost, part.folds, part.fit, part.limit, part.pure, part.weights) == (
        2,
        5,
        "exact",
        float("inf"),
        True,
        (1, 2.5),
    )


def test_a_word_needs_no_quotes(install):
    install("sound")
    assert registry.build("criterion", "sound(cost=1, fit=exact)").fit == "exact"
    assert parameters.parse("it", "a(b=newton-cv, c=x.y, d=inf, e=none)") == (
        "a",
        {"b": "newton-cv", "c": "x.y", "d": float("inf"), "e": None},
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "sound(coost=1)",
            "has no parameter 'coost'; did you mean 'cost'? (its parameters are cost, folds, fit,",
        ),
        ("sound(calls=[])", "has no parameter 'calls'"),
        ("sound", "needs a value for cost"),
        ("sound(cost='much')", "can't have cost='much': it must be a number"),
        ("sound(cost=True)", "it must be a number"),
        ("sound(cost=1, folds=2.5)", "folds=2.5: it must be a whole number"),
        ("sound(cost=1, fit='fast')", "fit='fast': it must be 'newton' or 'exact'"),
        ("sound(cost=1, limit='no')", "limit='no': it must be a number or None"),
        ("sound(cost=1, pure=1)", "pure=1: it must be True or False"),
        ("sound(cost=-1)", "refuses its parameters: the cost is negative"),
        ("sound(1)", "every value needs its parameter's name"),
        ("sound(cost=1)(2)", "can't be read"),
        ("sound(cost=1", "write name or name(parameter=value, ...)"),
        ("sound(cost=)", "can't be read ("),
        ("sound(cost=1, cost=2)", "cost=2 is without a name or given twice"),
        ("sound(**{'cost': 1})", "is without a name or given twice"),
        ("sound(cost=__import__('os'))", "cost=__import__('os') is no plain value"),
        ("sound(cost=one)", "can't have cost='one': it must be a number"),
        ("sound(cost=one + two)", "cost=one + two is no plain value; it can be a number, inf,"),
        ("sound(cost=-one)", "cost=-one is no plain value"),
        ("", "criterion '' can't be read"),
        ("two words", "criterion 'two words' can't be read"),
    ],
)
def test_build_says_what_is_wrong(install, text, message):
    install("sound")
    with pytest.raises(OptionError) as caught:
        registry.build("criterion", text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_build_of_a_part_without_parameters(install):
    install("shadow")
    with pytest.raises(OptionError, match=r"has no parameter 'folds' \(it has none\)"):
        registry.build("criterion", "acme-shadow:cv(folds=3)")
