"""The hours of GPUs that the gate on slow drift compares."""

from datetime import timedelta

import pytest

from health.models import GpuHour
from health.sources.hours import provide_partition
from rollouts.engine import hours
from rollouts.engine.hours import read_hours
from rollouts.models import Stage, Target
from tests import make
from tests.make import NOON

pytestmark = pytest.mark.django_db


@pytest.fixture
def stage():
    stage = make.a_stage_to_approve()
    released = {"at": (NOON - timedelta(hours=2)).isoformat()}
    stage.targets.update(state="changed", state_since=NOON - timedelta(hours=1), baseline=released)
    Stage.objects.filter(pk=stage.pk).update(gate_options={"drift": {}})
    return Stage.objects.get(pk=stage.pk)


def an_hour(node, uuid: str, hours_ago: int, **given) -> None:
    at = NOON - timedelta(hours=hours_ago)
    provide_partition(at)
    GpuHour.objects.create(
        cluster=node.cluster, uuid=uuid, hour=at, node_name=node.name, **{"seen_s": 3600, "utilisation": 0.5} | given
    )


def test_an_hour_is_the_mean_of_whole_hours_of_the_boards_of_a_node(stage, django_assert_num_queries):
    nodes = {node.uid: node for node in stage.plan.cluster.nodes.all()}
    node = nodes[stage.targets.get().node_uid]
    for uuid, warm in (("GPU-0", 60.0), ("GPU-1", 70.0)):
        an_hour(node, uuid, 3, temperature=warm, ecc_corrected=4.0)
    an_hour(node, "GPU-2", 3, temperature=99.0, seen_s=60)
    an_hour(node, "GPU-3", 3, gi_id="1", temperature=99.0)
    an_hour(node, "GPU-0", 30, temperature=99.0)

    stages = [Stage.objects.prefetch_related("targets").get(pk=stage.pk)]
    with django_assert_num_queries(2):
        found = read_hours(stage.plan, stages, nodes, now=NOON)[stage.pk]

    (hour,) = found.changed[node.name]
    assert (hour.begins_at, hour.load) == (NOON - timedelta(hours=3), 0.5)
    assert hour.values == {"temperature": 65.0, "ecc_corrected": 4.0}
    assert node.name not in found.peers
    assert found.peers
    with django_assert_num_queries(1):  # the hours of this minute are known
        read_hours(stage.plan, stages, nodes, now=NOON)


def with_a_later_node(stage):
    """The other node of the stage was released nine days ago, this one two hours ago."""
    nodes = {node.uid: node for node in stage.plan.cluster.nodes.all()}
    later = next(node for node in nodes.values() if node.uid != stage.targets.get().node_uid)
    stage.targets.update(baseline={"at": (NOON - timedelta(days=9)).isoformat()})
    given = {"state": "changed", "state_since": NOON, "baseline": {"at": (NOON - timedelta(hours=2)).isoformat()}}
    Target.objects.filter(node_uid=later.uid).delete()
    Target.objects.create(stage=stage, node_uid=later.uid, node_name=later.name, position=1, **given)
    return later, [Stage.objects.prefetch_related("targets").get(pk=stage.pk)], nodes


def test_a_node_that_changes_days_after_the_first_one_has_hours_too(stage):
    later, stages, nodes = with_a_later_node(stage)
    an_hour(later, "GPU-0", 1, temperature=60.0)

    assert len(read_hours(stage.plan, stages, nodes, now=NOON)[stage.pk].changed[later.name]) == 1


def test_nodes_beyond_the_limit_are_named(stage, monkeypatch):
    monkeypatch.setattr(hours, "MOST_NODES", 1)
    later, stages, nodes = with_a_later_node(stage)

    assert read_hours(stage.plan, stages, nodes, now=NOON)[stage.pk].left_out == {later.name}


def test_a_stage_without_the_gate_costs_no_query(stage, django_assert_num_queries):
    Stage.objects.filter(pk=stage.pk).update(gate_options={})
    stages, plan = [Stage.objects.prefetch_related("targets").get(pk=stage.pk)], stage.plan

    with django_assert_num_queries(0):
        assert read_hours(plan, stages, {}, now=NOON) == {}
