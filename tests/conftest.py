"""What all tests share: the profile of hypothesis, and which tests are slow."""

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings

# No deadline: the first call of a loop compiles it. Derandomised: a failure is a change of the code, not of the dice.
settings.register_profile(
    "kernsel", max_examples=40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("kernsel")


def pytest_collection_modifyitems(items):
    """Mark as slow, beside what is marked itself, every law that hypothesis draws dozens of examples for."""
    for item in items:
        if is_hypothesis_test(getattr(item, "obj", None)):
            item.add_marker(pytest.mark.slow)
