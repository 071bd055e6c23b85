"""The bench of waiting pods, small."""

import random

from benchmarks import pending


def test_the_check_agrees_with_the_simulators_scheduler():
    assert pending.agreement_ratio(random.Random(3), 60) == 1.0
