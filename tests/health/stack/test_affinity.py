import pytest
from hypothesis import given
from hypothesis import strategies as st

from health.stack.causes.affinity import affinity_takes_node

LABELS = {"os": "cos", "gpus": "8", "empty": ""}


def said(operator: str, key: str, *values: str) -> dict:
    return {"key": key, "operator": operator, "values": list(values)}


WORDS = st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Near", ""])
EXPRESSIONS = st.builds(said, WORDS, st.sampled_from([*LABELS, "none"]), st.sampled_from(["cos", "7", "", "x"]))
TERMS = st.lists(EXPRESSIONS, max_size=3)


@pytest.mark.parametrize(
    ("expression", "does"),
    [
        (said("In", "os", "ubuntu", "cos"), True),
        (said("In", "os", "ubuntu"), False),
        (said("In", "none", "ubuntu"), False),
        (said("NotIn", "os", "cos"), False),
        (said("NotIn", "none", "cos"), True),
        (said("Exists", "empty"), True),
        (said("Exists", "none"), False),
        (said("DoesNotExist", "none"), True),
        (said("DoesNotExist", "empty"), False),
        (said("Gt", "gpus", "4"), True),
        (said("Gt", "gpus", "8"), False),
        (said("Lt", "gpus", "16"), True),
        (said("Gt", "os", "4"), False),
        (said("Gt", "gpus"), False),
        (said("Near", "os", "cos"), False),
        ({"key": "metadata.name", "operator": "In", "values": ["gpu-1"], "field": True}, True),
        ({"key": "metadata.name", "operator": "NotIn", "values": ["gpu-1"], "field": True}, False),
        ({}, False),
    ],
)
def test_whether_an_expression_takes_a_node(expression, does):
    assert affinity_takes_node([[expression]], LABELS, "gpu-1") is does


def test_what_requires_nothing_takes_every_node():
    assert affinity_takes_node([], {}, "gpu-1")


def test_a_term_that_says_nothing_takes_no_node():
    assert not affinity_takes_node([[]], LABELS, "gpu-1")


@given(st.lists(TERMS, min_size=1, max_size=3))
def test_one_term_is_enough_and_of_it_all_must_hold(terms):
    alone = [bool(term) and all(affinity_takes_node([[each]], LABELS, "gpu-1") for each in term) for term in terms]

    assert affinity_takes_node(terms, LABELS, "gpu-1") is any(alone)
