"""Rollouts that others drive, as pages show them."""

import pytest

from fleet.models import Cluster
from people.models import User
from rollouts.findings.external_rollouts import FAILING, page_of_external_rollout
from rollouts.lifecycle import ExternalRolloutState
from rollouts.models import ExternalGateAnswer
from tests import make
from tests.make import NOON
from tests.pages import HOSTILE, page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]

STATES = ("changed", "changed", "changing", "failed", "released", "held", "excluded")


@pytest.fixture
def cluster() -> Cluster:
    return make.a_fleet("north", mode="follow")


@pytest.fixture
def viewer() -> User:
    return make.a_user("vera", role="viewer")


def fails(rollout) -> ExternalGateAnswer:
    return rollout.answers.create(
        gate="failure_budget", answer="fail", title="gpu-3 failed", summary="The node was deleted.", nodes=["gpu-3"],
        since=NOON, at=NOON,
    )  # fmt: skip


def test_its_page_says_how_far_it_is_and_what_each_gate_says(cluster: Cluster, viewer: User):
    rollout = make.an_external_rollout(cluster, *STATES, driven_by="Helm release gpu-operator/gpu-operator")

    seen = page(visiting(viewer), f"/external-rollouts/{rollout.pk}").text

    assert "NVIDIADriver h200 from 570.172.08 to 580.95.05" in seen
    assert "2 of 6 nodes changed, 1 changing, 1 failed, 1 held, 1 not begun; 1 node gone since" in seen
    assert "driven by Helm release gpu-operator/gpu-operator" in seen
    assert "Driver version wait" in seen
    assert "580.95.05 runs on 1 of 2 nodes" in seen
    assert "not seen before it began" in seen
    assert "Quarterdeck writes nothing here: its mode is follow." in seen


def test_where_a_plan_would_have_halted_stands_there_once_it_is_over(cluster: Cluster, viewer: User):
    rollout = make.an_external_rollout(cluster)
    answer = fails(rollout)
    assert "Failed before" not in page(visiting(viewer), f"/external-rollouts/{rollout.pk}").text
    type(answer).objects.filter(pk=answer.pk).update(is_current=False)

    seen = page(visiting(viewer), f"/external-rollouts/{rollout.pk}").text

    assert "Failed before a plan would have halted" in seen
    assert "gpu-3 failed The node was deleted." in seen
    assert "Quarterdeck would have halted here" not in seen, "which is of now"


def test_one_that_is_over_says_nothing_of_what_may_be_written_since(cluster: Cluster, viewer: User):
    rollout = make.an_external_rollout(cluster, *STATES, state=ExternalRolloutState.GIVEN_UP, ended_at=NOON)
    Cluster.objects.filter(pk=cluster.pk).update(mode="operate")

    seen = [
        page(visiting(viewer), path).text for path in (f"/external-rollouts/{rollout.pk}", f"/clusters/{cluster.pk}")
    ]

    assert all("writes nothing here" not in text and "Read only" not in text for text in seen)


def test_where_a_gate_fails_it_says_that_a_plan_would_have_halted(cluster: Cluster, viewer: User):
    rollout = make.an_external_rollout(cluster, *STATES)
    fails(rollout)

    ((_, wrong),) = FAILING.say(cluster, now=NOON)
    seen = page(visiting(viewer), page_of_external_rollout(wrong.facts)).text
    assert "Quarterdeck would have halted here: gpu-3 failed. The node was deleted." in seen
    assert "failing" in seen
    assert wrong.steps[1] in seen
    assert "gpu-3 failed a gate fails because of it" in seen

    listed = page(visiting(viewer), "/plans").text
    assert "Quarterdeck would have halted here" in listed
    assert "north / h200 failing" in listed


def test_an_upgrade_of_idle_nodes_is_not_shown_to_be_good_and_says_what_would_show_it(cluster: Cluster, viewer: User):
    rollout = make.an_external_rollout(cluster, "changed")
    nothing = {"title": "Nothing has tested the driver on gpu-1", "nodes": ["gpu-1"], "since": NOON, "at": NOON}
    rollout.answers.all().delete()
    rollout.answers.create(gate="workloads_ready", answer="wait", cause="untested", **nothing)

    seen, listed = (page(visiting(viewer), place).text for place in (f"/external-rollouts/{rollout.pk}", "/plans"))

    assert "not shown" in seen
    assert "A Ready GPU pod of a tenant on each of these nodes is the proof" in seen
    assert "north / h200 not shown" in listed
    assert "Nothing has tested the driver on gpu-1." in listed


def test_it_is_listed_with_the_plans_and_on_the_page_of_its_cluster(cluster: Cluster, viewer: User):
    make.an_external_rollout(cluster)
    make.an_external_rollout(cluster, state="replaced", reason="The object requests 1.2.3 now.", ended_at=NOON)
    make.an_external_rollout(cluster, object_uid="other", object_name="l40s", state=ExternalRolloutState.STANDING)

    for place in ("/plans", f"/clusters/{cluster.pk}"):
        seen = page(visiting(viewer), place).text
        assert "north / h200 rolling" in seen
        assert "1 of 2" in seen
        assert "The object requests 1.2.3 now." in seen
        assert "l40s" not in seen  # it stands: there is nothing to tell of it


def test_a_cluster_that_is_followed_says_so_before_anything_happens(cluster: Cluster, viewer: User):
    assert "No rollout of a driver was seen here yet." in page(visiting(viewer), f"/clusters/{cluster.pk}").text

    Cluster.objects.update(mode="operate")
    assert "External rollouts" not in page(visiting(viewer), f"/clusters/{cluster.pk}").text
    assert "External rollouts" not in page(visiting(viewer), "/plans").text


def test_who_may_not_see_the_whole_cluster_sees_none_of_it(cluster: Cluster):
    rollout = make.an_external_rollout(cluster)
    of_a_pool = make.a_user("pia", role="viewer", on=cluster.pools.get())

    for place in (f"/external-rollouts/{rollout.pk}", f"/parts/external-rollouts/{rollout.pk}"):
        assert visiting(of_a_pool).get(place).status_code == 404
    for place in ("/plans", f"/clusters/{cluster.pk}"):
        assert "580.95.05" not in page(visiting(of_a_pool), place).text


def test_what_only_stands_has_no_page(cluster: Cluster, viewer: User):
    rollout = make.an_external_rollout(cluster, state=ExternalRolloutState.STANDING)
    assert visiting(viewer).get(f"/external-rollouts/{rollout.pk}").status_code == 404


def test_nodes_are_in_pages_of_a_hundred_and_those_to_look_at_come_first(cluster: Cluster, viewer: User):
    rollout = make.an_external_rollout(cluster, *(["changed"] * 120), "failed")

    first = page(visiting(viewer), f"/external-rollouts/{rollout.pk}").text
    assert "gpu-120 failed" in first
    assert "page 1 of 2" in first
    assert "page 2 of 2" in page(visiting(viewer), f"/external-rollouts/{rollout.pk}?page=2").text


def test_what_a_cluster_says_is_text(cluster: Cluster, viewer: User):
    rollout = make.an_external_rollout(cluster, driven_by=HOSTILE, object_name=HOSTILE, reason=HOSTILE)
    rollout.answers.all().delete()

    for place in (f"/external-rollouts/{rollout.pk}", "/plans", f"/clusters/{cluster.pk}"):
        assert HOSTILE not in visiting(viewer).get(place).content.decode()


def test_failed_nodes_of_another_rollout_name_what_they_share(viewer: User):
    cluster = make.a_cluster("north", mode="follow")
    rollout = make.an_external_rollout(cluster, *(("failed",) * 4 + ("changed",) * 8))
    for node in rollout.nodes.all():
        kernel = "6.8.0-64-generic" if node.state == "failed" else "5.15.0-151-generic"
        make.a_node(cluster, node.node_name, kernel=kernel)

    seen = page(visiting(viewer), f"/external-rollouts/{rollout.pk}").text

    assert "Suspects Probable cause: kernel" in seen
    assert "4 of 4 0 of 8" in seen
    assert "Properties are those of the nodes now." in seen
