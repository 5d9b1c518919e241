"""What a built-in part can do, a plugin's copy of it under another name can do, with the same result."""

import importlib
import inspect
import re
import sys

import numpy as np
import pytest

import kernsel
import tables
from kernsel import registry
from kernsel.errors import KernselError

pytestmark = pytest.mark.filterwarnings("ignore::kernsel.errors.SelectionWarning")

GRID = {"lambda": [1e-3, 1e-2, 1e-1]}
BUILTIN = [claim for claim in registry.claims() if claim.builtin]
parts = pytest.mark.parametrize("claim", BUILTIN, ids=lambda claim: f"{claim.kind}-{claim.name}")


@pytest.fixture(scope="module", autouse=True)
def copies(tmp_path_factory):
    """A distribution with a copy of the source of every built-in part, each called ``acme-`` and the part's name."""
    folder = tmp_path_factory.mktemp("copies")
    info = folder / "acme_copies-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-copies\nVersion: 1.0\n")
    entries = {}
    for claim in BUILTIN:
        part = registry.get(claim.kind, claim.name)
        module = f"acme_{part.__module__.replace('.', '_')}"
        source = inspect.getsource(sys.modules[part.__module__])
        (folder / f"{module}.py").write_text(re.sub(r'(name: ClassVar\[str\] = )"', r'\1"acme-', source))
        entries.setdefault(registry.GROUPS[claim.kind], []).append(f"acme-{claim.name} = {module}:{part.__name__}")
    text = "\n".join(f"[{group}]\n" + "\n".join(lines) for group, lines in entries.items())
    (info / "entry_points.txt").write_text(text)
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    yield
    sys.path.remove(str(folder))
    for module in [name for name in sys.modules if name.startswith("acme_")]:
        del sys.modules[module]


@parts
def test_a_copy_is_found_and_keeps_its_promise(claim):
    (copy,) = [each for each in registry.claims(claim.kind) if each.name == f"acme-{claim.name}"]
    assert registry.check(copy) is None
    assert registry.get(claim.kind, copy.name) is not registry.get(claim.kind, claim.name)


def same(X, y, options, copied):
    """Check that two selections have one ranking, or one refusal."""
    results = []
    for each in (options, options | copied):
        try:
            results.append(kernsel.select(X, y, **{"extend": False, "verify": 3, "folds": 5, **each}))
        except KernselError as error:
            results.append(str(error).replace("acme-", ""))
    if any(isinstance(each, str) for each in results):  # refused
        assert results[0] == results[1]
        return
    figures = [
        [[each[key] for key in ("lambda", "score", "verified", "error")] for each in result.to_dict()["candidates"]]
        for result in results
    ]
    np.testing.assert_array_equal(*(np.array(each, dtype=float) for each in figures))


WAYS = {
    "in full": {},
    "low rank": {"rank": 8},
    "halving": {"search": "halving"},
    "refined by steps": {"refine": "compass", "budget": 10},
    "refined by the gradient": {"refine": "gradient", "budget": 10},
}
ways = pytest.mark.parametrize("way", WAYS)


def named(kind):
    return pytest.mark.parametrize("name", [claim.name for claim in BUILTIN if claim.kind == kind])


@ways
@named("kernel")
def test_a_copy_of_a_kernel(name, way, request):
    if (name, way) == ("gaussian", "refined by the gradient"):
        request.applymarker(pytest.mark.xfail(reason="refine='gradient' knows its kernel by the name", strict=True))
    X, y = tables.waves(30)
    same(
        X,
        y,
        {"kernel": name, "learner": "krr", "grid": GRID | {"rest": "coarse"}, **WAYS[way]},
        {"kernel": f"acme-{name}"},
    )


@ways
@named("learner")
def test_a_copy_of_a_learner(name, way):
    learner = registry.build("learner", name)
    X, y = (tables.circles if "classification" in learner.tasks else tables.waves)(30)
    options = {"kernel": "gaussian", "learner": name, "grid": tables.SMALL, **WAYS[way]}
    same(X, y, options, {"learner": f"acme-{name}"})


@named("criterion")
@pytest.mark.parametrize("learner", ["krr", "lssvm", "svm(bias=false)", "l2svm(bias=false)", "klr(bias=false)"])
def test_criteria_know_copies_of_kernels_and_learners(name, learner, request):
    if name == "ep":
        request.applymarker(pytest.mark.xfail(reason="the criterion knows its kernel by the name", strict=True))
    X, y = tables.circles(30)
    options = {"kernel": "gaussian", "learner": learner, "criterion": name, "grid": tables.SMALL}
    same(X, y, options, {"kernel": "acme-gaussian", "learner": f"acme-{learner}"})


@ways
@named("criterion")
@pytest.mark.parametrize("learner", ["krr", "svm(bias=false)"])
def test_a_copy_of_a_criterion(name, learner, way):
    X, y = tables.circles(30)
    options = {"kernel": "gaussian", "learner": learner, "criterion": name, "grid": tables.SMALL, **WAYS[way]}
    same(X, y, options, {"criterion": f"acme-{name}"})
