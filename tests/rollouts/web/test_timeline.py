from datetime import timedelta

import pytest

from fleet.models import GoneNode
from rollouts.models import Target
from tests import make
from tests.make import NOON
from tests.pages import page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]


def test_shows_what_was_seen_and_what_plans_did_in_one_line_of_time():
    plan = make.a_plan()
    target = Target.objects.filter(stage__plan=plan).first()
    node = plan.cluster.nodes.get(uid=target.node_uid)
    make.a_node_event(node, "The driver is 570.172.08.", at=NOON - timedelta(hours=1))
    target.move("excluded", now=NOON, actor="ada", reason="In repair.")

    seen = page(visiting(make.a_user(role="viewer")), f"/parts/nodes/{node.pk}/timeline")

    assert seen.text.index("In repair.") < seen.text.index("The driver is 570.172.08.")
    assert f"/plans/{plan.pk}" in seen.links


def test_a_plan_that_is_rolled_back_is_told_of_each_of_its_nodes_and_of_no_other():
    plan = make.a_plan()
    target = Target.objects.filter(stage__plan=plan).first()
    node = plan.cluster.nodes.get(uid=target.node_uid)
    other = make.a_node(plan.cluster, "gpu-elsewhere")
    plan.move("halted", now=NOON, actor="ada", reason="Too hot.")
    plan.move("rolling-back", now=NOON, actor="ada", reason="Still too hot.")
    viewer = visiting(make.a_user(role="viewer"))

    seen = page(viewer, f"/parts/nodes/{node.pk}/timeline")

    assert f"{plan.title}: whole plan halted. Too hot." in seen.text
    assert f"{plan.title}: whole plan rolling back. Still too hot." in seen.text
    assert f"/plans/{plan.pk}" in seen.links
    assert "too hot" not in page(viewer, f"/parts/nodes/{other.pk}/timeline").text


def test_a_halt_by_the_engine_is_told_of_the_nodes_that_it_names_or_that_failed():
    plan = make.a_plan()
    named, failed, other = Target.objects.filter(stage__plan=plan)[:3]
    failed.move("changing", now=NOON, actor="engine", reason="")
    failed.move("failed", now=NOON, actor="engine", reason="Its driver pod crashes.")
    plan.move("halted", now=NOON, actor="engine", reason=f"{named.node_name} is not ready.")
    viewer = visiting(make.a_user(role="viewer"))

    def tells(target: Target) -> bool:
        node = plan.cluster.nodes.get(uid=target.node_uid)
        return "is not ready" in page(viewer, f"/parts/nodes/{node.pk}/timeline").text

    assert [tells(target) for target in (named, failed, other)] == [True, True, False]


def test_plots_of_a_node_its_gpu_and_its_finding_have_what_plans_did_as_marks_for_who_sees_the_plan():
    plan = make.a_plan()
    target = Target.objects.filter(stage__plan=plan).first()
    node = plan.cluster.nodes.get(uid=target.node_uid)
    finding = make.a_finding(plan.cluster, "GPU 0", node=node, rule="gpu-hot")
    target.move("excluded", now=NOON, actor="ada", reason="In repair.")
    plan.move("halted", now=NOON, actor="ada", reason="3 nodes are unhealthy.")
    of_pool = make.a_user(role="viewer", on=node.pools.get())
    places = (
        f"/api/v1/nodes/{node.pk}/telemetry/history", f"/api/v1/nodes/{node.pk}/gpus/0/telemetry/history",
        f"/api/v1/findings/{finding.pk}/telemetry",
    )  # fmt: skip

    for place in places:
        seen = visiting(make.a_user(role="viewer")).get(place).json()["marks"]
        unseen = visiting(of_pool).get(place).json()["marks"]

        told = {(mark["sentence"], mark["href"]) for mark in seen if mark["kind"] == "plan"}
        assert told == {
            (f"{plan.title}: excluded. In repair.", f"/plans/{plan.pk}"),
            (f"{plan.title}: whole plan halted. 3 nodes are unhealthy.", f"/plans/{plan.pk}"),
        }
        assert [mark for mark in unseen if mark["kind"] == "plan"] == []


def test_a_node_that_is_gone_keeps_what_plans_did_to_it():
    plan = make.a_plan()
    target = Target.objects.filter(stage__plan=plan).first()
    node = plan.cluster.nodes.get(uid=target.node_uid)
    target.move("excluded", now=NOON, actor="engine", reason="It left the cluster.")
    GoneNode.objects.create(node_id=node.pk, cluster=plan.cluster, uid=node.uid, name=node.name, gone_at=NOON)
    pk = node.pk
    node.delete()

    assert "It left the cluster." in page(visiting(make.a_user(role="viewer")), f"/parts/nodes/{pk}/timeline").text
    page(visiting(make.a_user()), f"/parts/nodes/{pk}/timeline", status=404)


def test_who_sees_only_the_pool_sees_no_plan_on_it():
    plan = make.a_plan()
    target = Target.objects.filter(stage__plan=plan).first()
    node = plan.cluster.nodes.get(uid=target.node_uid)
    target.move("excluded", now=NOON, actor="ada", reason="In repair.")
    viewer = visiting(make.a_user(role="viewer", on=node.pools.get()))

    assert "In repair." not in page(viewer, f"/parts/nodes/{node.pk}/timeline").text
