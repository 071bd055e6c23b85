"""From the pieces in which a watch comes to events, without a server."""

from itertools import pairwise

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kube.client import watches
from kube.client.errors import Unreadable
from kube.client.watches import Watch
from kube.resources import NODES
from tests.fleet.documents import node_document

NAMES = ["gpu-001", "gpu-002", "gpu-003"]
SENT = b"\n".join([*(msgspec.json.encode({"type": "ADDED", "object": node_document(name)}) for name in NAMES), b"\n"])


class Sent:
    """A connection, and the answer to a watch of it, that comes in these pieces."""

    server = "https://north"
    without_secrets = staticmethod(bytes)

    def __init__(self, *pieces: bytes) -> None:
        self.pieces = pieces

    def open(self, *_, **__) -> "Sent":
        return self

    def stream(self, _: int):
        return iter(self.pieces)

    def close(self) -> None:
        pass


def heard(*pieces: bytes) -> list[str]:
    return [change.object.name for change in Watch(Sent(*pieces), NODES, "7", seconds=30)]


@given(cuts=st.lists(st.integers(0, len(SENT)), max_size=12))
@example(cuts=[SENT.index(b"\n")])
@example(cuts=[SENT.index(b"\n") + 1])
@example(cuts=list(range(0, len(SENT), 3)))
def test_a_watch_is_the_same_whatever_pieces_it_comes_in(cuts):
    ends = sorted({0, len(SENT), *cuts})

    assert heard(*(SENT[begin:end] for begin, end in pairwise(ends))) == NAMES


def test_an_event_of_ten_megabytes_in_pieces_of_a_kilobyte_is_one_event():
    """Joined anew for each piece it took more than a minute, in which nothing else of the kind was heard."""
    body = msgspec.json.encode({"type": "ADDED", "object": node_document(labels={"long": "x" * 10 * 2**20})}) + b"\n"

    assert heard(*(body[at : at + 1024] for at in range(0, len(body), 1024))) == ["gpu-001"]


def test_an_event_that_never_ends_is_given_up(monkeypatch):
    monkeypatch.setattr(watches, "LONGEST_LINE", 4096)

    with pytest.raises(Unreadable, match=r"A watch of nodes sent an event of more than 0 MiB\."):
        heard(*[b"x" * 1024] * 5)
