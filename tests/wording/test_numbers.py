import pytest

from wording.numbers import count, either, every_one_of


@pytest.mark.parametrize(("number", "said"), [(0, "0 nodes"), (1, "1 node"), (2, "2 nodes")])
def test_one_is_not_many(number, said):
    assert count(number, "node") == said


def test_a_plural_of_its_own():
    assert (count(1, "taint is", "taints are"), count(0, "taint is", "taints are")) == ("1 taint is", "0 taints are")


def test_every_one_of_them():
    assert (every_one_of(1, "node"), every_one_of(3, "node")) == ("the one node", "all 3 nodes")


def test_a_word_for_one_and_one_for_any_other_number():
    assert [either(number, "its", "their") for number in (0, 1, 2)] == ["their", "its", "their"]
