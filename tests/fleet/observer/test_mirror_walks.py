"""Whatever a reflector lives through, and whoever dies in between: the rows are the cluster as of the bookmark."""

from dataclasses import dataclass, field

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fleet.models import BookmarkState, Node
from fleet.observer.mirror import known_rows
from fleet.observer.watches.deltas import Changed, Failed, ListBegun, ListPage, Opened
from kube.structs import NodeSeen
from tests.fleet.documents import GPU_LABELS, a_node_seen
from tests.fleet.observer.conftest import Mirror, walked

KIND = "nodes"


@dataclass
class Walk:
    """An API server that remembers everything, and one reflector of it."""

    mirror: Mirror
    log: list[tuple[str, str | None]] = field(default_factory=list)  # a node and its zone; None: deleted
    read_to: int | None = None  # how much of the log; None: it must list

    def cluster_at(self, version: int) -> dict[str, str]:
        last = dict(self.log[:version])
        return {name: zone for name, zone in last.items() if zone is not None}

    def node(self, name: str, version: int) -> NodeSeen:
        zone = dict(self.log[:version])[name] or ""
        return a_node_seen(name, uid=f"uid-of-{name}", labels=GPU_LABELS | {"zone": zone})

    def list(self, *, pages: int, flushes: bool) -> None:
        """Two pages make a whole one; a reflector that is cut off after the first begins again."""
        at = len(self.log)
        nodes = [self.node(name, at) for name in self.cluster_at(at)]
        self.mirror.record_update(ListBegun(KIND))
        self.read_to = None
        for number, page in enumerate((nodes[:1], nodes[1:])[:pages], start=1):
            self.mirror.record_update(ListPage(KIND, tuple(page), str(at), is_last=number == 2))
            if flushes:
                self.mirror.flush()
        if pages == 2:
            self.read_to = at

    def watch(self) -> None:
        if self.read_to is None:
            return
        self.mirror.record_update(Opened(KIND))
        for version in range(self.read_to + 1, len(self.log) + 1):
            name, zone = self.log[version - 1]
            seen = self.node(name, version if zone is not None else version - 1)
            self.mirror.record_update(Changed(KIND, seen, zone is None, str(version)))
        self.read_to = len(self.log)

    def die(self) -> None:
        """Before a flush; who follows goes on from the bookmark."""
        self.mirror.begin()
        known_rows.learn(self.mirror.cluster.pk, self.mirror.deltas.memory)
        version = self.mirror.deltas.cursors[KIND].resource_version
        self.read_to = int(version) if version else None

    def play(self, step: tuple) -> None:
        match step:
            case "change", name, zone if zone is not None or name in self.cluster_at(len(self.log)):
                self.log.append((name, zone))
            case "list", pages, flushes:
                self.list(pages=pages, flushes=flushes)
            case ("watch",):
                self.watch()
            case ("fail",):
                self.mirror.record_update(Failed(KIND, BookmarkState.FAILING, "refused the connection"))
            case ("flush",):
                self.mirror.flush()
            case ("die",):
                self.die()

    def make_sure(self) -> None:
        """Half a list says nothing of what it lacks, so it has no version."""
        if version := self.mirror.bookmark(KIND).resource_version:
            rows = Node.objects.filter(cluster=self.mirror.cluster)
            assert {row.name: row.labels["zone"] for row in rows} == self.cluster_at(int(version))


NAME = st.sampled_from(["gpu-001", "gpu-002", "gpu-003"])
STEP = st.one_of(
    st.tuples(st.just("change"), NAME, st.sampled_from(["a", "b", None])),
    st.tuples(st.just("list"), st.sampled_from([1, 2, 2]), st.sampled_from([False, False, True])),
    *(st.tuples(st.just(step)) for step in ("watch", "fail", "flush", "die")),
)


@pytest.mark.django_db(transaction=False)
@settings(max_examples=40)
@given(steps=st.lists(STEP, max_size=16))
@example(steps=[("list", 2, False), ("change", "gpu-001", "a"), ("flush",)])
@example(steps=[("list", 2, True), ("change", "gpu-002", None), ("list", 2, False), ("change", "gpu-002", "a")])
def test_the_rows_are_the_cluster_as_of_the_bookmark(steps):
    with walked() as mirror:
        walk = Walk(mirror, [("gpu-001", "a"), ("gpu-002", "a")])

        for step in steps:
            walk.play(step)
            walk.make_sure()
        if walk.read_to is None:
            walk.list(pages=2, flushes=False)
        walk.watch()
        walk.mirror.flush(is_last=True)

        assert walk.mirror.bookmark(KIND).resource_version == str(len(walk.log))
        walk.make_sure()
