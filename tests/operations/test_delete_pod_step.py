"""One pod past one named budget: approved by another person, named by its UID, and never past a second budget (Z12)."""

from typing import Any

import pytest

from fleet.models import Node
from kube import client
from operations import commands
from operations.lifecycle import NodeProgress, OperationState
from operations.models import Operation
from operations.refusals import BadOperation
from operations.steps import delete_pod
from people.models import AuditEntry
from people.rights import NotAllowed
from simulator.kinds import DISRUPTION_BUDGET, NAMESPACE
from tests.make import a_user
from tests.operations.test_rounds import a_budget, a_pod, begin, node, pods, rounds, terminating
from tests.pages import page, visiting
from tests.rollouts.engine.ground import CANARY, Ground

pytestmark = pytest.mark.django_db


def blocked(ground: Ground) -> Operation:
    """A drain that failed on one pod."""
    a_pod(ground, "web-1")
    a_budget(ground)
    operation = rounds(ground, begin(ground, "drain", CANARY, options={"deadline_s": 60}), 4)
    assert node(operation).state == NodeProgress.FAILED
    return operation


def named(drain: Operation, **given: str) -> dict[str, str]:
    (row,) = [pod for pod in node(drain).progress["pods"] if pod.get("budget")]
    return {"pod": row["name"], "pod_uid": row["uid"], "budget": row["budget"]} | given


def approved(ground: Ground, options: dict[str, Any]) -> Operation:
    operation = begin(ground, "delete-pod", CANARY, options=options)
    assert operation.state == OperationState.PROPOSED
    commands.approve(operation, actor="ben", reason="The owner agreed.", now=ground.clock())
    return operation


def evicted(ground: Ground) -> list[str]:
    return [each["name"] for each in terminating(ground) if each["namespace"] == "team-a"]


def test_a_pod_goes_past_its_budget_after_another_person_approved_it(ground: Ground):
    drain = blocked(ground)
    operation = begin(ground, "delete-pod", CANARY, options=named(drain))
    rounds(ground, operation)
    assert (operation.state, evicted(ground)) == (OperationState.PROPOSED, [])
    with pytest.raises(NotAllowed):
        commands.approve(operation, actor="ada", reason="Mine.", now=ground.clock())
    commands.approve(operation, actor="ben", reason="The owner agreed.", now=ground.clock())
    operation = rounds(ground, operation)

    assert evicted(ground) == ["web-1"]
    assert node(operation).reason in (
        "team-a/web-1 is deleted past budget web, within its grace period.", "team-a/web-1 is ending.",
    )  # fmt: skip
    (entry,) = AuditEntry.objects.filter(verb="operation.delete-pod")
    assert (entry.evidence["pod"], entry.evidence["budget"]) == ("team-a/web-1", "web")
    (asked,) = [one for one in ground.simulation.log.since(0) if one["method"] == "DELETE" and "/pods/" in one["path"]]
    assert asked["body"]["preconditions"] == {"uid": named(drain)["pod_uid"]}
    assert "gracePeriodSeconds" not in asked["body"]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"budget": "other"}, "the approval covers budget other only"),
        ({"pod": "team-a/web-2"}, "The pod with this UID is team-a/web-1, not team-a/web-2."),
        ({"pod_uid": "uid-of-another"}, "team-a/web-1 is gone."),
    ],
)
def test_nothing_else_than_the_named_pod_and_budget_is_deleted(ground: Ground, change: dict[str, str], why: str):
    operation = rounds(ground, approved(ground, named(blocked(ground), **change)))

    assert why in node(operation).reason
    assert (evicted(ground), pods(ground)) == ([], ["web-1"])


def test_a_second_budget_keeps_the_pod(ground: Ground):
    operation = approved(ground, named(blocked(ground)))
    a_budget(ground, "second")
    operation = rounds(ground, operation)

    assert "more than one PodDisruptionBudget" in node(operation).reason
    assert evicted(ground) == []


def test_a_budget_that_allows_it_by_now_is_not_passed(ground: Ground):
    operation = approved(ground, named(blocked(ground)))
    ground.store.delete(DISRUPTION_BUDGET, "web", "team-a", grace_s=0)
    rounds(ground, operation)

    assert evicted(ground) == ["web-1"]
    assert not AuditEntry.objects.filter(verb="operation.delete-pod").exists()


def test_a_stop_between_the_dry_run_and_the_deletion_keeps_the_pod(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    """The guard loses here."""
    operation = approved(ground, named(blocked(ground)))
    ask = delete_pod.ask_eviction

    def ask_and_cancel(*args: Any, **kwargs: Any):
        answer = ask(*args, **kwargs)
        commands.cancel(Operation.objects.get(pk=operation.pk), actor="ben", reason="No.", now=ground.clock())
        return answer

    monkeypatch.setattr(delete_pod, "ask_eviction", ask_and_cancel)
    rounds(ground, operation)

    assert evicted(ground) == []


def test_the_deletion_is_in_the_audit_even_if_its_answer_is_lost(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    """A worker that dies after the request leaves the same."""
    operation = approved(ground, named(blocked(ground)))
    delete = client.delete_pod

    def delete_unanswered(*args: Any, **kwargs: Any) -> None:
        delete(*args, **kwargs)
        raise client.Unreachable("The API server did not answer.")

    monkeypatch.setattr(client, "delete_pod", delete_unanswered)
    rounds(ground, operation)

    assert evicted(ground) == ["web-1"]
    assert AuditEntry.objects.filter(verb="operation.delete-pod", evidence__pod="team-a/web-1").count() == 1


@pytest.mark.parametrize(
    ("refusal", "why"),
    [
        (client.Forbidden("pods is forbidden"), f"{delete_pod.RIGHT} pods is forbidden"),
        (client.Refused("A webhook denied it."), "team-a/web-1 is not deleted: A webhook denied it."),
    ],
)
def test_a_refused_deletion_fails_with_its_own_reason(ground: Ground, monkeypatch, refusal: Exception, why: str):
    operation = approved(ground, named(blocked(ground)))

    def refuse(*_: Any, **__: Any) -> None:
        raise refusal

    monkeypatch.setattr(client, "delete_pod", refuse)
    operation = rounds(ground, operation)

    assert (node(operation).state, node(operation).reason) == (NodeProgress.FAILED, why)


@pytest.mark.parametrize(
    ("answer", "state", "why"),
    [
        (("refused", "It needs 1 healthy pod."), NodeProgress.RUNNING, "is not evicted yet: It needs 1 healthy pod."),
        (("never", "Forbidden."), NodeProgress.FAILED, "is not deleted: Forbidden."),
    ],
)
def test_an_eviction_refused_after_its_dry_run_is_not_reported_as_allowed(
    ground: Ground, monkeypatch: pytest.MonkeyPatch, answer: tuple[str, str], state: NodeProgress, why: str
):
    operation = approved(ground, named(blocked(ground)))
    allowed = ("asked", "evicted")
    monkeypatch.setattr(delete_pod, "ask_eviction", lambda *_, is_dry_run=False: allowed if is_dry_run else answer)
    operation = rounds(ground, operation)

    assert (node(operation).state, node(operation).reason) == (state, f"team-a/web-1 {why}")
    assert evicted(ground) == []


@pytest.mark.parametrize("given", [{}, {"pod": "web-1", "pod_uid": "u", "budget": "web"}])
def test_pod_uid_and_budget_are_named(ground: Ground, given: dict[str, str]):
    with pytest.raises(BadOperation):
        begin(ground, "delete-pod", CANARY, options=given)


def test_a_blocked_drain_offers_four_ways_with_their_costs(ground: Ground):
    """lifecycle R29."""
    a_pod(ground, "web-1")
    ground.store.patch(
        NAMESPACE, "team-a", {"metadata": {"annotations": {"quarterdeck.io/contact": "#team-a"}}}, how="merge"
    )
    a_budget(ground)
    drain = rounds(ground, begin(ground, "drain", CANARY, options={"deadline_s": 60}), 4)
    Node.objects.filter(name=CANARY).update(is_unschedulable=True)  # as observed
    shown = page(visiting(a_user("eve", role="operator")), f"/operations/{drain.pk}")
    titles = ["Wait longer", "Ask the owner", "Evict team-a/web-1 past web", "Give up and release"]
    assert [title for title in titles if title not in shown.text] == []
    assert "team-a/web-1 belongs to ReplicaSet/web. Contact: #team-a." in shown.text
    row = Node.objects.get(cluster=ground.cluster, name=CANARY)
    (past,) = [link for link in shown.links if f"kind=delete-pod&node={row.pk}&pod=team-a%2Fweb-1" in link]
    form = page(visiting(a_user("ida", role="operator")), past)
    assert "Another person approves it." in form.text
