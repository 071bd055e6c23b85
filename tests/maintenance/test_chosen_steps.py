"""A test and a release that a person chose with the repair: each guard is read again before them."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.db import connection

from fleet.models import Cluster, Node, Pool
from health.models import Finding
from maintenance import commands, tasks
from maintenance.chosen_round import run_chosen_steps
from maintenance.lifecycle import CaseState
from maintenance.models import AutomaticQuarantine, NodeCase, Repair
from maintenance.queries import facts_of
from maintenance.refusals import CaseRefused
from operations import commands as operations
from operations.models import Freeze, Operation
from people.models import User
from tests.maintenance.actors.ground import a_drained_case
from tests.maintenance.test_rounds import drained, followed
from tests.make import NOON, a_finding, a_pool, a_repair, a_user
from tests.operations.test_rounds import begin, is_cordoned, rounds
from tests.operations.test_test_job_step import ends, finished
from tests.pages import visiting
from tests.rollouts.engine.ground import CANARY, Ground

pytestmark = pytest.mark.django_db


@pytest.fixture
def case(ground: Ground) -> NodeCase:
    """A case after its repair, with both steps chosen by bea."""
    a_user("bea", role="operator")
    return mended(ground)


def mended(ground: Ground, between: Callable[[], object] = lambda: None, **given: Any) -> NodeCase:
    case = a_drained_case(ground)
    Finding.objects.all().update(state="resolved", resolved_at=ground.clock())
    asked = {"kind": "hardware", "then_test": True, "then_release": True, "actor": "bea", "reason": "Swap GPU 3."}
    commands.ask_repair(case, now=ground.clock(), **asked | given)
    ground.clock.move(seconds=60)
    between()
    commands.answer_repair(case, answer="done", actor="bob", reason="Swapped.", now=ground.clock())
    ground.clock.move(seconds=1)
    return NodeCase.objects.get(pk=case.pk)


def step(ground: Ground) -> Operation | None:
    """The newest operation after a round in which the cluster is seen."""
    ground.cluster.bookmarks.update(last_seen_at=ground.clock(), listed_at=ground.clock())
    with time_machine.travel(ground.clock(), tick=False):
        run_chosen_steps(now=ground.clock())
    return Operation.objects.order_by("-pk").first()


def kinds() -> list[str]:
    return [operation.kind for operation in Operation.objects.order_by("pk")]


def with_result(ground: Ground, case: NodeCase, exit_code: int = 0) -> NodeCase:
    operation = step(ground)
    assert operation.kind == "test"
    rounds(ground, operation)
    ends(ground, exit_code)
    finished(ground, operation)
    ground.clock.move(seconds=1)
    return followed(ground, case)


def says(case: NodeCase) -> str:
    return Repair.objects.get(case=case).then_says


def test_the_test_and_the_release_follow_the_repair_in_the_name_of_who_chose_them(ground: Ground, case: NodeCase):
    assert facts_of([case])[case.pk].next_step == (
        "A test then starts by itself. After a pass the node is released, as bea chose."
    )
    case = with_result(ground, case)
    assert facts_of([case])[case.pk].next_step == "The node is released next, as bea chose."
    release = step(ground)
    step(ground)  # once
    rounds(ground, release)
    case = followed(ground, case)
    step(ground)

    assert (kinds()[-2:], case.state, is_cordoned(ground)) == (["test", "release"], CaseState.PROBATION, False)
    assert (release.asked_by, release.reason.split(", ")[0]) == ("bea", "Release after a pass")
    chosen = list(case.moves.filter(verb__startswith="case.chosen").order_by("number"))
    assert [(entry.verb, entry.actor, entry.evidence["chosen_by"]) for entry in chosen] == [
        ("case.chosen-test", "bea", "bea"),
        ("case.chosen-release", "bea", "bea"),
    ]
    assert Repair.objects.get().then_ended_at is not None


def test_a_test_waits_for_all_gpus_of_the_node(ground: Ground, case: NodeCase):
    """After a boot the driver takes minutes to offer them."""
    node = Node.objects.filter(name=CANARY)
    node.update(gpu_allocatable=7, gpu_expected=8)
    before = kinds()
    step(ground)
    assert (kinds(), says(case)) == (before, "The node offers 7 of its 8 GPUs: a test would skip the rest.")
    node.update(gpu_allocatable=8)
    assert step(ground).kind == "test"


def test_a_failed_test_ends_the_choice(ground: Ground, case: NodeCase):
    case = with_result(ground, case, exit_code=226)
    step(ground)

    assert (case.state, kinds()[-1], is_cordoned(ground)) == (CaseState.DRAINED, "test", True)
    assert facts_of([case])[case.pk].obstacle == (
        "The steps chosen with the repair ended. The test did not pass. The last validation failed."
    )


def test_without_the_release_a_person_does_it(ground: Ground):
    a_user("bea", role="operator")
    case = with_result(ground, mended(ground, then_release=False))
    step(ground)

    assert (kinds()[-1], case.state) == ("test", CaseState.VALIDATING)
    assert facts_of([case])[case.pk].next_step == "The node may return. Release it."


def test_a_release_alone_is_refused():
    with pytest.raises(CaseRefused, match="needs the test"):
        commands.ask_repair(drained(), kind="other", then_release=True, actor="bea", reason="x", now=NOON)


def a_critical_finding(ground: Ground) -> None:
    node = Node.objects.get(cluster=ground.cluster, name=CANARY)
    opened_at = ground.clock() - timedelta(days=1)  # older than the pass
    a_finding(ground.cluster, node=node, severity="critical", title="GPU 3 is lost.", opened_at=opened_at)


def an_open_breaker(ground: Ground) -> None:
    pool: Pool = a_pool(ground.cluster, "h100")
    pool.nodes.set(Node.objects.filter(cluster=ground.cluster))
    at = {"mode_since": ground.clock(), "breaker_since": ground.clock(), "evidence_after": ground.clock()}
    AutomaticQuarantine.objects.create(
        pool=pool, mode="act", breaker="open", breaker_reason="3 nodes.", changed_by="x", reason="x", **at
    )


def a_stop(ground: Ground) -> None:
    Freeze.objects.create(is_stop=True, binds_rollbacks=True, reason="Wait.", by="bob", at=ground.clock())


def a_freeze(ground: Ground) -> None:
    Freeze.objects.create(cluster=ground.cluster, reason="Sale.", by="bob", at=ground.clock())


def a_lost_right(_: Ground) -> None:
    User.objects.get(username="bea").bindings.all().delete()


def an_observed_cluster(ground: Ground) -> None:
    Cluster.objects.filter(pk=ground.cluster.pk).update(mode="observe")


def a_taken_case(ground: Ground) -> None:
    commands.take_over(NodeCase.objects.get(), actor="bob", reason="Look first.", now=ground.clock())


def a_cluster_out_of_sight(ground: Ground) -> None:
    ground.cluster.bookmarks.update(last_seen_at=ground.clock() - timedelta(minutes=10))


GUARDS = [
    (a_critical_finding, "A finding of the node is open: GPU 3 is lost."),
    (an_open_breaker, "The breaker of pool h100 is open: 3 nodes."),
    (a_freeze, "Sale."),
    (a_lost_right, "bea may no longer run operations"),
    (an_observed_cluster, "its mode is observe"),
    (a_taken_case, "bob took the case over: Look first."),
]


@pytest.mark.parametrize(("lose", "why"), [*GUARDS, (a_stop, "Wait.")])
def test_a_guard_that_is_lost_before_the_release_keeps_the_node(
    ground: Ground, case: NodeCase, lose: Callable[[Ground], None], why: str
):
    case = with_result(ground, case)
    lose(ground)
    step(ground)

    assert (kinds()[-1], is_cordoned(ground)) == ("test", True)
    assert why in says(case)
    ground.clock.move(seconds=3 * 3600)
    step(ground)
    assert Repair.objects.get().then_ended_at is not None, "nobody waits for it for ever"
    assert kinds()[-1] == "test"


AT_THE_WRITE = [each for each in GUARDS if each[0] is not an_observed_cluster]


@pytest.mark.parametrize(("lose", "why"), [*AT_THE_WRITE, (a_cluster_out_of_sight, "is not seen now: its findings")])
def test_a_guard_that_is_lost_before_the_write_keeps_the_node(
    ground: Ground, case: NodeCase, lose: Callable[[Ground], None], why: str
):
    case = with_result(ground, case)
    release = step(ground)
    assert release.kind == "release"
    lose(ground)
    release = rounds(ground, release)

    assert (release.nodes.get().state, is_cordoned(ground)) == ("failed", True)
    assert why in release.nodes.get().reason
    step(ground)
    assert (followed(ground, case).state, kinds()[-1]) == (CaseState.VALIDATING, "release")


def test_a_stop_before_the_write_holds_the_release(ground: Ground, case: NodeCase):
    with_result(ground, case)
    release = step(ground)
    a_stop(ground)
    rounds(ground, release)
    assert is_cordoned(ground)


def test_a_release_of_a_person_ends_the_choice_and_has_no_more_guards(ground: Ground, case: NodeCase):
    case = with_result(ground, case)
    a_critical_finding(ground)
    rounds(ground, begin(ground, "release", CANARY))
    step(ground)

    assert not is_cordoned(ground), "a person saw the finding in the preview"
    assert Repair.objects.get(case=case).then_says == "ada started another operation: Release."
    assert facts_of([followed(ground, case)])[case.pk].obstacle == ""


@pytest.mark.parametrize("mark", ["fault", "boot"])
def test_a_fault_or_a_boot_after_the_pass_needs_another_test(ground: Ground, case: NodeCase, mark: str):
    """lifecycle R39."""
    case = with_result(ground, case)
    ground.clock.move(seconds=60)
    changes = {"fault": (NodeCase, {"fault_at": ground.clock()}), "boot": (Node, {"booted_at": ground.clock()})}
    model, columns = changes[mark]
    model.objects.filter(**({"pk": case.pk} if model is NodeCase else {"name": CANARY})).update(**columns)
    step(ground)

    assert (kinds()[-1], is_cordoned(ground)) == ("test", True)
    assert says(case).startswith("The last pass no longer counts. No validation has passed since")


def test_a_started_step_is_not_started_again_by_another_worker(ground: Ground, case: NodeCase):
    step(ground)
    Operation.objects.filter(steps=["test_job"]).update(state="cancelled")
    Operation.objects.get(steps=["test_job"]).nodes.update(state="cancelled")
    step(ground)
    assert kinds().count("test") == 1


def test_an_operation_of_somebody_else_ends_the_choice(ground: Ground, case: NodeCase):
    node = Node.objects.get(cluster=ground.cluster, name=CANARY)
    operations.start(ground.cluster, "drain", [node], actor="bob", reason="x", now=ground.clock())
    step(ground)
    assert (says(case), kinds()[-1]) == ("bob started another operation: Drain.", "drain")


def test_a_quarantine_of_somebody_else_before_the_end_of_the_repair_ends_the_choice(ground: Ground):
    a_user("bea", role="operator")
    case = mended(ground, between=lambda: rounds(ground, begin(ground, "quarantine", CANARY, actor="bob")))
    step(ground)

    assert (kinds()[-1], is_cordoned(ground)) == ("quarantine", True)
    assert says(case) == "bob started another operation: Quarantine."
    assert Repair.objects.get(case=case).then_ended_at is not None


def test_a_quarantine_of_somebody_else_before_the_write_keeps_the_node(ground: Ground, case: NodeCase):
    with_result(ground, case)
    release = step(ground)
    begin(ground, "quarantine", CANARY, actor="bob")
    release = rounds(ground, release)

    assert (release.nodes.get().state, is_cordoned(ground)) == ("failed", True)
    assert release.nodes.get().reason == "bob started another operation: Quarantine."


@pytest.mark.parametrize("waiting", ["proposed", "paused", "running"])
def test_a_person_releases_beside_a_chosen_release_that_waits(ground: Ground, case: NodeCase, waiting: str):
    case = with_result(ground, case)
    chosen = step(ground)
    Operation.objects.filter(pk=chosen.pk).update(state=waiting)
    a_critical_finding(ground)  # it bars the chosen release, not the one of a person
    own = begin(ground, "release", CANARY)
    step(ground)
    rounds(ground, own)

    assert not is_cordoned(ground)
    assert Operation.objects.get(pk=chosen.pk).state == "cancelled", "nobody has to end it by hand"
    assert Operation.objects.get(pk=own.pk).state == "finished"
    assert Repair.objects.get(case=case).then_says == "ada started another operation: Release."


def test_the_end_of_a_choice_leaves_a_release_at_its_node_to_its_worker(ground: Ground, case: NodeCase):
    """The release may have written already: its own round tells how it ended."""
    with_result(ground, case)
    release = step(ground)
    release.nodes.update(state="running", step_since=ground.clock())
    begin(ground, "quarantine", CANARY, actor="bob")
    step(ground)

    assert Repair.objects.get().then_ended_at is not None
    assert Operation.objects.get(pk=release.pk).state == "running"


def test_the_preview_of_a_chosen_step_is_read_before_the_choice_is_locked(
    ground: Ground, case: NodeCase, monkeypatch: pytest.MonkeyPatch
):
    """It takes long on a large cluster, and *Take over* waits for the lock."""
    truly, depths = operations.impact_of, []

    def seen(*given: Any, **more: Any) -> Any:
        depths.append(len(connection.savepoint_ids))
        return truly(*given, **more)

    monkeypatch.setattr(operations, "impact_of", seen)
    assert step(ground).kind == "test"
    assert depths == [len(connection.savepoint_ids)]


def test_repairs_that_are_due_are_queued_before_chosen_steps_are_read(monkeypatch: pytest.MonkeyPatch):
    a_repair(drained(), answer="", ended_at=None, by="webhook", next_look_at=NOON)
    done = []
    monkeypatch.setattr(Repair, "queue_round", lambda _: done.append("repair"))
    monkeypatch.setattr(tasks, "run_chosen_steps", lambda **_: done.append("chosen steps"))
    tasks.sweep_cases()
    assert done == ["repair", "chosen steps"]


def test_nobody_starts_an_operation_in_the_name_of_a_choice(ground: Ground, case: NodeCase):
    """Its key would count as the step of the choice."""
    bea, repair = visiting(User.objects.get(username="bea")), Repair.objects.get()
    node, key = Node.objects.get(cluster=ground.cluster, name=CANARY), f"chosen-{repair.pk}-release"
    sent = {"kind": "note", "nodes": node.pk, "reason": "x", "key": key}
    body = {"kind": "note", "cluster": ground.cluster.pk, "nodes": [node.uid], "reason": "x"}
    before = kinds()

    assert bea.post("/operations/new", sent).status_code == 400
    answer = bea.post("/api/v1/operations", body, content_type="application/json", headers={"Idempotency-Key": key})
    assert (answer.status_code, "may not begin with chosen-" in answer.content.decode()) == (400, True)
    assert kinds() == before
