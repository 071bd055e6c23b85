"""How the operator empties a node: read from its policy as it reads it."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu.evictions import Deletion, EvictionPolicy, Hindrance, is_evicted, read_policy

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=5,
)
PARTS = ("podDeletion", "drain", "waitForCompletion")
FIELDS = ("force", "deleteEmptyDir", "timeoutSeconds", "enable", "podSelector")


def test_what_is_not_said_is_as_the_operator_has_it_by_itself():
    assert read_policy({}) == EvictionPolicy(Deletion(tries_for=timedelta(minutes=5)), drain=None)


def test_a_drain_counts_only_where_it_is_enabled():
    drain = {"force": True, "deleteEmptyDir": True, "timeoutSeconds": 0, "podSelector": "a=b"}

    assert read_policy({"drain": drain}).drain is None
    assert read_policy({"drain": {**drain, "enable": True}}).drain == Deletion(
        is_forced=True, deletes_empty_dir=True, tries_for=timedelta(0), pod_selector="a=b"
    )


def test_waiting_has_no_end_unless_one_is_said():
    assert read_policy({"waitForCompletion": {"podSelector": "job=yes"}}).waits_at_most == timedelta(0)


@given(st.dictionaries(st.sampled_from(PARTS), ANYTHING | st.dictionaries(st.sampled_from(FIELDS), ANYTHING)))
def test_whatever_a_policy_holds_is_read(given):
    policy = read_policy(given)

    assert policy.pods.tries_for >= timedelta(0)
    assert policy.pods.is_forced in {True, False}


@pytest.mark.parametrize(
    ("resource", "expected"),
    [("nvidia.com/gpu", True), ("nvidia.com/gpu.shared", True), ("nvidia.com/mig-1g.10gb", True),
     ("volcano.sh/vgpu-number", False), ("nvidia.com/hostdev", False), ("amd.com/gpu", False)],
)  # fmt: skip
def test_pods_are_evicted_by_the_names_of_what_they_request(resource, expected):
    assert is_evicted([resource]) is expected


@pytest.mark.parametrize(
    ("owner", "keeps", "deletion", "expected"),
    [
        ("ReplicaSet", False, Deletion(), ()),
        ("DaemonSet", True, Deletion(is_forced=True, deletes_empty_dir=True), (Hindrance.DAEMON_SET,)),
        ("ReplicaSet", True, Deletion(), (Hindrance.EMPTY_DIR,)),
        ("ReplicaSet", True, Deletion(deletes_empty_dir=True), ()),
        ("", False, Deletion(), (Hindrance.NO_CONTROLLER,)),
        ("", True, Deletion(), (Hindrance.EMPTY_DIR, Hindrance.NO_CONTROLLER)),
        ("", True, Deletion(is_forced=True, deletes_empty_dir=True), ()),
    ],
)
def test_a_pod_is_refused_as_kubectl_refuses_it(owner, keeps, deletion, expected):
    assert deletion.hindrances(owner_kind=owner, has_empty_dir=keeps) == expected
