"""RFC 7396: the table of its appendix A, and what holds for any patch."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.patches import merge_patch

TABLE = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    (["a", "b"], ["c", "d"], ["c", "d"]),
    ({"a": "b"}, ["c"], ["c"]),
    ({"a": "foo"}, None, None),
    ({"a": "foo"}, "bar", "bar"),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]
leaves = st.integers() | st.text(max_size=4)
documents = st.recursive(leaves, lambda inner: st.dictionaries(st.text(max_size=3), inner, max_size=4), max_leaves=12)
patches = st.recursive(
    leaves | st.none(), lambda inner: st.dictionaries(st.text(max_size=3), inner, max_size=4), max_leaves=12
)


@pytest.mark.parametrize(("document", "patch", "expected"), TABLE)
def test_answers_as_the_rfc_shows(document: Any, patch: Any, expected: Any) -> None:
    assert merge_patch.apply(document, patch) == expected


@given(documents, patches)
def test_a_patch_twice_is_the_patch_once_and_nothing_given_is_changed(document: Any, patch: Any) -> None:
    before = copy.deepcopy((document, patch))

    once = merge_patch.apply(document, patch)

    assert merge_patch.apply(once, patch) == once
    assert (document, patch) == before


@given(documents)
def test_an_empty_patch_changes_no_object(document: Any) -> None:
    target = {"spec": document}

    assert merge_patch.apply(target, {}) == target
