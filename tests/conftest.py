"""What all tests share: the profile of hypothesis."""

from hypothesis import HealthCheck, settings

# No deadline: the first call of a loop compiles it. Derandomised: a failure is a change of the code, not of the dice.
settings.register_profile(
    "kernsel", max_examples=40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("kernsel")
