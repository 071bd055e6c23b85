import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.kube.decoding import decode, decode_list
from fleet.kube.errors import Unreadable
from fleet.kube.resources import CLUSTER_POLICIES, DAEMON_SETS, NODES, NVIDIA_DRIVERS, PODS, REVISIONS
from fleet.kube.structs import ClusterPolicySeen, NodeSeen
from tests.fleet.documents import node_document

KINDS = [NODES, PODS, DAEMON_SETS, REVISIONS, NVIDIA_DRIVERS, CLUSTER_POLICIES]
RUBBISH = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["metadata", "spec", "status", "name", "uid", "labels", "conditions", "containers", "driver"]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)


def a_list(*items: object, version: str = "42", **meta: object) -> bytes:
    return msgspec.json.encode({"metadata": {"resourceVersion": version, **meta}, "items": list(items)})


def test_a_list_says_where_it_ends_and_how_it_goes_on():
    nodes, meta = decode_list(a_list(node_document(), **{"continue": "more"}), NodeSeen)

    assert [node.name for node in nodes] == ["gpu-001"]
    assert (meta.resource_version, meta.continue_) == ("42", "more")


def test_an_unreadable_object_costs_only_itself():
    broken = node_document("broken") | {"status": {"conditions": "none at all"}}

    nodes, _ = decode_list(a_list(node_document("one"), broken, node_document("two")), NodeSeen)

    assert [node.name for node in nodes] == ["one", "two"]


@given(st.lists(RUBBISH, max_size=4), st.sampled_from(KINDS))
def test_rubbish_never_raises(items, kind):
    decode_list(a_list(*items), kind.struct)


def test_an_empty_list_may_be_written_as_null():
    nodes, _ = decode_list(b'{"metadata":{"resourceVersion":"1"},"items":null}', NodeSeen)

    assert nodes == ()


def test_what_is_no_list_says_so():
    with pytest.raises(Unreadable):
        decode_list(b"<html>", NodeSeen)


def test_a_cluster_policys_driver_part_is_found():
    document = {"metadata": {"name": "p", "uid": "u"}, "spec": {"driver": {"useNvidiaDriverCRD": True, "version": "1"}}}

    policy = decode(msgspec.json.encode(document), ClusterPolicySeen)

    assert policy.uses_driver_crd
    assert policy.driver.version == "1"
