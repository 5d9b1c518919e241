"""What others build on stays as it is, or changes on purpose."""

import numpy as np
import pytest

from kernsel.model.model import load
from promised import FOLDER, MODEL, TOPICS, rows

pytestmark = pytest.mark.filterwarnings("ignore::kernsel.errors.SelectionWarning")

GONE = """these are gone, or called otherwise: what others have written breaks.
Keep the old word for two versions (kernsel/deprecation.py; "Versions" in the guide's page limits); where a document or
file loses a key or means another thing by it, raise its version, and read the old one; where a plugin has to be written
anew, raise registry.PROTOCOL. Then write the promises anew by python tests/promised.py:
"""
NEW = """these are new: from the next version on others build on them.
If they are meant, write the promises anew by python tests/promised.py:
"""


def listed(lines):
    return "".join(f"  {line}\n" for line in sorted(lines))


@pytest.mark.parametrize("topic", TOPICS)
def test_what_others_build_on_is_as_promised(topic):
    promised, there = set((FOLDER / f"{topic}.txt").read_text().splitlines()), set(TOPICS[topic]())
    assert not promised - there, GONE + listed(promised - there)
    assert not there - promised, NEW + listed(there - promised)


def test_a_model_of_the_first_version_predicts_as_it_did():
    predicted = load(MODEL).predict(rows()[0])
    np.testing.assert_allclose(predicted, np.loadtxt(MODEL.with_suffix(".csv")), rtol=1e-12)
