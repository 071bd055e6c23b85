"""A component without a hold, whose nodes go by a pod deleted: whole plans of it, through the engine as it is."""

from collections.abc import Callable, Iterator

import pytest

from edges.transition_errors import LostRace
from kube import client
from rollouts.commands import plan_control
from rollouts.components import COMPONENTS
from rollouts.engine.act import waves
from rollouts.engine.act.holds import LEVERS
from rollouts.engine.decide.acts import Recall, ReleaseWave
from rollouts.lifecycle import PlanState, TargetState
from rollouts.models import Hold, Target
from rollouts.queries.plan_view import plan_on_page
from simulator.fleets.plan import Mode
from simulator.run import Simulation
from tests.rollouts.engine import by_pod
from tests.rollouts.engine import ground as grounds
from tests.rollouts.engine.by_pod import CALLED_BACK, ByPod, DeletePod
from tests.rollouts.engine.ground import a_ground
from tests.rollouts.engine.operand import HASH, NEW, OLD, DcgmExporter, Exporters
from tests.simulator.wire.conftest import start  # noqa: F401 (fixture)


@pytest.fixture
def exporters(db: None, start: Callable[..., Simulation], monkeypatch) -> Iterator[Exporters]:  # noqa: F811
    monkeypatch.setitem(LEVERS, DeletePod, ByPod())
    monkeypatch.setitem(COMPONENTS, (DcgmExporter.key, DcgmExporter.kind), DcgmExporter)
    monkeypatch.setattr(grounds, "MOVING", grounds.JUDGED)
    simulation = start()
    made = a_ground(simulation, Mode.CLUSTER_POLICY)
    yield Exporters(made)
    made.connection.close()
    simulation.stop()


def halt(exporters: Exporters) -> None:
    ground = exporters.ground
    plan_control.halt(ground.plan, actor=ground.ada, reason="Stop.", now=ground.clock())


def canary(exporters: Exporters) -> Target:
    return Target.objects.forward().select_related("stage").get(stage__plan=exporters.ground.plan, stage__index=0)


def first_deleted(exporters: Exporters) -> str:
    """The canary's pod is on its way out, and nobody has made another yet. Its node."""
    exporters.plan()
    exporters.until(lambda: canary(exporters).state == TargetState.HELD and exporters.version() == NEW)
    for _ in range(10):
        if exporters.deletes():
            break
        exporters.ground.round()
    return canary(exporters).node_name


def says_no_hold(exporters: Exporters) -> None:
    for sentence in exporters.said():
        assert not {"hold", "held", "holding", "label"} & set(sentence.lower().replace(".", "").split()), sentence


@pytest.mark.nightly
def test_every_pod_goes_once_by_its_uid_a_wave_at_a_time_and_no_node_is_labelled(exporters: Exporters):
    before = {node: exporters.pod_on(node)["metadata"]["uid"] for node in exporters.nodes()}
    exporters.plan()

    plan = exporters.until(lambda: exporters.ground.plan.is_final)

    assert plan.state == PlanState.PROMOTED, plan.waiting_for
    assert {exporters.running(node) for node in before} == {HASH[NEW]}
    gone = [one["body"]["preconditions"]["uid"] for one in exporters.deletes()]
    assert sorted(gone) == sorted(before.values())
    assert gone[0] == before[canary(exporters).node_name]
    assert not [one for one in exporters.requests() if "/nodes/" in one["path"]]
    says_no_hold(exporters)
    assert not Hold.objects.filter(plan=plan, placed_at__isnull=False).exists()
    assert not Hold.objects.in_force().exists()


def test_another_plan_may_not_change_its_nodes_meanwhile(exporters: Exporters):
    """Nothing is held by a label, and one change at a time on a node is the database's to keep."""
    exporters.plan()
    exporters.rounds(2)

    held = Hold.objects.in_force().filter(plan=exporters.ground.plan)
    assert set(held.values_list("node_name", flat=True)) == set(exporters.nodes())
    shown = plan_on_page(exporters.ground.plan, now=exporters.ground.clock())
    assert (shown.held, shown.to_hold, shown.placed, shown.freed) == (0, 0, [], []), "and no label is waited for"


@pytest.mark.nightly
def test_the_operators_throttle_is_not_its(exporters: Exporters):
    """The upgrade controller throttles drivers: switched off, it keeps no exporter from changing."""
    exporters.ground.change_driver(upgradePolicy={"autoUpgrade": False, "maxUnavailable": 0})
    exporters.plan()

    plan = exporters.until(lambda: exporters.ground.plan.is_final)

    assert plan.state == PlanState.PROMOTED, plan.waiting_for


@pytest.mark.nightly
def test_a_halt_calls_nothing_back_whose_pod_was_deleted_and_says_so(exporters: Exporters):
    node = first_deleted(exporters)
    halt(exporters)

    for _ in range(3):
        exporters.ground.round()

    assert len(exporters.deletes()) == 1
    assert canary(exporters).state != TargetState.HELD
    going = "1 node is on the way and cannot be called back: a pod that was deleted does not come back."
    assert exporters.ground.plan.waiting_for == f"Halted. {going} A person decides: roll back, resume or abort."
    exporters.rounds(4)
    assert canary(exporters).state == TargetState.CHANGED
    assert exporters.ground.plan.waiting_for == "Halted. A person decides: roll back, resume or abort."
    assert len(exporters.deletes()) == 1
    assert exporters.running(node) == HASH[NEW]
    says_no_hold(exporters)


class KilledError(BaseException):
    pass


def killed(*_, **__):
    raise KilledError


def killed_before_the_delete(exporters: Exporters, monkeypatch) -> None:
    exporters.plan()
    with monkeypatch.context() as crash:
        crash.setattr(by_pod, "_delete", killed)
        with pytest.raises(KilledError):
            exporters.rounds(20)
    assert canary(exporters).state == TargetState.RELEASING
    exporters.ground.clock.move(seconds=15)


@pytest.mark.nightly
def test_a_worker_killed_before_the_delete_loses_and_doubles_nothing(exporters: Exporters, monkeypatch):
    killed_before_the_delete(exporters, monkeypatch)

    exporters.until(lambda: canary(exporters).state == TargetState.CHANGED)

    assert len(exporters.deletes()) == 1


def test_a_worker_killed_after_the_delete_doubles_nothing(exporters: Exporters, monkeypatch):
    delete = by_pod._delete

    def dies_after(*given):
        delete(*given)
        raise KilledError

    exporters.plan()
    with monkeypatch.context() as crash:
        crash.setattr(by_pod, "_delete", dies_after)
        with pytest.raises(KilledError):
            exporters.rounds(20)
    exporters.ground.clock.move(seconds=15)
    for _ in range(3):
        exporters.ground.round()
    assert len(exporters.deletes()) == 1

    exporters.until(lambda: canary(exporters).state == TargetState.CHANGED)


@pytest.mark.nightly
def test_a_halt_calls_back_what_has_its_pod_still(exporters: Exporters, monkeypatch):
    killed_before_the_delete(exporters, monkeypatch)
    halt(exporters)

    exporters.rounds(3)

    assert exporters.deletes() == []
    assert canary(exporters).state == TargetState.HELD
    assert canary(exporters).reason == "Called back before its pod was deleted."
    says_no_hold(exporters)


def ready_to_go(exporters: Exporters):
    """The plan's writer, and the wave that it is about to let go."""
    exporters.plan()
    exporters.until(lambda: canary(exporters).stage.state == "promoting")
    assert exporters.deletes() == []
    return exporters.ground.writer(), ReleaseWave(0, (canary(exporters).node_name,), "1 node.")


@pytest.mark.nightly
def test_a_halt_between_the_look_and_the_delete_wins(exporters: Exporters, monkeypatch):
    writer, wave = ready_to_go(exporters)
    old_pods = by_pod._old_pods

    def halted_after_the_look(writer_, name: str):
        found = list(old_pods(writer_, name))
        if canary(exporters).state == TargetState.RELEASING and exporters.ground.plan.state == PlanState.PROMOTING:
            halt(exporters)
        return found

    monkeypatch.setattr(by_pod, "_old_pods", halted_after_the_look)
    waves.release_wave(writer, wave)

    assert exporters.deletes() == []
    exporters.ground.clock.move(seconds=15)
    exporters.rounds(2)
    assert exporters.deletes() == []
    assert canary(exporters).state == TargetState.HELD


@pytest.mark.nightly
def test_a_worker_that_slept_through_its_turn_deletes_nothing(exporters: Exporters, monkeypatch):
    writer, wave = ready_to_go(exporters)
    old_pods = by_pod._old_pods

    def sleeps(writer_, name: str):
        found = list(old_pods(writer_, name))
        if canary(exporters).state == TargetState.RELEASING:
            type(writer.plan).objects.filter(pk=writer.plan.pk).update(epoch=writer.plan.epoch + 1)
        return found

    monkeypatch.setattr(by_pod, "_old_pods", sleeps)
    monkeypatch.setattr(waves, "_is_still_wanted", lambda *_: True)
    with pytest.raises(LostRace, match="is over"):
        waves.release_wave(writer, wave)

    assert exporters.deletes() == []


def test_a_pod_made_anew_under_the_same_name_stays(exporters: Exporters, monkeypatch):
    """Its UID is another: the delete loses, and what is there is of the newest template already."""
    writer, wave = ready_to_go(exporters)
    node = canary(exporters).node_name
    was = exporters.pod_on(node)
    delete = by_pod.delete_pod

    def remade(connection, seen):
        exporters.remake(was, name=was["metadata"]["name"])
        delete(connection, seen)

    with monkeypatch.context() as race:
        race.setattr(by_pod, "delete_pod", remade)
        waves.release_wave(writer, wave)

    assert exporters.deletes() == []
    assert len(exporters.deletes(code=409)) == 1
    there = exporters.pod_on(node)["metadata"]
    assert there["name"] == was["metadata"]["name"]
    assert there["uid"] != was["metadata"]["uid"]
    assert Hold.objects.get(plan=exporters.ground.plan, node_name=node).trouble == ""
    exporters.ground.clock.move(seconds=15)
    exporters.until(lambda: canary(exporters).state == TargetState.CHANGED)
    assert exporters.deletes() == []


@pytest.mark.nightly
def test_a_pod_that_somebody_wrote_since_it_was_listed_is_listed_again(exporters: Exporters, monkeypatch):
    writer, wave = ready_to_go(exporters)
    node = canary(exporters).node_name
    delete, tries = by_pod.delete_pod, []

    def changed_before(connection, seen):
        tries.append(seen.resource_version)
        if len(tries) == 1:
            exporters.touch(node)
        delete(connection, seen)

    monkeypatch.setattr(by_pod, "delete_pod", changed_before)
    waves.release_wave(writer, wave)

    assert len(tries) == 2
    assert len(exporters.deletes()) == 1


def sent_late(exporters: Exporters, monkeypatch) -> Callable[[], object]:
    """A delete that its worker gave up, or was stopped in. What has the API server hear of it."""
    writer, wave = ready_to_go(exporters)
    sent: list[tuple] = []

    def send_late(*given):
        sent.append(given)
        raise client.Unreachable("It did not answer in time.")

    with monkeypatch.context() as patched:
        patched.setattr(by_pod, "delete_pod", send_late)
        with pytest.raises(client.Unreachable):
            waves.release_wave(writer, wave)
    exporters.ground.clock.move(seconds=15)
    return lambda: by_pod.delete_pod(*sent[0])


def test_a_delete_that_is_still_on_its_way_when_it_is_called_back_comes_too_late(exporters: Exporters, monkeypatch):
    """Z3: the pod is as it was but for the fence, which the delete did not see."""
    arrive = sent_late(exporters, monkeypatch)
    halt(exporters)
    exporters.ground.round()
    assert canary(exporters).state == TargetState.HELD

    with pytest.raises(client.Conflict):
        arrive()

    pod = exporters.pod_on(canary(exporters).node_name)["metadata"]
    assert "deletionTimestamp" not in pod
    assert pod["annotations"][CALLED_BACK].startswith(f"{exporters.ground.plan.mark} ")
    exporters.rounds(2)
    assert exporters.deletes() == []
    assert exporters.ground.plan.waiting_for == "Halted. A person decides: roll back, resume or abort."


@pytest.mark.nightly
def test_called_back_and_wanted_again_it_goes_once(exporters: Exporters, monkeypatch):
    arrive = sent_late(exporters, monkeypatch)
    halt(exporters)
    exporters.ground.round()
    ground = exporters.ground
    plan_control.resume(ground.plan, actor=ground.ada, reason="Go on.", now=ground.clock())

    exporters.until(lambda: canary(exporters).state == TargetState.CHANGED)

    assert len(exporters.deletes()) == 1
    with pytest.raises((client.Absent, client.Conflict)):
        arrive()


@pytest.mark.nightly
def test_a_delete_that_arrives_as_the_fence_is_put_up_wins_and_is_said(exporters: Exporters, monkeypatch):
    arrive, patch = sent_late(exporters, monkeypatch), by_pod.patch_pod
    halt(exporters)

    def too_late(*given):
        arrive()
        return patch(*given)

    with monkeypatch.context() as race:
        race.setattr(by_pod, "patch_pod", too_late)
        exporters.ground.round()
    assert canary(exporters).state == TargetState.RELEASING
    exporters.ground.rounds(2)

    assert canary(exporters).state == TargetState.CHANGING
    assert canary(exporters).reason == "Its pod was deleted, which nobody can take back."
    going = "1 node is on the way and cannot be called back: a pod that was deleted does not come back."
    assert exporters.ground.plan.waiting_for == f"Halted. {going} A person decides: roll back, resume or abort."


@pytest.mark.nightly
def test_what_cannot_be_fenced_is_not_called_back_and_says_why(exporters: Exporters, monkeypatch):
    sent_late(exporters, monkeypatch)
    halt(exporters)

    def forbidden(*_):
        raise client.Forbidden('pods "x" is forbidden: cannot patch.')

    with monkeypatch.context() as taken:
        taken.setattr(by_pod, "patch_pod", forbidden)
        exporters.ground.rounds(2)

    assert canary(exporters).state == TargetState.RELEASING
    node = canary(exporters).node_name
    assert f'{node} could not be written: pods "x" is forbidden: cannot patch.' in exporters.ground.plan.waiting_for
    exporters.ground.rounds(2)
    assert canary(exporters).state == TargetState.HELD
    assert exporters.ground.plan.waiting_for == "Halted. A person decides: roll back, resume or abort."


@pytest.mark.nightly
def test_a_worker_that_lost_its_turn_puts_up_no_fence(exporters: Exporters, monkeypatch):
    sent_late(exporters, monkeypatch)
    halt(exporters)
    writer = exporters.ground.writer()
    type(writer.plan).objects.filter(pk=writer.plan.pk).update(epoch=writer.plan.epoch + 1)

    with pytest.raises(LostRace, match="is over"):
        waves.recall(writer, Recall(0, (canary(exporters).node_name,)))

    assert CALLED_BACK not in exporters.pod_on(canary(exporters).node_name)["metadata"].get("annotations", {})
    assert canary(exporters).state == TargetState.RELEASING


def test_a_pod_that_somebody_else_had_made_anew_is_an_escape_and_halts(exporters: Exporters):
    """Z4."""
    exporters.plan()
    exporters.until(lambda: exporters.version() == NEW)
    exporters.rounds(1)
    node = next(name for name in exporters.nodes() if name != canary(exporters).node_name)
    exporters.remake(exporters.pod_on(node))

    exporters.until(lambda: exporters.ground.plan.state == PlanState.HALTED)

    assert exporters.ground.plan.reason == f"{node} took the new version by a pod made anew."
    assert not {one["path"].rsplit("/", 1)[-1] for one in exporters.deletes()} - {canary(exporters).node_name}


def test_given_up_before_anything_changed_it_is_as_before(exporters: Exporters):
    ground = exporters.ground
    exporters.plan()
    exporters.until(lambda: exporters.version() == NEW)
    plan_control.abort(ground.plan, actor=ground.ada, reason="No.", now=ground.clock())

    plan = exporters.until(lambda: ground.plan.is_final)

    assert plan.state == PlanState.ABORTED
    assert exporters.version() == OLD
    assert exporters.deletes() == []
    assert plan.reason == "Given up. No node had changed."
    says_no_hold(exporters)


@pytest.mark.nightly
def test_given_up_later_it_names_who_changed_and_what_puts_that_back(exporters: Exporters):
    ground = exporters.ground
    exporters.plan()
    exporters.until(lambda: canary(exporters).state == TargetState.CHANGED)
    plan_control.abort(ground.plan, actor=ground.ada, reason="No.", now=ground.clock())

    plan = exporters.until(lambda: ground.plan.is_final)

    node = canary(exporters).node_name
    assert plan.state == PlanState.ABORTED
    helps = f"Delete its pod by hand, and it is made anew with {OLD}."
    assert plan.reason == f"Given up. {node} changed or failed, and stays as it is. {helps}"
    assert exporters.running(node) == HASH[NEW]
    assert len(exporters.deletes()) == 1
    says_no_hold(exporters)


@pytest.mark.parametrize("changed", [0, 1])
def test_a_rollback_deletes_the_pods_that_changed_once_more_and_no_other(exporters: Exporters, changed: int):
    """Z5."""
    ground = exporters.ground
    exporters.plan()
    so_far = [
        lambda: exporters.version() == NEW and canary(exporters).stage.state == "promoting",
        lambda: canary(exporters).state == TargetState.CHANGED,
    ]
    exporters.until(so_far[changed])
    plan_control.roll_back(ground.plan, actor=ground.ada, reason="Back.", now=ground.clock())

    plan = exporters.until(lambda: ground.plan.is_final)

    assert plan.state == PlanState.ROLLED_BACK, plan.waiting_for
    assert exporters.version() == OLD
    assert {exporters.running(node) for node in exporters.nodes()} == {HASH[OLD]}
    assert len(exporters.deletes()) == 2 * changed
    says_no_hold(exporters)
    if not changed:
        assert plan.reason == "No node had changed: the old version is back."
