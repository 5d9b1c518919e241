import numpy as np
import pytest
from kernsel_cost_sensitive import CostSensitive

import kernsel
from kernsel import registry
from kernsel.errors import IncompatibleError, OptionError
from kernsel.testing import criterion_checks

WITHOUT = {
    "the_sign_of_the_labels_changes_nothing": "the two kinds of mistake cost differently",
    "a_target_twice_changes_nothing": "the costs of one-against-rest decisions are added",
}


@pytest.mark.parametrize("check", criterion_checks(CostSensitive(fp=1, fn=5), without=WITHOUT))
def test_kit(check):
    check()


def test_each_mistake_costs_what_was_asked():
    Y = np.array([[1.0, 1.0, -1.0, -1.0, 1.0, -1.0]])
    F = np.array([[0.3, -0.3, -2.0, 2.0, 0.0, 0.0]])
    np.testing.assert_array_equal(CostSensitive(fp=2, fn=6).measure(Y, F), [0, 6, 0, 2, 3, 1])


def test_equal_costs_give_the_share_of_mistakes():
    rng = np.random.default_rng(0)
    Y, F = rng.choice([-1.0, 1.0], (1, 200)), rng.standard_normal((1, 200))
    assert CostSensitive().measure(Y, F).mean() == (np.sign(F) != Y).mean()


def test_one_against_rest_decisions_add_up():
    Y = np.array([[1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    F = np.array([[-1.0, -1.0], [1.0, 1.0], [-1.0, -1.0]])
    np.testing.assert_array_equal(CostSensitive(fp=1, fn=5).measure(Y, F), [6, 0])


def test_costs_that_make_no_sense_are_refused():
    for text in ("fp=-1", "fn=inf", "fp=0, fn=0", "fp='much'"):
        with pytest.raises(OptionError, match=r"fp|fn"):
            registry.build("criterion", f"cost-sensitive({text})")


def test_regression_is_refused():
    with pytest.raises(IncompatibleError, match="classification"):
        CostSensitive().measure(np.array([[0.5, 2.0]]), np.zeros((1, 2)))


@pytest.mark.filterwarnings("ignore::kernsel.errors.SelectionWarning")  # where "yes" is dear, all are "no": an edge
def test_dear_mistakes_are_made_less_often():
    rng = np.random.default_rng(1)
    y = np.repeat(["no", "yes"], [140, 60])
    X = rng.standard_normal((200, 2)) + 1.2 * (y == "yes")[:, None]

    def missed(**costs):
        selection = kernsel.select(X, y, learner="svm", criterion=CostSensitive(**costs), folds=5, seed=0)
        return np.mean(selection.model.predict(X)[y == "yes"] == "no")

    assert missed(fp=1, fn=20) <= missed(fp=20, fn=1)
