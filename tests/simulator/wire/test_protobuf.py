"""Kubernetes' protobuf envelope: any bytes are read or refused, never more."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.wire import protobuf

# kubectl 1.33's `create configmap a --from-literal=k=v`, as it went over the wire.
CONFIG_MAP = (
    b'k8s\x00\n\x0f\n\x02v1\x12\tConfigMap\x12\x1b\n\x11\n\x01a\x12\x00\x1a\x00"\x00*\x002\x008\x00B\x00'
    b'\x12\x06\n\x01k\x12\x01v\x1a\x00"\x00'
)


def test_an_object_is_read_without_its_empty_members() -> None:
    assert protobuf.decode(CONFIG_MAP) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a", "generation": 0},
        "data": {"k": "v"},
    }


def test_a_kind_without_a_message_is_refused() -> None:
    with pytest.raises(protobuf.ProtobufError, match="no message is known for Pod"):
        protobuf.decode(b"k8s\x00\n\x09\n\x02v1\x12\x03Pod")


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    with contextlib.suppress(protobuf.ProtobufError):
        protobuf.decode(b"k8s\x00" + body)
    with pytest.raises(protobuf.ProtobufError):
        protobuf.decode(b"{" + body)
