import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.client.decoder import decode, decode_list
from kube.client.errors import Unreadable
from kube.client.list_splitter import split_list
from kube.resources import CLUSTER_POLICIES, DAEMON_SETS, NODES, NVIDIA_DRIVERS, PODS, REVISIONS
from kube.structs import ClusterPolicySeen, NodeSeen
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
    listed = decode_list(a_list(node_document(), **{"continue": "more"}), NodeSeen)

    assert [node.name for node in listed.items] == ["gpu-001"]
    assert (listed.meta.resource_version, listed.meta.continue_) == ("42", "more")


def test_an_unreadable_object_costs_only_itself():
    broken = node_document("broken") | {"status": {"conditions": "none at all"}}

    listed = decode_list(a_list(node_document("one"), broken, node_document("two")), NodeSeen)

    assert [node.name for node in listed.items] == ["one", "two"]
    assert [(one.uid, one.name) for one in listed.unread] == [("uid-of-broken", "broken")]
    assert "Expected `array | null`" in listed.unread[0].reason


@pytest.mark.parametrize(
    "rotten",
    [
        b'{"metadata":{"name":"rotten\xff","uid":"u"}}',
        rb'{"metadata":{"name":"half a surrogate \ud800","uid":"u"}}',
        b'{"metadata":{"name":"rotten","uid":"u"},"spec":' + b"[" * 5000 + b"]" * 5000 + b"}",
        b'{"metadata":{"name":"rotten","uid":"u","generation":01}}',
        b'{"metadata":{"name":"rotten","uid":"u","generation":1e400}}',
        b'{"metadata":{"name":"rotten","uid":"u","creationTimestamp":"0000-00-00T00:00:00Z"}}',
        b'{"metadata":{"name":"rotten","uid":"u","labels":["a"]}}',
        b'{"metadata":{"name":"rotten","uid":"u"},"status":null}',
        b'{"metadata":{"name":"rotten","uid":7}}',
        b'{"metadata":null}',
        b"[]",
        b"null",
    ],
)
def test_whatever_is_wrong_with_one_the_others_are_read(rotten):
    fine = msgspec.json.encode(node_document("fine"))
    body = b'{"metadata":{"resourceVersion":"42"},"items":[' + fine + b"," + rotten + b"," + fine + b"]}"

    listed = decode_list(body, NodeSeen)

    assert [node.name for node in listed.items] == ["fine", "fine"]
    assert len(listed.unread) == 1
    assert listed.meta.resource_version == "42"


@given(st.lists(RUBBISH, max_size=5), st.booleans())
def test_brackets_alone_cut_a_list_as_a_parser_does(items, is_spread):
    body = a_list(*items, note='"items":[')
    body = msgspec.json.format(body, indent=2) if is_spread else body

    split = split_list(body)

    assert [msgspec.json.decode(item) for item in split.items] == items
    assert msgspec.json.decode(split.rest)["items"] == []


@given(st.lists(RUBBISH, max_size=4), st.sampled_from(KINDS))
def test_rubbish_never_raises(items, kind):
    decode_list(a_list(*items), kind.struct)


def test_an_empty_list_may_be_written_as_null():
    listed = decode_list(b'{"metadata":{"resourceVersion":"1"},"items":null}', NodeSeen)

    assert listed.items == ()


def test_what_is_no_list_says_so():
    for body in (b"<html>", b'{"items":[{"a":1}', b'{"items":[01]'):
        with pytest.raises(Unreadable):
            decode_list(body, NodeSeen)


def test_a_cluster_policys_driver_part_is_found():
    document = {"metadata": {"name": "p", "uid": "u"}, "spec": {"driver": {"useNvidiaDriverCRD": True, "version": "1"}}}

    policy = decode(msgspec.json.encode(document), ClusterPolicySeen)

    assert policy.uses_driver_crd
    assert policy.driver.version == "1"
