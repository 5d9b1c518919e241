"""What all tests share: the profile of hypothesis."""

import os

from hypothesis import HealthCheck, settings

# No deadline: the first call of a loop compiles it. Derandomised: a failure is a change of the code, not of the dice.
# Without the JIT a loop takes hundreds of times as long: fewer examples are drawn.
PLAIN = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
settings.register_profile(
    "kernsel",
    max_examples=2 if PLAIN else 40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("kernsel")
