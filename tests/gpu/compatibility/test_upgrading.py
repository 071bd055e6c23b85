import pytest

from gpu.compatibility import Support
from gpu.compatibility.upgrading import judge_upgrade


@pytest.mark.parametrize(
    ("now", "to", "said"),
    [
        ("26.3.0", "26.3.3", Support.SUPPORTED),
        ("v26.3.3", "26.7.0", Support.SUPPORTED),
        ("26.7.0", "26.7", Support.SUPPORTED),
        ("25.10.1", "26.7.0", Support.UNSUPPORTED),
        ("24.9.2", "26.7.0", Support.UNSUPPORTED),
        ("26.7.0", "26.3.3", Support.UNKNOWN),
        ("26.7.0", "26.11.0", Support.UNKNOWN),
        ("23.9.0", "26.7.0", Support.UNKNOWN),
        ("", "26.7.0", Support.UNKNOWN),
    ],
)
def test_an_upgrade_goes_within_a_series_or_to_the_next(now, to, said):
    assert judge_upgrade(now, to).answer is said


def test_names_the_series_that_would_be_skipped():
    assert "It skips 25.3, 25.10, 26.3;" in judge_upgrade("24.9.2", "26.7.0").sentence
