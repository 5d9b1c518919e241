"""The plan of a selection: options stand in one place, and every way to give them has the same."""

import inspect
from dataclasses import fields

import numpy as np
import pytest

import kernsel
import kernsel.data
from kernsel.errors import OptionError
from kernsel.selection.plan import COLUMNS, HEADINGS, WORDS, Plan

OF_DATA = {"X", "y", "groups", "weights", "progress"}
X, Y = np.random.default_rng(0).normal(size=(12, 2)), np.arange(12.0)


def test_the_signature_of_select_is_that_of_the_plan():
    parameters = {name: p for name, p in inspect.signature(kernsel.select).parameters.items() if name not in OF_DATA}
    assert set(parameters) == set(WORDS)
    for name, parameter in parameters.items():
        assert parameter.default == getattr(Plan, name), name
        assert parameter.annotation == next(each.type for each in fields(Plan) if each.name == name), name


@pytest.mark.parametrize("estimator", [kernsel.KernelClassifier, kernsel.KernelRegressor])
def test_an_estimator_has_the_options_of_the_plan_but_those_of_the_other_task(estimator):
    parameters = inspect.signature(estimator).parameters
    expected = set(WORDS) - {"task", *estimator._foreign} | {"cv", "random_state", "scoring", "progress"}
    assert set(parameters) == expected
    assert all(parameters[name].default == getattr(Plan, name) for name in expected & set(WORDS))
    assert estimator().get_params(deep=False) == {name: p.default for name, p in parameters.items()}


@pytest.mark.parametrize("function", [kernsel.select, kernsel.nested])
def test_a_misspelt_option_is_answered_before_any_work(function):
    with pytest.raises(OptionError, match=r"has no option 'lerner'; did you mean .*learner"):
        function(X, Y, lerner="krr")


def test_options_about_the_table_are_keywords_of_its_reading():
    told = Plan(drop=["a"], task="regression").table
    assert told["drop"] == ["a"]
    assert told["task"] == "regression"
    assert set(told) == {"task", "standardize", "class_weight", "copies", "near", *COLUMNS}
    known = [inspect.signature(each).parameters for each in (kernsel.data.from_arrays, kernsel.data.make_choices)]
    assert set(told) <= set().union(*known)


def test_every_option_has_words_for_the_command_line():
    for name, words in WORDS.items():
        assert words.kind in {"text", "texts", "whole", "number", "flag"}, name
        assert words.help.endswith("."), name
        assert words.of in HEADINGS, name
