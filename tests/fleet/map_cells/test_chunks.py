from base64 import b64decode

import pytest
from django.db import transaction

from fleet.allocation.counters import count_written_nodes, recount
from fleet.map_cells import chunks
from fleet.map_cells.cell import CRITICAL
from fleet.models import MapChunk, Node
from fleet.states.node import NodeState
from tests import make
from tests.make import NOON

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite]


@pytest.fixture
def cluster():
    return make.a_cluster()


def keys() -> list[int]:
    return [key for chunk in MapChunk.objects.all() for key in chunks.keys_of(chunk)]


def test_a_node_is_drawn_by_whoever_writes_it(cluster):
    node = make.a_node(cluster)
    recount(cluster.pk)

    with count_written_nodes(cluster.pk, [node.pk]):
        Node.objects.update(is_ready=False)

    (drawn,) = chunks.columns_of(MapChunk.objects.get()).nodes()
    assert drawn.state == NodeState.NOT_READY
    assert chunks.draw_all(cluster.pk) == 0


def test_a_node_that_is_gone_or_lost_its_gpus_is_on_no_piece(cluster):
    gone, plain, stays = (make.a_node(cluster) for _ in range(3))
    recount(cluster.pk)

    with count_written_nodes(cluster.pk, [gone.pk, plain.pk]):
        Node.objects.filter(pk=gone.pk).delete()
        Node.objects.filter(pk=plain.pk).update(is_gpu_node=False)

    assert keys() == [stays.pk]


def test_a_piece_without_nodes_is_no_row(cluster):
    make.a_node(cluster)
    recount(cluster.pk)

    Node.objects.all().delete()

    assert chunks.draw_all(cluster.pk) == 1
    assert not MapChunk.objects.exists()


def test_nodes_of_two_clusters_are_on_pieces_of_their_own(cluster):
    make.a_node(cluster)
    make.a_node(make.a_cluster())
    make.counted()

    assert sorted(MapChunk.objects.values_list("cluster_id", flat=True)) == sorted(
        Node.objects.values_list("cluster_id", flat=True)
    )


def test_only_the_piece_that_changed_is_written(cluster, monkeypatch, django_assert_num_queries):
    monkeypatch.setattr(chunks, "NODES", 2)
    nodes = [make.a_node(cluster) for _ in range(6)]
    recount(cluster.pk)
    assert MapChunk.objects.count() >= 3

    with django_assert_num_queries(3):
        chunks.draw(cluster.pk, [nodes[0].pk])
    Node.objects.filter(pk=nodes[0].pk).update(gpu_allocated=5)
    with django_assert_num_queries(4):
        chunks.draw(cluster.pk, [nodes[0].pk])

    assert chunks.draw_all(cluster.pk) == 0


def test_more_than_a_few_are_read_as_a_whole(cluster, monkeypatch):
    monkeypatch.setattr(chunks, "TOO_MANY", 1)
    nodes = [make.a_node(cluster) for _ in range(3)]

    chunks.draw(cluster.pk, [node.pk for node in nodes[:2]])

    assert keys() == [node.pk for node in nodes]


@pytest.mark.parametrize(
    "change",
    [
        {"driver_version": "580.95.05"},
        {"driver_unknown_since": NOON},
        {"zone": "b"},
        {"name": "other"},
        {"gpu_product": "NVIDIA-B200"},
    ],
)
def test_a_mark_is_another_where_the_node_is_found_by_another_name(cluster, change):
    node = make.a_node(cluster)
    recount(cluster.pk)
    before = bytes(MapChunk.objects.get().marks)

    Node.objects.filter(pk=node.pk).update(is_held=True, gpu_allocated=3)
    chunks.draw(cluster.pk, [node.pk])
    assert bytes(MapChunk.objects.get().marks) == before
    Node.objects.filter(pk=node.pk).update(**change)
    chunks.draw(cluster.pk, [node.pk])

    assert bytes(MapChunk.objects.get().marks) != before


def test_a_message_has_the_cells_of_nodes_with_gpus(cluster):
    node = make.a_node(cluster, gpu_allocated=3)
    plain = make.a_node(cluster, is_gpu_node=False)

    messages = {pk: rest for pk, *rest in chunks.node_messages(Node.objects.all())}

    assert messages[plain.pk] == [NodeState.READY]
    code, text = messages[node.pk]
    assert (code, b64decode(text)) == (NodeState.READY, bytes([NodeState.READY, 8, *[0x10] * 3, *[0] * 5]))


def test_a_node_with_a_critical_finding_says_so_on_its_piece_and_in_a_message(cluster):
    sick, warned = make.a_node(cluster, unresolved=2, critical=1), make.a_node(cluster, unresolved=2)
    recount(cluster.pk)

    drawn = [node.state for node in chunks.columns_of(MapChunk.objects.get()).nodes()]
    messages = {pk: b64decode(text)[0] for pk, _, text in chunks.node_messages(Node.objects.all())}

    assert drawn == [NodeState.HAS_FINDINGS | CRITICAL, NodeState.HAS_FINDINGS]
    assert messages == {sick.pk: drawn[0], warned.pk: drawn[1]}


def test_a_write_that_fails_leaves_the_pieces_as_they_were(cluster):
    node = make.a_node(cluster)
    recount(cluster.pk)

    def fail() -> None:
        with transaction.atomic(), count_written_nodes(cluster.pk, [node.pk]):
            Node.objects.update(is_ready=False)
            chunks.draw(cluster.pk, [node.pk])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()

    assert chunks.draw_all(cluster.pk) == 0
