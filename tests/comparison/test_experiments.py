"""A plugin's experiment of a paper: what is compared is its own, and what it prints stands beside what is found."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

import kernsel
from kernsel import registry
from kernsel.errors import OptionError, PluginWarning, UnknownPlugin

DISTS = Path(__file__).parents[1] / "dists"


@pytest.fixture
def paper(monkeypatch):
    monkeypatch.syspath_prepend(DISTS / "paper")
    yield registry.build("experiment", "acme26")
    sys.modules.pop("acme_paper", None)
    importlib.invalidate_caches()


def classes(n=40):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, np.where(X[:, 0] + 0.5 * rng.normal(size=n) > 0, 1, -1)


def test_the_experiment_of_a_paper(paper):
    found = kernsel.compare(classes(), protocol="acme26", methods={"4-CV": {"folds": 4}})
    assert (found.title, found.test, found.level, found.splits) == ("Acme 2026", "t", 0.1, 2)
    assert list(found.names) == ["2-CV", "3-CV", "4-CV"]
    assert found.cases == ["lambda 0.1", "lambda 0.2"]
    assert [trial.lam for trial in found.of_case("lambda 0.2")[0].trials[0]] == [0.2] * 3
    assert found.results[0].train == 24
    assert "Table 7" in found.summary()
    assert "paper: three folds are better" in found.summary()
    (published,) = found.to_dict()["published"]
    assert published["printed"]["mean"] == 0.25


def test_what_is_given_counts_in_the_place_of_what_the_paper_does(paper):
    found = kernsel.compare(classes(), protocol="acme26", splits=1, level=0.2, kernel="gaussian(tau=2)")
    assert (found.splits, found.level) == (1, 0.2)
    assert found.results[0].trials[0][0].parameters == {"tau": 2.0}


def test_what_a_paper_prints_is_left_out_where_its_plugin_fails(paper):
    with pytest.warns(PluginWarning, match=r"experiment 'torn' of acme-paper 1.0 failed .*page 7 is missing"):
        found = kernsel.compare(classes(), protocol="torn", splits=1)
    assert not found.published
    assert found.results[0].usable.all()


def test_mistakes(paper):
    X, y = classes()
    with pytest.raises(OptionError, match="for classification, and table 'data' is a regression"):
        kernsel.compare((X, X[:, 0]), protocol="acme26")
    with pytest.raises(OptionError, match="leave out criteria"):
        kernsel.compare((X, y), protocol="acme26", criteria=["cv"])
    with pytest.raises(UnknownPlugin, match="did you mean 'acme26'"):
        kernsel.compare((X, y), protocol="acme62")


def test_which_package_has_the_experiment_of_a_paper(monkeypatch):
    monkeypatch.setenv("KERNSEL_PLUGINS", "off")
    with pytest.raises(UnknownPlugin, match=r"'ks14': the package kernsel-papers has it; .*plugins/kernsel-papers"):
        kernsel.compare(classes(), protocol="ks14")
    with pytest.raises(UnknownPlugin, match="no experiment is called 'mine'; no installed package has one"):
        kernsel.compare(classes(), protocol="mine")
