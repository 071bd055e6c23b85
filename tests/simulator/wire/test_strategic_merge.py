"""Strategic merge as its design documents describe it: merge keys, directives, order."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.patches import strategic

POD = {"spec": {"containers": [{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:1"}]}}


def merged(document: Any, patch: Any, *, kind: str = "Pod") -> Any:
    return strategic.apply(document, patch, kind=kind)


def test_containers_merge_by_name() -> None:
    patch = {"spec": {"containers": [{"name": "b", "image": "b:2"}, {"name": "c", "image": "c:1"}]}}

    held = merged(POD, patch)["spec"]["containers"]

    assert held == [{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:2"}, {"name": "c", "image": "c:1"}]


def test_a_directive_deletes_one_item() -> None:
    patch = {"spec": {"containers": [{"$patch": "delete", "name": "a"}]}}

    assert merged(POD, patch)["spec"]["containers"] == [{"name": "b", "image": "b:1"}]


def test_a_directive_replaces_a_whole_list_or_map() -> None:
    whole = {"spec": {"containers": [{"name": "z", "image": "z:1"}, {"$patch": "replace"}]}}
    labels = {"metadata": {"labels": {"$patch": "replace", "new": "yes"}}}

    assert merged(POD, whole)["spec"]["containers"] == [{"name": "z", "image": "z:1"}]
    assert merged({"metadata": {"labels": {"old": "yes"}}}, labels) == {"metadata": {"labels": {"new": "yes"}}}


def test_an_unknown_directive_is_refused() -> None:
    with pytest.raises(strategic.DirectiveError):
        merged(POD, {"spec": {"$patch": "explode"}})


def test_null_removes_a_member() -> None:
    assert merged({"spec": {"unschedulable": True, "podCIDR": "x"}}, {"spec": {"unschedulable": None}}) == {
        "spec": {"podCIDR": "x"}
    }


@pytest.mark.parametrize(
    ("kind", "field", "key", "others"),
    [
        ("Node", "conditions", "type", {"status": "True"}),
        ("Node", "addresses", "type", {"address": "10.0.0.1"}),
        ("Pod", "volumes", "name", {"emptyDir": {}}),
        ("Pod", "volumeMounts", "mountPath", {"name": "v"}),
        ("Pod", "env", "name", {"value": "1"}),
        ("Pod", "ownerReferences", "uid", {"name": "o"}),
        ("Pod", "imagePullSecrets", "name", {}),
        ("Pod", "ports", "containerPort", {"protocol": "TCP"}),
        ("Service", "ports", "port", {"protocol": "TCP"}),
    ],
)
def test_lists_merge_by_their_keys(kind: str, field: str, key: str, others: dict[str, Any]) -> None:
    one, two = {key: "1", **others}, {key: "2", **others}

    assert merged({field: [one]}, {field: [two]}, kind=kind) == {field: [one, two]}
    assert merged({field: [one, two]}, {field: [{key: "1", "more": 1}]}, kind=kind) == {
        field: [{**one, "more": 1}, two]
    }


@pytest.mark.parametrize("field", ["taints", "tolerations", "args", "command"])
def test_lists_without_a_key_are_replaced(field: str) -> None:
    assert merged({field: [{"key": "a"}]}, {field: [{"key": "b"}]}, kind="Node") == {field: [{"key": "b"}]}


def test_finalizers_merge_as_a_set_and_are_taken_out_by_name() -> None:
    held = {"finalizers": ["a", "b"]}

    assert merged(held, {"finalizers": ["b", "c"]}) == {"finalizers": ["a", "b", "c"]}
    assert merged(held, {"$deleteFromPrimitiveList/finalizers": ["a"]}) == {"finalizers": ["b"]}


def test_an_item_without_its_merge_key_is_refused() -> None:
    with pytest.raises(strategic.DirectiveError, match="does not contain declared merge key: name"):
        merged(POD, {"spec": {"containers": [{"image": "x"}]}})


def test_the_order_is_as_the_patch_sets_it() -> None:
    patch = {"spec": {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]}}

    assert [item["name"] for item in merged(POD, patch)["spec"]["containers"]] == ["b", "a"]


def test_the_order_places_new_items_too() -> None:
    order = [{"name": name} for name in ("c", "a", "b")]
    patch = {"spec": {"$setElementOrder/containers": order, "containers": [{"name": "c", "image": "c:1"}]}}

    assert [item["name"] for item in merged(POD, patch)["spec"]["containers"]] == ["c", "a", "b"]


def test_only_the_retained_keys_of_a_union_stay() -> None:
    held = {"volumes": [{"name": "v", "emptyDir": {}}]}
    patch = {"volumes": [{"name": "v", "hostPath": {"path": "/x"}, "$retainKeys": ["name", "hostPath"]}]}

    assert merged(held, patch) == {"volumes": [{"name": "v", "hostPath": {"path": "/x"}}]}


names = st.sampled_from(list("abcdef"))
lists = st.dictionaries(names, st.integers(), max_size=5).map(
    lambda items: [{"name": name, "image": str(image)} for name, image in items.items()]
)


@given(lists, lists)
def test_a_patch_twice_is_the_patch_once_and_nothing_given_is_changed(old: Any, new: Any) -> None:
    document, patch = {"containers": old}, {"containers": new}
    before = copy.deepcopy((document, patch))

    once = merged(document, patch)

    assert merged(once, patch) == once
    assert (document, patch) == before
    assert {item["name"] for item in once["containers"]} == {item["name"] for item in [*old, *new]}


@given(lists, st.permutations(list("abcdef")))
def test_any_order_that_names_all_is_the_order(old: Any, order: list[str]) -> None:
    patch = {"$setElementOrder/containers": [{"name": name} for name in order]}

    held = [item["name"] for item in merged({"containers": old}, patch)["containers"]]

    assert held == [name for name in order if name in held]
