"""Whatever an API server says an object or a list is known by: it costs that, a sentence, and nothing beside it."""

from copy import deepcopy

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fleet.models import Node
from fleet.observer.mirror.kinds import KINDS
from fleet.observer.watches.deltas import Changed, ListBegun, ListPage, Opened
from kube.client.decoder import decode_list
from kube.client.errors import ClusterError, Unreadable
from kube.client.watches import read_event
from kube.structs import NodeSeen
from tests.fleet.documents import node_document
from tests.fleet.observer.conftest import Mirror, walked
from tests.fleet.observer.mirror.rows.test_rows_fit import EVERYTHING, META, NAMED, documents_of

pytestmark = pytest.mark.sqlite

SPOKEN = st.sampled_from(["", "7", NAMED, "a\0b", "\0", "x" * 64, "x" * 65, "x" * 400, "é" * 64, "\U0001f600", "²"])
TYPES = st.sampled_from(["ADDED", "MODIFIED", "DELETED", "BOOKMARK"])
METADATA = st.fixed_dictionaries(
    {"name": SPOKEN, "uid": SPOKEN},
    optional={"resourceVersion": SPOKEN, "namespace": SPOKEN, "labels": st.dictionaries(SPOKEN, SPOKEN, max_size=2)},
)
GOOD = META | {"name": "good", "uid": "uid-of-good"}


def a_list(*items: object, version: str = "1") -> bytes:
    return msgspec.json.encode({"metadata": {"resourceVersion": version}, "items": list(items)})


def an_event(what: str, document: object) -> bytes:
    return msgspec.json.encode({"type": what, "object": document})


class Answers:
    """What a reflector makes of the bytes of a list and of a watch."""

    def __init__(self, mirror: Mirror, kind: str) -> None:
        self.mirror, self.kind, self.resource = mirror, kind, KINDS[kind].resource
        mirror.deltas.scope = deepcopy(EVERYTHING)

    def list(self, body: bytes) -> None:
        try:
            found = decode_list(body, self.resource.struct)
        except Unreadable:
            return
        page = ListPage(self.kind, found.items, found.meta.resource_version, True, found.unread)
        self.mirror.record_update(ListBegun(self.kind), page)
        self.mirror.flush()
        self.mirror.record_update(Opened(self.kind))

    def watch(self, *lines: bytes) -> None:
        for line in lines:
            try:
                change = read_event(line, self.resource)
            except ClusterError:
                continue
            self.mirror.record_update(
                Changed(self.kind, change.object, change.is_removed, change.resource_version, change.unread)
            )
        self.mirror.flush()

    def has(self, uid: str) -> bool:
        """Whether there is a row of it, where its kind has one of such an object."""
        (seen,) = decode_list(a_list({"metadata": GOOD}), self.resource.struct).items
        parts = [part for part in KINDS[self.kind].parts if part.row(seen, EVERYTHING) is not None]
        return not parts or parts[0].rows_of(self.mirror.cluster.pk).filter(uid=uid).exists()


@pytest.mark.django_db(transaction=False)
@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=8, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_what_is_known_by_rubbish_costs_only_itself(name, data):
    bad = [data.draw(documents_of(KINDS[name])) | {"metadata": data.draw(METADATA)} for _ in range(2)]
    version = data.draw(SPOKEN)
    with walked() as mirror:
        answers = Answers(mirror, name)
        answers.list(a_list(*bad, {"metadata": GOOD}, version=version))
        answers.list(a_list(*bad, {"metadata": GOOD}))
        answers.watch(*(an_event(data.draw(TYPES), each) for each in bad))
        mirror.flush(is_last=True)

        bookmark = mirror.bookmark(name)
        assert (bookmark.state, bookmark.listed_at) == ("watching", mirror.now)
        assert not [
            said for said in bookmark.unread.values() if "database" in said["reason"] or "stumbles" in said["reason"]
        ]
        assert answers.has(GOOD["uid"])


@pytest.mark.parametrize("uid", ["a\0b", "x" * 65])
def test_an_object_whose_uid_no_database_takes_is_named_and_the_others_are_there(mirror, uid):
    """Its lease ended with it, and each one after."""
    answers = Answers(mirror, "nodes")

    answers.list(a_list(node_document("b\0d", uid=uid), node_document("good")))
    answers.watch(an_event("DELETED", node_document("b\0d", uid=uid)))

    assert list(Node.objects.values_list("name", flat=True)) == ["good"]
    assert mirror.bookmark("nodes").state == "watching"


@pytest.mark.parametrize("version", ["a\0b", "x" * 65])
def test_how_far_a_list_has_come_is_kept_whole_or_not_at_all(mirror, version):
    answers = Answers(mirror, "nodes")
    with pytest.raises(Unreadable, match=r"metadata\.resourceVersion"):
        decode_list(a_list(version=version), NodeSeen)

    answers.list(a_list(node_document(), version="7"))
    bookmark = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": version}}}
    answers.watch(
        msgspec.json.encode(bookmark),
        msgspec.json.encode({"type": "MODIFIED", "object": node_document(version=version)}),
    )

    assert mirror.bookmark("nodes").listed_at is not None
    assert [said["name"] for said in mirror.bookmark("nodes").unread.values()] == ["gpu-001"]
    assert Node.objects.get().resource_version == "7"
