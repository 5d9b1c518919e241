import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from kernsel_quantile import Quantile, fit_quantiles, sorted_quantiles

import kernsel
from kernsel.errors import OptionError
from kernsel.testing import learner_checks

pytestmark = pytest.mark.filterwarnings("ignore::kernsel.errors.SelectionWarning")  # the tables are small

QS = [0.1, 0.5, 0.9]


@pytest.mark.parametrize("check", learner_checks(Quantile(0.8)))
def test_kit(check):
    check()


def pinball(q, y, f):
    return np.maximum(q * (y - f), (q - 1) * (y - f))


@pytest.mark.parametrize("q", QS)
def test_the_loss_is_the_pinball_loss_but_for_its_kink(q):
    r = np.linspace(-3, 3, 601)
    found = Quantile(q, h=0.05).loss.value(np.zeros((1, r.size)), -r[None])[0]
    far = abs(r) > 0.05
    np.testing.assert_allclose(found[far], pinball(q, r, 0)[far], atol=1e-14)
    assert abs(found - pinball(q, r, 0)).max() <= 0.05 / 4 + 1e-14  # the parabola is h / 4 above the kink


def noisy(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 1))
    return X, np.sin(2 * X[:, 0]) + (0.2 + 0.2 * np.abs(X[:, 0])) * rng.normal(size=n)


@pytest.mark.parametrize("q", QS)
def test_a_share_of_new_targets_is_below_the_outputs(q):
    X, y = noisy(200)
    model = kernsel.select(X, y, learner=Quantile(q), kernel="gaussian", folds=5, grid="coarse").model
    new, truth = noisy(2000, seed=1)
    assert abs((truth < model.predict(new)).mean() - q) < 0.08  # the share at 200 rows varies by 0.03 and more


@given(arrays(float, (5, 3), elements=st.floats(-5, 5)), arrays(float, 5, elements=st.floats(-5, 5)))
def test_sorted_outputs_have_no_larger_loss(outputs, y):
    def loss(f):
        return sum(pinball(q, y, f[:, i]) for i, q in enumerate(QS))

    assert (loss(sorted_quantiles(outputs)) <= loss(outputs) + 1e-12).all()


def test_quantiles_do_not_cross():
    X, y = noisy(60)
    predict = fit_quantiles(X, y, [0.9, 0.5, 0.6, 0.1], kernel="gaussian", folds=3, grid="coarse", verify=1)
    found = predict(np.linspace(-4, 4, 200)[:, None])
    assert found.shape == (200, 4)
    assert (np.diff(found, axis=1) >= 0).all()


@pytest.mark.parametrize("options", [{"q": 0.0}, {"q": 1.0}, {"h": 0.0}, {"h": np.nan}])
def test_what_makes_no_sense_is_refused(options):
    with pytest.raises(OptionError, match="must be between 0 and 1"):
        Quantile(**options)
