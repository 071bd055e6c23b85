"""How hypothesis looks for examples: the same ones in every run of the suite, others each time in `bin/test hunt`.

Neither measures how long an example takes: that would say something of the machine.
"""

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.database import DirectoryBasedExampleDatabase

settings.register_profile(
    "steady",
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "hunt",
    derandomize=False,
    database=DirectoryBasedExampleDatabase(".data/hunt/examples"),  # what broke once is tried again first
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("steady")
TIMES = 5  # as many examples in a round of the hunt as in a run of the suite: half of a run is spent on getting ready


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Only the hunt has this module as a plugin."""
    for item in items:
        test = getattr(item, "obj", None)
        usual = getattr(test, "_hypothesis_internal_use_settings", None)
        if usual is not None:  # what `@settings` sets, and a test may be given only once
            getattr(test, "__func__", test)._hypothesis_internal_use_settings = settings(
                usual, max_examples=usual.max_examples * TIMES
            )
