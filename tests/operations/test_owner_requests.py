"""A drain asks the owners of jobs to suspend them, once, and waits for them until a time (lifecycle R24, R29)."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from fleet.models import DomainEvent, Node, Workload
from operations import commands
from operations.models import Operation
from operations.steps import drain, owner_requests
from simulator.kinds import DISRUPTION_BUDGET, NAMESPACE, POD
from tests.make import NOON, a_user
from tests.operations.test_quarantines import uncordon
from tests.operations.test_rounds import a_budget, a_pod, begin, node, rounds, terminating
from tests.operations.test_whole_jobs import OTHER, job  # noqa: F401 (fixture)
from tests.pages import page, visiting
from tests.rollouts.engine.ground import CANARY, Ground

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("job")]
ASKING = {"ask_owners": True, "jobs_wait_s": 600, "deadline_s": 3600}


def events() -> list[str]:
    rows = DomainEvent.objects.filter(kind="operation.owners-asked").order_by("pk")
    return [facts["reason"] for facts in rows.values_list("facts", flat=True)]


def requests(operation: Operation, on: str = CANARY) -> dict[str, dict[str, str]]:
    return operation.nodes.get(node_name=on).progress["owner_requests"]


def evicted(ground: Ground) -> set[str]:
    return {metadata["name"] for metadata in terminating(ground)}


def name_owner(ground: Ground, **metadata: Any) -> None:
    ground.store.patch(NAMESPACE, "team-a", {"metadata": metadata}, how="merge")


def test_the_owner_of_a_job_on_two_nodes_is_asked_once_and_the_drain_goes_on_at_the_time(ground: Ground):
    name_owner(ground, annotations={"quarterdeck.io/contact": "#team-a"})
    operation = rounds(ground, begin(ground, "drain", CANARY, OTHER, options=ASKING), 3)
    began = operation.nodes.get(node_name=CANARY).step_since
    assert began is not None
    until = began + timedelta(minutes=10)
    (request,) = events()
    start = f"Please suspend or end by {until:%Y-%m-%d %H:%M} UTC: Job team-a/web (owner: #team-a)."
    assert request == f"{start} After that, a drain evicts the pods."
    assert evicted(ground) == set()
    for name in (CANARY, OTHER):
        (asked,) = requests(operation, name).values()
        assert (asked["owner"], asked["answer"]) == ("#team-a", "")
        assert datetime.fromisoformat(asked["until"]) == until

    text = page(visiting(a_user("vera", role="viewer")), f"/operations/{operation.pk}").text
    assert "Job team-a/web #team-a" in text
    ground.clock.move(minutes=10)
    operation = rounds(ground, operation, 2)
    assert evicted(ground) == {"rank-0", "rank-1"}, "as without a request"
    assert [each["answer"] for each in requests(operation).values()] == ["none in time"]
    assert len(events()) == 1


def test_a_suspended_job_is_an_answer_and_is_not_waited_for(ground: Ground):
    operation = rounds(ground, begin(ground, "drain", CANARY, OTHER, options=ASKING), 2)
    assert evicted(ground) == set()
    Workload.objects.create(
        cluster=ground.cluster, kind="Job", namespace="team-a", name="web", uid="uid-web", created_at=NOON,
        changed_at=NOON, suspended_pods=2,
    )  # fmt: skip
    operation = rounds(ground, operation, 2)
    assert evicted(ground) == {"rank-0", "rank-1"}
    assert [each["answer"] for each in requests(operation).values()] == ["suspended"]


def test_pods_that_end_are_an_answer_and_the_drain_is_done_before_the_time(ground: Ground):
    operation = rounds(ground, begin(ground, "drain", CANARY, options=ASKING), 2)
    ground.store.delete(POD, "rank-0", "team-a", grace_s=0)
    operation = rounds(ground, operation, 3)
    assert node(operation).state == "done"
    assert [each["answer"] for each in requests(operation).values()] == ["its pods are gone"]


@pytest.mark.parametrize(
    ("labels", "owner"), [({"team": "vision"}, "vision"), ({}, "nobody is named")], ids=["label", "nobody"]
)
def test_without_a_contact_the_owner_label_names_the_owner(ground: Ground, settings, labels, owner: str):
    settings.OWNER_LABEL = "team"
    name_owner(ground, labels=labels)
    operation = rounds(ground, begin(ground, "drain", CANARY, options=ASKING), 2)
    assert [each["owner"] for each in requests(operation).values()] == [owner]


def a_blocked_service(ground: Ground) -> None:
    for name in ("rank-0", "rank-1"):
        ground.store.delete(POD, name, "team-a", grace_s=0)
    a_pod(ground, "web-1")
    a_budget(ground)


def test_the_owner_of_a_pod_that_blocks_for_minutes_is_asked_with_the_deadline_of_the_drain(ground: Ground):
    """lifecycle R29: the offer of a blocked drain."""
    a_blocked_service(ground)
    operation = rounds(ground, begin(ground, "drain", CANARY, options=ASKING), 3)
    assert "owner_requests" not in node(operation).progress, "a budget may refuse for a moment"
    ground.clock.move(minutes=5)
    operation = rounds(ground, operation, 2)
    ((name, asked),) = requests(operation).items()
    fails_at = node(operation).fails_at
    assert fails_at
    assert datetime.fromisoformat(asked["until"]) == fails_at
    assert (name, asked["then"]) == ("ReplicaSet team-a/web", "the drain fails")
    event = DomainEvent.objects.get(kind="operation.pods-block")
    start = f"Pods on {CANARY} block its drain: ReplicaSet team-a/web (owner: nobody is named)."
    end = f"The drain tries again until {fails_at:%Y-%m-%d %H:%M} UTC, then it fails. Nothing is forced."
    assert event.facts["reason"] == f"{start} {end}"
    assert events() == []

    ground.store.delete(DISRUPTION_BUDGET, "web", "team-a")
    operation = rounds(ground, operation)
    assert evicted(ground) == {"web-1"}
    assert [each["answer"] for each in requests(operation).values()] == ["none: this drain evicted its pods"]


def test_a_round_without_an_eviction_is_no_end_of_the_block(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    """Beside many nodes a round may ask for none, and nobody would ever be asked."""
    a_blocked_service(ground)
    operation = rounds(ground, begin(ground, "drain", CANARY, options=ASKING), 2)
    since = node(operation).blocked_since
    assert since
    with monkeypatch.context() as patched:
        patched.setattr(drain, "take_evictions", lambda *_, **__: 0)
        assert node(rounds(ground, operation)).blocked_since == since
    ground.store.delete(DISRUPTION_BUDGET, "web", "team-a")
    assert node(rounds(ground, operation)).blocked_since is None


def test_every_job_is_named_in_a_request(ground: Ground):
    """Owners beyond the third were recorded as asked, and no message named their jobs."""
    jobs = [f"{number}-{'x' * 120}" for number in range(12)]
    for name in jobs:
        pod = a_pod(ground, "template", owner="Job")
        ground.store.delete(POD, "template", "team-a", grace_s=0)
        owners = [{**pod["metadata"]["ownerReferences"][0], "name": name}]
        ground.store.seed(POD, {**pod, "metadata": {"name": name, "ownerReferences": owners}}, "team-a")
    operation = rounds(ground, begin(ground, "drain", CANARY, options=ASKING), 2)

    asked = set(requests(operation))
    assert asked == {"Job team-a/web", *(f"Job team-a/{name}" for name in jobs)}
    assert {each for each in asked if any(f"{each} (owner" in text for text in events())} == asked
    assert max(map(len, events())) <= 1000


def test_a_drain_that_failed_keeps_its_requests_and_its_retry_asks_nobody_again(ground: Ground):
    operation = rounds(ground, begin(ground, "drain", CANARY, options=ASKING), 2)
    before = requests(operation)
    uncordon(ground)
    operation = rounds(ground, operation)
    assert (node(operation).state, requests(operation)) == ("failed", before)

    commands.retry(operation, actor="ada", reason="Again.", now=ground.clock())
    operation = rounds(ground, operation, 3)
    assert requests(operation) == before
    assert len(events()) == 1


def test_nobody_is_asked_unless_somebody_chose_it(ground: Ground):
    operation = rounds(ground, begin(ground, "drain", CANARY, OTHER, options={"jobs_wait_s": 600}), 2)
    assert events() == []
    assert "owner_requests" not in operation.nodes.get(node_name=CANARY).progress


def test_owners_have_half_of_a_short_deadline_unless_somebody_says_how_long(ground: Ground):
    operation = begin(ground, "drain", CANARY, options={"ask_owners": True, "deadline_s": 900})
    assert operation.options["jobs_wait_s"] == 450


@pytest.mark.parametrize("by", ["pause", "cancel"])
def test_nobody_is_asked_after_a_stop(ground: Ground, monkeypatch: pytest.MonkeyPatch, by: str):
    operation = begin(ground, "drain", CANARY, options=ASKING)
    really = owner_requests.contacts_of

    def contacts(*given):
        command = commands.pause if by == "pause" else commands.cancel
        command(Operation.objects.get(pk=operation.pk), actor="bob", reason="No.", now=ground.clock())
        return really(*given)

    monkeypatch.setattr(owner_requests, "contacts_of", contacts)
    rounds(ground, operation, 2)
    assert events() == []


def test_the_offer_of_a_blocked_drain_leads_to_a_drain_that_asks(ground: Ground):
    node_id = Node.objects.get(name=CANARY).pk
    person = visiting(a_user("oscar", role="operator"))
    for asks in (True, False):
        form = f"/operations/new?kind=drain&node={node_id}{'&ask_owners=on' if asks else ''}"
        field = person.get(form).content.decode().split('name="ask_owners"')[1].split(">")[0]
        assert ("checked" in field) is asks
