"""How hypothesis looks for examples: the same ones in every run of the suite, others each time in `bin/test hunt`.

Neither measures how long an example takes: that would say something of the machine.
"""

import os
import random
import time
from itertools import groupby

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.database import DirectoryBasedExampleDatabase

settings.register_profile(
    "steady",
    max_examples=50,  # always the same ones: more of them would find something once, and cost time in every run
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
SHARE = float(os.environ.get("QUARTERDECK_TEST_EXAMPLES", "1"))  # of them in each test; CI tries fewer by day
FEWEST = 3  # a test with so few examples tries all of them
TIMES = 10  # as many examples in a round of the hunt as in a run of the suite: half of a run is spent on getting ready
UNTIL = "QUARTERDECK_HUNT_UNTIL"  # seconds of the clock, as text, where a hunt started this
TIME_IS_UP = "the time of the hunt is up"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Only the hunt has this module as a plugin. The same seed is the same order, in each process of a run."""
    files = [list(tests) for _, tests in groupby(items, key=lambda item: item.path)]
    random.Random(config.getoption("hypothesis_seed")).shuffle(files)
    items[:] = [item for tests in files for item in tests]
    multiply_examples(items, TIMES)


def multiply_examples(items: list[pytest.Item], times: float) -> None:
    """Changes how many examples each property test tries, also one that sets its own number."""
    functions = [getattr(item, "obj", None) for item in items]
    for test in dict.fromkeys(getattr(function, "__func__", function) for function in functions):  # once for all its
        usual = getattr(test, "_hypothesis_internal_use_settings", None)  # parameters
        if usual is not None:  # what `@settings` sets, and a test may be given only once
            number = max(round(usual.max_examples * times), min(usual.max_examples, FEWEST))
            test._hypothesis_internal_use_settings = settings(usual, max_examples=number)


def pytest_runtest_setup() -> None:
    if time.time() > float(os.environ.get(UNTIL, "inf")):
        pytest.skip(TIME_IS_UP)
