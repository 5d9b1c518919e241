"""The whole kernel in mixed precision against dense float64 systems and brute-force refits."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

import tolerances
import twins.whole
from kernsel.kernels import Gaussian
from kernsel.numerics import gram
from kernsel.numerics.whole import costs as whole_costs
from kernsel.numerics.whole.preconditioners import ALL, FLOOR_OF_FOLDS, Factored, LowRank, Refused, factorise
from kernsel.numerics.whole.solver import COLUMNS, WholeKernel, predict
from kernsel.numerics.whole.tiles import CallableMatrix, FormulaMatrix, rounds
from kernsel.numerics.whole.triangle import Triangle

SMALL = 16
"""Rows of a block, so that small matrices have several."""

KERNELS = {
    "gaussian": ("sqdist", gram.exponential(0.4)),
    "laplacian": ("l1", gram.exponential(0.7)),
    "matern32": ("sqdist", gram.exponential(1.3, 1.0, root=True)),
    "matern52": ("sqdist", gram.exponential(1.3, 1.0, 1.0 / 3.0, root=True)),
    "exponential": ("sqdist", gram.exponential(0.8, root=True)),
}


def even(n, t):
    bounds = np.arange(t + 1) * n // t
    return [(int(lo), int(hi)) for lo, hi in itertools.pairwise(bounds)]


def table(n, d=3, seed=0, k=1):
    """Rows, and k targets of which each is a curve and noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    Y = np.column_stack([np.sin((j + 1.0) * X[:, 0]) + 0.3 * rng.normal(size=n) for j in range(k)])
    return X, Y


def problem(name, n, block=SMALL, weighted=False, bias=False, seed=0, k=2):
    """The whole kernel of a table and, for its twin, the dense matrix."""
    statistic, formula = KERNELS[name]
    X, Y = table(n, seed=seed, k=k)
    s = np.random.default_rng(seed + 1).exponential(size=n) + 0.05 if weighted else np.ones(n)
    K = gram.gram(statistic, X, None, formula)
    return WholeKernel(FormulaMatrix(statistic, X, formula, block), Y, s, bias), K


def least_left(there, folds):
    """The least weight that a fold leaves."""
    return min(np.delete(there.s, slice(*fold)).sum() for fold in folds)


@st.composite
def small_problems(draw):
    sizes = draw(st.lists(st.integers(1, 15), min_size=2, max_size=4))
    bounds = np.r_[0, np.cumsum(sizes)]
    there, K = problem(
        draw(st.sampled_from(sorted(KERNELS))),
        sum(sizes),
        weighted=draw(st.booleans()),
        bias=draw(st.booleans()),
        seed=draw(st.integers(0, 1000)),
    )
    folds = [(int(lo), int(hi)) for lo, hi in itertools.pairwise(bounds)]
    return there, K, folds, 2.0 ** draw(st.integers(-12, 3))


def close(found, expected, s, slack=1.0):
    """Compare outputs: what a relative residual of 1e-9 may leave at one row, more where weights differ."""
    atol = slack * tolerances.RESIDUAL * np.sqrt(len(s)) * np.sqrt(tolerances.weighted(s))
    np.testing.assert_allclose(found, expected, rtol=0, atol=atol)


# --- tiles ----------------------------------------------------------------------------------------------------------


@given(st.integers(0, 23))
def test_a_round_has_no_block_twice_and_all_rounds_have_each_pair_once(count):
    dealt = rounds(count)
    for games in dealt[1:]:
        blocks = [block for pair in games for block in pair]
        assert len(set(blocks)) == len(blocks)
    pairs = [pair for games in dealt for pair in games]
    assert sorted(pairs) == [(i, j) for i in range(count) for j in range(i + 1)]


@pytest.mark.parametrize("name", sorted(KERNELS))
@pytest.mark.parametrize("n", [1, 15, 16, 53])
def test_products_are_those_of_the_matrix(name, n):
    there, K = problem(name, n)
    V = np.random.default_rng(5).normal(size=(n, 3))
    np.testing.assert_allclose(there.matrix.times(V), K @ V, rtol=0, atol=tolerances.SUMS)
    np.testing.assert_array_equal(there.matrix.diag(), np.diag(K))
    Z = np.random.default_rng(6).normal(size=(21, 3))
    statistic, formula = KERNELS[name]
    expected = gram.gram(statistic, Z, there.matrix.X, formula) @ V
    np.testing.assert_allclose(there.matrix.cross(Z).times(V), expected, rtol=0, atol=tolerances.SUMS)


@pytest.mark.compiled
def test_any_kernel_and_sparse_rows_have_tiles():
    X, Y = table(50)
    X[X < 0.5] = 0.0
    kernel = Gaussian(2.0)
    for rows in (X, csr_array(X)):
        matrix = CallableMatrix(kernel, rows, SMALL)
        np.testing.assert_allclose(matrix.times(Y), kernel(X) @ Y, rtol=0, atol=tolerances.SUMS)
        np.testing.assert_allclose(matrix.cross(rows[:9]).times(Y), kernel(X[:9], X) @ Y, rtol=0, atol=tolerances.SUMS)
        some = np.array([3, 4, 40])
        np.testing.assert_allclose(
            matrix.subset(some).times(Y[some]), kernel(X[some]) @ Y[some], rtol=0, atol=tolerances.SUMS
        )
        there = WholeKernel(matrix, Y, np.ones(50), True)
        fit = there.fit(there.factorise(1e-3), 1e-3)
        a, b = twins.whole.bordered(kernel(X), Y, there.s, 1e-3, True)
        close(fit.f, kernel(X) @ a + b, there.s)


# --- triangle -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dtype", "atol"), [(np.float32, 2e-5), (np.float64, 1e-12)])
@pytest.mark.parametrize("n", [1, 16, 61])
def test_triangle_is_factorised_solved_and_inverted(dtype, atol, n):
    rng = np.random.default_rng(n)
    G = rng.normal(size=(n, n + 5)) / np.sqrt(n)
    A = G @ G.T + np.eye(n)  # whose inverse is of the size 1
    B = rng.normal(size=(n, 2))
    triangle = Triangle(n, dtype, SMALL)
    for i, rows in enumerate(triangle.bounds):
        for j, columns in enumerate(triangle.bounds[: i + 1]):
            triangle.tile(i, j)[:] = A[slice(*rows), slice(*columns)]
    np.testing.assert_array_equal(triangle.dense(), A.astype(dtype))
    assert triangle.factorise() == 0
    np.testing.assert_allclose(triangle.solve(B), np.linalg.solve(A, B), rtol=0, atol=atol)
    triangle.invert()
    inverse = np.linalg.inv(A)
    np.testing.assert_allclose(triangle.solve(B), inverse @ B, rtol=0, atol=atol)
    np.testing.assert_allclose(triangle.inverse_diagonal(), np.diag(inverse), rtol=0, atol=atol)
    for lo, hi in ((0, n), (n // 3, n), (n // 4, n // 2 + 1)):
        np.testing.assert_allclose(triangle.inverse_block(lo, hi).dense(), inverse[lo:hi, lo:hi], rtol=0, atol=atol)


@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf])
def test_a_matrix_that_is_not_positive_definite_is_noticed(value):
    triangle = Triangle(40, np.float32, SMALL)
    for i, (lo, hi) in enumerate(triangle.bounds):
        triangle.rows[i][:] = np.eye(hi)[lo:hi]
    triangle.tile(1, 1)[4, 4] = value
    assert 16 < triangle.factorise() <= 32


def test_a_packed_triangle_takes_half_the_memory_and_says_so():
    assert Triangle(1000, np.float32, SMALL).bytes == whole_costs.triangle_bytes(1000, 4, SMALL)
    assert whole_costs.triangle_bytes(40_000, 4) < 0.51 * 4 * 40_000**2


# --- fits and held-out outputs --------------------------------------------------------------------------------------


@given(small_problems())
def test_fits_and_held_out_outputs_are_those_of_dense_systems(p):
    there, K, folds, lam = p
    factored = there.factorise(lam, folds)
    assert isinstance(factored, Factored)
    fit = there.fit(factored, lam)
    a, b = twins.whole.bordered(K, there.Y, there.s, lam, there.bias)
    close(fit.f, K @ a + b, there.s)
    close(predict(there.matrix, there.matrix.X, fit), K @ a + b, there.s)
    if there.bias:
        assert np.abs(fit.a.sum(axis=0)).max() < tolerances.RESIDUAL * (1 + np.abs(fit.a).sum())
    factored = factored.hold_out(folds)
    held = there.hold_out(factored, lam, folds)
    expected = twins.whole.held_out(K, there.Y, there.s, lam, folds, there.bias)
    # the rows of a fold are not fitted to: the residual is magnified by up to the root of the condition
    condition = 1 + len(K) / (lam * least_left(there, folds)) * there.s.max()
    close(held.outputs, expected, there.s, np.sqrt(condition))


@given(small_problems())
def test_a_low_rank_preconditioner_gives_the_same_outputs(p):
    there, K, folds, lam = p
    preconditioner = LowRank(there.matrix, 10, there.root, folds)
    fit = there.fit(preconditioner, lam)
    if isinstance(fit, Refused):  # where the rank is too low and the ridge small, that is said
        assert "residual" in fit.reason
        return
    a, b = twins.whole.bordered(K, there.Y, there.s, lam, there.bias)
    close(fit.f, K @ a + b, there.s)
    held = there.hold_out(preconditioner, lam, folds)
    if not isinstance(held, Refused):
        expected = twins.whole.held_out(K, there.Y, there.s, lam, folds, there.bias)
        condition = 1 + len(K) / (lam * least_left(there, folds)) * there.s.max()
        close(held.outputs, expected, there.s, np.sqrt(condition))


def test_a_low_rank_preconditioner_is_the_inverse_of_its_matrix():
    there, K = problem("gaussian", 60)
    folds = [(0, 25), (25, 60)]
    found = LowRank(there.matrix, 60, None, folds)
    R = np.random.default_rng(0).normal(size=(60, 2))
    R[:25, 1] = 0.0
    out = found.apply(R, np.array([ALL, 0]), np.array([0.1, 0.3]))
    np.testing.assert_allclose(out[:, 0], np.linalg.solve(K + 0.1 * np.eye(60), R[:, 0]), rtol=0, atol=1e-8)
    expected = np.linalg.solve(K[25:, 25:] + 0.3 * np.eye(35), R[25:, 1])
    np.testing.assert_allclose(out[25:, 1], expected, rtol=0, atol=1e-8)
    assert not out[:25, 1].any()


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.compiled
def test_rows_of_weight_zero_are_predicted_and_not_fitted_to(bias):
    there, K = problem("exponential", 50, bias=bias)
    s = np.where(np.arange(50) % 3 == 0, 0.0, there.s)
    there = WholeKernel(there.matrix, there.Y, s, bias)
    folds = even(50, 4)
    factored = there.factorise(1e-3, folds)
    fit = there.fit(factored, 1e-3)
    a, b = twins.whole.bordered(K, there.Y, s, 1e-3, bias)
    assert not fit.a[s == 0].any()
    np.testing.assert_allclose(fit.f, K @ a + b, rtol=0, atol=1e-8)
    factored = factored.hold_out(folds)
    expected = twins.whole.held_out(K, there.Y, s, 1e-3, folds, bias)
    np.testing.assert_allclose(there.hold_out(factored, 1e-3, folds).outputs, expected, rtol=0, atol=1e-7)
    single = even(50, 50)
    alone = there.hold_out_by_blocks(there.factorise(1e-3, single), 1e-3, single)
    expected = twins.whole.held_out(K, there.Y, s, 1e-3, single, bias)
    # ridges differ by the rows' weights: see common_ridge
    np.testing.assert_allclose(alone.outputs, expected, rtol=0, atol=0.1 * np.abs(there.Y).max() * s.max() / s.sum())
    said = there.hold_out_by_blocks(there.factorise(1e-3, folds), 1e-3, folds)
    assert isinstance(said, Refused)
    assert "weight 0" in said.reason


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["exponential", "gaussian"])
@pytest.mark.compiled
def test_unequal_folds_of_many_rows_are_held_out_exactly(name, weighted, bias):
    there, K = problem(name, 500, 64, weighted, bias)
    folds, lam = [(0, 50), (50, 200), (200, 201), (201, 430)], 1e-4  # the last rows are in no fold
    factored = there.factorise(lam, folds)
    factored = factored.hold_out(folds)
    held = there.hold_out(factored, lam, folds)
    expected = twins.whole.held_out(K, there.Y, there.s, lam, folds, bias)
    np.testing.assert_allclose(held.outputs, expected, rtol=0, atol=1e-7)
    assert held.folds == folds
    assert not held.outputs[430:].any()
    one = there.hold_out_one(lam, folds[1])
    np.testing.assert_allclose(one.outputs[50:200], expected[50:200], rtol=0, atol=1e-7)
    assert one.folds == [(50, 200)]
    assert not one.outputs[:50].any()


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_low_rank_serves_fit_and_folds_in_few_passes_where_it_leaves_less_than_the_ridge(weighted, bias):
    rough, _ = problem("exponential", 500, 64, weighted, bias)
    X, formula = rough.matrix.points(np.arange(500)), gram.exponential(0.03)
    there = replace(rough, matrix=FormulaMatrix("sqdist", X, formula, 64))
    K, folds, lam = gram.gram("sqdist", X, None, formula), [(0, 50), (50, 200), (200, 430)], 0.05 / 500
    low = there.approximate(lam, folds)
    assert low.lost <= there.common_ridge(lam, folds)
    assert low.F.shape[1] <= 50
    fit, held = there.fit_and_hold_out(low, lam, folds)
    assert max(fit.passes, held.passes) <= 20  # a condition number of at most 2
    expected = twins.whole.held_out(K, there.Y, there.s, lam, folds, bias)
    np.testing.assert_allclose(held.outputs, expected, rtol=0, atol=1e-7)
    plain = there.fit(there.factorise(lam, dtype=np.float64), lam)
    np.testing.assert_allclose(fit.f, plain.f, rtol=0, atol=1e-7)
    assert rough.approximate(lam, folds) is None


@pytest.mark.compiled
def test_folds_are_held_out_for_their_own_ridge_by_a_factor_whose_ridge_is_raised():
    there, K = problem("gaussian", 500, 64)
    folds, lam = even(500, 10), 1e-5 / 500
    factored = there.factorise(lam, folds, floor=FLOOR_OF_FOLDS)
    assert factored.jitter > lam * 500
    held = there.hold_out(factored.hold_out(folds), lam, folds)
    expected = twins.whole.held_out(K, there.Y, there.s, lam, folds, False)
    np.testing.assert_allclose(held.outputs, expected, rtol=0, atol=1e-7)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("t", [160, 32])
@pytest.mark.parametrize(("dtype", "atol"), [(np.float32, 2e-3), (np.float64, 1e-8)])
@pytest.mark.compiled
def test_many_folds_are_held_out_by_blocks_of_the_inverse(dtype, atol, t, bias):
    there, K = problem("exponential", 160, 48, bias=bias)
    folds, lam = even(160, t), 1e-4
    factored = there.factorise(lam, folds, dtype)
    held = there.hold_out_by_blocks(factored, lam, folds)
    expected = twins.whole.held_out(K, there.Y, there.s, lam, folds, bias)
    np.testing.assert_allclose(held.outputs, expected, rtol=0, atol=atol)
    # a few folds are checked, which tells the size of the error
    assert np.abs(held.outputs - expected).max() < 20 * held.error * there.Y.std() + 1e-8


@pytest.mark.compiled
def test_several_lambda_are_columns_of_one_product_and_refused_one_by_one():
    there, K = problem("matern52", 300, 64, weighted=True, bias=True)
    factored = there.factorise(1e-4)
    lams = [1e-3, 1e-4, 3e-5, 1e-13]
    *fits, last = there.fits(factored, lams)
    for lam, fit in zip(lams, fits, strict=False):
        a, b = twins.whole.bordered(K, there.Y, there.s, lam, True)
        close(fit.f, K @ a + b, there.s)
    assert isinstance(last, Refused)


def test_blocks_need_the_common_ridge():
    there, _ = problem("exponential", 60)
    folds = even(60, 60)
    said = there.hold_out_by_blocks(there.factorise(1e-2), 1e-2, folds)
    assert isinstance(said, Refused)
    assert "ridge" in said.reason


@pytest.mark.compiled
def test_folds_in_several_blocks_of_columns():
    there, K = problem("matern32", 100, bias=True)
    folds = even(100, 50)
    assert len(folds) * (there.Y.shape[1] + 1) > COLUMNS
    factored = there.factorise(1e-3, folds)
    factored = factored.hold_out(folds)
    held = there.hold_out(factored, 1e-3, folds)
    expected = twins.whole.held_out(K, there.Y, there.s, 1e-3, folds, True)
    np.testing.assert_allclose(held.outputs, expected, rtol=0, atol=1e-7)


def test_a_fold_of_all_rows_is_refused():
    there, _ = problem("matern32", 30)
    factored = there.factorise(1e-2).hold_out([(0, 30)])
    for said in (there.hold_out(factored, 1e-2, [(0, 30)]), there.hold_out_one(1e-2, (0, 30))):
        assert isinstance(said, Refused)
        assert "weight" in said.reason


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", sorted(KERNELS))
@pytest.mark.compiled
def test_ridges_from_tiny_to_large_give_the_direct_solution_or_are_refused(name, dtype):
    n = 400
    there, K = problem(name, n, 120, bias=True)
    ev, U = np.linalg.eigh(K)
    answered = 0
    for ridge in 10.0 ** np.arange(-6, 2):
        factored = there.factorise(ridge / n, dtype=dtype)
        fit = factored if isinstance(factored, Refused) else there.fit(factored, ridge / n)
        if isinstance(fit, Refused):
            assert ridge < 1e-3
            assert f"{ridge:.1e}" in fit.reason
            continue
        answered += 1
        inverse = lambda B: U @ ((U.T @ B) / (np.maximum(ev, 0.0) + ridge)[:, None])  # noqa: B023, E731
        u, v = inverse(np.ones((n, 1))), inverse(there.Y)
        b = v.sum(axis=0) / u.sum()
        np.testing.assert_allclose(fit.f, K @ (v - u * b) + b, rtol=0, atol=1e-8)
    assert answered == 8 if name in ("exponential", "laplacian") else answered >= 5


@pytest.mark.compiled
def test_a_ridge_that_float32_cannot_bear_is_refused_or_reached_with_a_jitter():
    there, _ = problem("gaussian", 300, 64)
    there = WholeKernel(FormulaMatrix("sqdist", there.matrix.X, gram.exponential(1e-3), 64), there.Y, there.s)
    assert isinstance(there.factorise(1e-9 / 300), Refused)
    # Rounding leaves a relative residual of 4e-15 / (n ridge), more or less by the BLAS; 1e-9 is asked for.
    ridge = 1e-5 / 300
    factored = there.factorise(ridge)
    assert factored.jitter > 0
    fit = there.fit(factored, ridge)
    exact = there.fit(there.factorise(ridge, dtype=np.float64), ridge)
    np.testing.assert_allclose(fit.f, exact.f, rtol=0, atol=1e-8)
    said = replace(there, passes=4).fit(factored, ridge)
    assert isinstance(said, Refused)
    assert "4 passes" in said.reason


def test_a_kernel_that_is_not_finite_or_not_positive_is_refused():
    X, Y = table(40)
    nan = CallableMatrix(lambda A, B: np.full((len(A), len(B)), np.nan), X, SMALL)
    assert "finite" in WholeKernel(nan, Y, np.ones(40)).factorise(1e-3).reason
    negative = CallableMatrix(lambda A, B: -np.abs(A @ B.T), X, SMALL)
    assert isinstance(WholeKernel(negative, Y, np.ones(40)).factorise(1e-3), Refused)


def test_targets_of_zero_and_constant_targets():
    there, _ = problem("matern52", 40, bias=True)
    constant = WholeKernel(there.matrix, np.column_stack([np.zeros(40), np.full(40, 7.0)]), there.s, True)
    fit = constant.fit(constant.factorise(1e-3), 1e-3)
    np.testing.assert_allclose(fit.f, constant.Y, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", ["factor", "rank"])
@pytest.mark.compiled
def test_the_result_is_the_same_for_any_number_of_threads(use_threads, kind):
    there, _ = problem("exponential", 400, 48, weighted=True, bias=True)
    folds, found = even(400, 5), []
    Z = np.random.default_rng(1).normal(size=(130, 3))
    for workers in (1, 2, 3):
        use_threads(workers)
        if kind == "factor":
            preconditioner = there.factorise(1e-3, folds).hold_out(folds)
        else:
            preconditioner = LowRank(there.matrix, 150, there.root, folds)
        fit = there.fit(preconditioner, 1e-3)
        outputs = [fit.f, predict(there.matrix, Z, fit), there.hold_out(preconditioner, 1e-3, folds).outputs]
        if kind == "factor":
            outputs.append(there.hold_out_by_blocks(there.factorise(1e-3, folds), 1e-3, folds).outputs)
        found.append(outputs)
    for other in found[1:]:
        for mine, theirs in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(mine, theirs)


def test_an_interrupt_ends_the_work(monkeypatch):
    there, _ = problem("exponential", 200)
    factored = there.factorise(1e-3)

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(type(factored), "apply", stop)
    with pytest.raises(KeyboardInterrupt):
        there.fit(factored, 1e-3)


# --- costs ----------------------------------------------------------------------------------------------------------


@pytest.mark.compiled
def test_costs_grow_as_the_work_does():
    rates = whole_costs.measure_rates()
    assert min(rates.products32, rates.products64, rates.pairs, rates.bytes) > 1e6
    small, large = (whole_costs.costs(n, 9, folds=even(n, 5), route="folds") for n in (20_000, 40_000))
    assert 3.5 < large.memory / small.memory < 4.1
    assert 4.0 < large.seconds(rates) / small.seconds(rates) < 8.1
    seconds = {
        route: whole_costs.costs(20_000, 9, folds=even(20_000, 5), route=route).seconds(rates)
        for route in whole_costs.ROUTES
    }
    assert seconds["fit"] < seconds["one fold"] < seconds["folds"]


def test_costs_are_described_in_words():
    rates = whole_costs.Rates(1e11, 5e10, 5e8, 1e10)
    assert whole_costs.costs(2000, 9).describe(rates).startswith("about 1 second, 0.")
    assert "seconds" in whole_costs.costs(16_512, 9).describe(rates)
    assert "minutes" in whole_costs.costs(40_000, 9, folds=even(40_000, 5), route="folds").describe(rates)
    assert "hours" in whole_costs.costs(200_000, 9).describe(rates)
    low = whole_costs.costs(100_000, 9, rank=1000, passes=50)
    assert low.memory < 2e9
    assert "low rank" in [step.name for step in low.steps]


@pytest.mark.compiled
def test_memory_is_counted_as_it_is_taken():
    n = 960
    there, _ = problem("exponential", n, block=480)
    folds = even(n, 5)
    factored = there.factorise(1e-3, folds)
    factored = factored.hold_out(folds)
    taken = factored.triangle.bytes + sum(block.bytes for block in factored.blocks)
    assert taken < whole_costs.costs(n, 3, folds=folds, route="folds").memory


def test_a_factor_is_refused_with_its_numbers():
    flat = FormulaMatrix("sqdist", table(300)[0], gram.exponential(1e-6), 64)
    said = factorise(flat, 1e-12)
    assert isinstance(said, Refused)
    assert "1.0e-12" in said.reason
    assert "float32" in said.reason


@pytest.mark.compiled
def test_unequal_folds_by_blocks_share_a_ridge_and_the_check_tells_what_that_costs():
    there, K = problem("exponential", 160, 48)
    folds, lam = even(160, 33), 1e-4
    held = there.hold_out_by_blocks(there.factorise(lam, folds, np.float64), lam, folds)
    off = np.abs(held.outputs - twins.whole.held_out(K, there.Y, there.s, lam, folds, False)).max()
    assert off < np.abs(there.Y).max() / 155  # one row's weight over those that are left
    assert 1e-6 < off < 20 * held.error
