"""RFC 6902: its own examples (appendix A), and what holds for any document."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.patches import json_patch

EXAMPLES = [
    ("A.1", {"foo": "bar"}, [{"op": "add", "path": "/baz", "value": "qux"}], {"baz": "qux", "foo": "bar"}),
    ("A.2", {"foo": ["bar", "baz"]}, [{"op": "add", "path": "/foo/1", "value": "q"}], {"foo": ["bar", "q", "baz"]}),
    ("A.3", {"baz": "qux", "foo": "bar"}, [{"op": "remove", "path": "/baz"}], {"foo": "bar"}),
    ("A.4", {"foo": ["bar", "qux", "baz"]}, [{"op": "remove", "path": "/foo/1"}], {"foo": ["bar", "baz"]}),
    ("A.5", {"baz": "qux"}, [{"op": "replace", "path": "/baz", "value": "boo"}], {"baz": "boo"}),
    ("A.6", {"a": {"b": 1}, "c": {}}, [{"op": "move", "from": "/a/b", "path": "/c/d"}], {"a": {}, "c": {"d": 1}}),
    ("A.7", {"foo": ["a", "b", "c"]}, [{"op": "move", "from": "/foo/0", "path": "/foo/2"}], {"foo": ["b", "c", "a"]}),
    ("A.8", {"a": [1, "two"]}, [{"op": "test", "path": "/a/1", "value": "two"}], {"a": [1, "two"]}),
    ("A.10", {"foo": "bar"}, [{"op": "add", "path": "/c", "value": {"g": {}}}], {"foo": "bar", "c": {"g": {}}}),
    ("A.11", {"foo": "bar"}, [{"op": "add", "path": "/b", "value": 1, "xyz": 123}], {"foo": "bar", "b": 1}),
    ("A.14", {"/": 9, "~1": 10}, [{"op": "test", "path": "/~01", "value": 10}], {"/": 9, "~1": 10}),
    ("A.16", {"foo": ["bar"]}, [{"op": "add", "path": "/foo/-", "value": ["x"]}], {"foo": ["bar", ["x"]]}),
    ("4.5", {"a": {"b": [1]}}, [{"op": "copy", "from": "/a/b", "path": "/c"}], {"a": {"b": [1]}, "c": [1]}),
]
REFUSED = [
    ("A.9", {"baz": "qux"}, {"op": "test", "path": "/baz", "value": "bar"}),
    ("A.12", {"foo": "bar"}, {"op": "add", "path": "/baz/bat", "value": "qux"}),
    ("A.15", {"/": 9, "~1": 10}, {"op": "test", "path": "/~01", "value": "10"}),
    ("absent", {"a": 1}, {"op": "replace", "path": "/b", "value": 1}),
    ("absent", {"a": 1}, {"op": "remove", "path": "/b"}),
    ("no boolean", {"a": 1}, {"op": "test", "path": "/a", "value": True}),
    ("past the end", {"a": [1]}, {"op": "add", "path": "/a/2", "value": 1}),
    ("unknown", {"a": 1}, {"op": "increment", "path": "/a"}),
]

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)
documents = st.dictionaries(st.text(max_size=3), values, min_size=1, max_size=4)


@pytest.mark.parametrize(("section", "document", "operations", "expected"), EXAMPLES, ids=[e[0] for e in EXAMPLES])
def test_answers_as_the_rfc_shows(section: str, document: Any, operations: Any, expected: Any) -> None:
    assert json_patch.apply(document, operations) == expected


@pytest.mark.parametrize(("section", "document", "operation"), REFUSED)
def test_refuses_what_the_rfc_refuses(section: str, document: Any, operation: Any) -> None:
    with pytest.raises(json_patch.PatchError):
        json_patch.apply(document, [operation])


def test_an_absent_member_equals_null_as_in_the_api_servers_library() -> None:
    assert json_patch.apply({"a": 1}, [{"op": "test", "path": "/b", "value": None}]) == {"a": 1}


@given(documents, st.text(max_size=3), values)
def test_what_was_added_is_there_and_what_was_given_is_untouched(document: Any, key: str, value: Any) -> None:
    given_before = copy.deepcopy(document)
    path = "/" + key.replace("~", "~0").replace("/", "~1")

    patched = json_patch.apply(document, [{"op": "add", "path": path, "value": value}])

    assert json_patch.same(json_patch.look_up(patched, [key]), value)
    assert document == given_before
    assert json_patch.apply(patched, [{"op": "remove", "path": path}]).keys() == document.keys() - {key}


@given(documents)
def test_a_document_equals_itself_and_a_failed_test_leaves_it_alone(document: Any) -> None:
    same = [{"op": "test", "path": "", "value": copy.deepcopy(document)}]
    other = [{"op": "add", "path": "/new", "value": 1}, {"op": "test", "path": "", "value": "other"}]

    assert json_patch.apply(document, same) == document
    with pytest.raises(json_patch.PatchError):
        json_patch.apply(document, other)
