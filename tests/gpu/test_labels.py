import pytest

from gpu.labels import count_in


@pytest.mark.parametrize(("said", "number"), [("0", 0), ("8", 8), ("007", 7), ("999999999", 999_999_999)])
def test_a_number_is_read(said, number):
    assert count_in(said) == number


@pytest.mark.parametrize("said", [None, "", " 8", "-1", "8Gi", "1e3", "1.5", "８", "²", "9" * 10, "eight"])
def test_what_is_no_number_counts_nothing(said):
    assert count_in(said) is None
