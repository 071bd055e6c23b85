"""Each thing that could forbid a release, in a test in which the release loses."""

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from itertools import product

import pytest

from edges.transition_errors import LostRace
from fleet.models import DomainEvent, Node
from kube import client
from rollouts.commands import fleet_freezes, plan_control
from rollouts.commands.fleet_freezes import Where
from rollouts.engine.act import waves
from rollouts.engine.act.holds import hold_node
from rollouts.engine.act.writer import Writer
from rollouts.engine.decide.acts import FinishRelease, OpenRollbackStage, Recall, ReleaseWave
from rollouts.lifecycle import StageState, TargetState
from rollouts.models import Hold, PendingCommand, Plan, Target
from tests.make import a_cluster, a_pool
from tests.rollouts.engine.ground import CANARY, NODES, REST, Ground

WAVE = ReleaseWave(0, (CANARY,), "1 node: the stage may have 1.")


def told(verb: Callable) -> Callable[[Ground], None]:
    return lambda ground: verb(
        Plan.objects.get(pk=ground.plan.pk), actor=ground.ada, reason="Stop.", now=ground.clock()
    )


def stage_halts(ground: Ground) -> None:
    ground.plan.stages.filter(index=0).update(state=StageState.HALTED)


def lease_is_over(ground: Ground) -> None:
    Plan.objects.filter(pk=ground.plan.pk).update(epoch=99)


def budget_is_used(ground: Ground) -> None:
    Target.objects.filter(stage__plan=ground.plan, node_name=REST[0]).update(
        stage=ground.stage(), state=TargetState.CHANGING
    )


def frozen(ground: Ground, **given) -> None:
    fleet_freezes.freeze(Where(**given), actor="bea", reason="Quarter end.", now=ground.clock())


def its_pool_is_frozen(ground: Ground) -> None:
    pool = a_pool(ground.cluster, "canaries")
    Node.objects.get(cluster=ground.cluster, name=CANARY).pools.add(pool)
    frozen(ground, cluster=ground.cluster, pool=pool)


def is_asked(verb: str) -> Callable[[Ground], None]:
    """In force, and not yet written into the plan's own rows: somebody holds their locks."""
    return lambda ground: PendingCommand.objects.create(
        plan=ground.plan, verb=verb, actor="ada", at=ground.clock(), reason="Stop."
    )


FORBIDDEN = {
    "halt pending": is_asked("halt"),
    "pause pending": is_asked("pause"),
    "halted": told(plan_control.halt),
    "paused": told(plan_control.pause),
    "aborted": told(plan_control.abort),
    "rolling back": told(plan_control.roll_back),
    "stage halted": stage_halts,
    "lease over": lease_is_over,
    "budget used": budget_is_used,
    "fleet stopped": lambda ground: fleet_freezes.stop(actor="bea", reason="Smoke.", now=ground.clock()),
    "fleet frozen": frozen,
    "cluster frozen": lambda ground: frozen(ground, cluster=ground.cluster),
    "pool frozen": its_pool_is_frozen,
}


def traffic_calls(ground: Ground) -> list[tuple[str, list[str]]]:
    """Returns what the traffic hook of the canary's pool is told: the kind of each call, and its nodes."""
    rows = DomainEvent.objects.filter(kind__startswith="traffic.", cluster=ground.cluster).order_by("pk")
    return [(row.kind, row.facts["nodes"]) for row in rows]


def pool_of_canary(ground: Ground) -> None:
    Node.objects.get(cluster=ground.cluster, name=CANARY).pools.add(a_pool(ground.cluster, "served"))


def test_a_wave_drains_its_traffic_in_the_transaction_of_its_intent(ground: Ground):
    """No worker waits for the hook: the call is a row, and its delivery is a channel's."""
    ground.armed()
    pool_of_canary(ground)

    waves.release_wave(ground.writer(), WAVE)

    assert traffic_calls(ground) == [("traffic.drain", [CANARY])]


def test_a_recalled_node_gets_its_traffic_back_though_its_label_never_went(ground: Ground):
    ground.armed()
    pool_of_canary(ground)
    writer = ground.writer()
    waves._intend(writer.plan, ground.stage(), [ground.target()], {}, off={}, reason="", now=ground.clock())

    waves.recall(writer, Recall(0, (CANARY,)))

    assert traffic_calls(ground) == [("traffic.drain", [CANARY]), ("traffic.undrain", [CANARY])]


def test_a_release_loses_to_whatever_forbids_it(ground: Ground):
    ground.armed()
    pool_of_canary(ground)
    for why, forbid in FORBIDDEN.items():
        with ground.case(why):
            writer = ground.writer()
            forbid(ground)

            with pytest.raises(LostRace):
                waves.release_wave(writer, WAVE)

            assert ground.releases() == []
            assert traffic_calls(ground) == []
            assert ground.target().state == TargetState.HELD
            assert ground.target().baseline is None
            assert Hold.objects.get(plan=ground.plan, node_name=CANARY).is_wanted
            assert not ground.stage().waves.exists()


AGAIN = [
    "halt pending",
    "pause pending",
    "halted",
    "paused",
    "aborted",
    "lease over",
    "fleet stopped",
    "fleet frozen",
    "cluster frozen",
    "pool frozen",
]


def test_a_recorded_release_is_not_carried_out_once_it_is_forbidden(ground: Ground):
    """The label is asked for once more before each node: a halt stops the wave in its middle."""
    ground.armed()
    for why in AGAIN:
        with ground.case(why):
            writer = ground.writer()
            stage = ground.stage()
            waves._intend(writer.plan, stage, [ground.target()], {}, off={}, reason="", now=ground.clock())
            FORBIDDEN[why](ground)

            with suppress(LostRace):  # it ends there, or the next round looks again
                waves.finish_release(writer, FinishRelease(0, (CANARY,)))

            assert ground.releases() == []
            assert CANARY in ground.held()


def test_a_pool_that_only_its_labels_name_is_frozen_for_it_as_well(ground: Ground):
    """Rows are late: the API server shows the labels by which it is in the frozen pool by now."""
    ground.armed()
    pool = a_pool(ground.cluster, "canaries", selector="tier=canary")
    frozen(ground, cluster=ground.cluster, pool=pool)
    ground.label(CANARY, tier="canary")

    ground.act(WAVE)

    assert ground.releases() == []
    assert ground.target().state == TargetState.HELD


def test_other_freezes_forbid_nothing(ground: Ground):
    """Of another cluster, of another pool, one that ran out, one that was lifted."""
    ground.armed()
    other = a_pool(ground.cluster, "others", selector="tier=other")
    frozen(ground, cluster=a_cluster("south"))
    frozen(ground, cluster=ground.cluster, pool=other)
    soon = ground.clock() + timedelta(seconds=1)
    fleet_freezes.freeze(Where(), actor="bea", reason="Short.", until=soon, now=ground.clock())
    lifted = fleet_freezes.stop(actor="bea", reason="Smoke.", now=ground.clock())
    fleet_freezes.lift(lifted, actor="bea", reason="A toaster.", now=ground.clock())
    ground.clock.move(seconds=1)

    ground.act(WAVE)

    assert ground.releases() == [CANARY]


NOT_OURS = "already begun, or this plan may no longer release it"
HELD_BY_OTHERS = {"metadata": {"annotations": {"quarterdeck.io/held-by": "somebody"}}}
CHANGES: dict[str, tuple[Callable[[Ground], None], str]] = {
    "cordoned": (lambda ground: ground.cordon(CANARY), "cordoned by somebody else"),
    "begun": (lambda ground: ground.set_state(CANARY, "drain-required"), NOT_OURS),
    "held by others": (lambda ground: ground.patch_node(CANARY, HELD_BY_OTHERS), NOT_OURS),
    "released": (lambda ground: ground.free(CANARY), NOT_OURS),
    "deleted": (lambda ground: ground.delete(CANARY), "gone"),
}


def test_what_the_node_itself_says_counts_and_not_its_row(ground: Ground):
    """Z6, Z25: live GETs of what is about to be touched. And the plan says no longer that it lets the node go."""
    ground.armed()
    for name, (change, reason) in CHANGES.items():
        with ground.case(name):
            change(ground)

            plan = ground.round(look=False)

            assert ground.releases() == []
            assert ground.target().state == TargetState.HELD
            said = f"Canary, as the API server shows it now: {CANARY} does not change ({reason})."
            assert plan.waiting_for == said


def test_who_may_go_goes_and_who_may_not_is_said(ground: Ground):
    ground.armed(canaries=2, max_unavailable=2)
    two = [target.node_name for target in ground.stage().targets.all()]
    ground.cordon(two[1])

    said = waves.release_wave(ground.writer(), ReleaseWave(0, tuple(two), "2 nodes."))

    assert ground.releases() == [two[0]]
    assert said == f"Canary, as the API server shows it now: {two[1]} does not change (cordoned by somebody else)."


def test_a_release_tests_that_the_label_is_as_we_saw_it(ground: Ground):
    ground.armed()

    ground.act(WAVE)

    (write,) = ground.writes()
    place = "/metadata/labels/nvidia.com~1gpu-driver-upgrade.skip"
    assert {"op": "test", "path": place, "value": "true"} in write["body"]


def test_a_recall_puts_the_hold_back(ground: Ground):
    """Z3."""
    ground.armed()
    ground.act(WAVE)

    ground.act(Recall(0, (CANARY,)))

    assert ground.held() == set(NODES)
    assert ground.target().state == TargetState.HELD
    assert Hold.objects.get(plan=ground.plan, node_name=CANARY).is_wanted


def test_a_recall_of_what_has_begun_changes_nothing(ground: Ground):
    ground.armed()
    ground.act(WAVE)
    Target.objects.filter(pk=ground.target().pk).update(state=TargetState.CHANGING)

    ground.act(Recall(0, (CANARY,)))

    assert CANARY not in ground.held()


def test_the_rollback_takes_failed_nodes_first_and_knows_what_they_were(ground: Ground):
    """Z5: a node that comes back by itself is evaluated against what it was before the plan."""
    ground.armed()
    ground.act(WAVE)
    was = ground.target().baseline
    Target.objects.filter(stage__plan=ground.plan, node_name=REST[1]).update(state=TargetState.FAILED)

    ground.act(OpenRollbackStage({ground.node(name)["metadata"]["uid"]: name for name in (CANARY, REST[1])}))

    back = list(Target.objects.filter(stage__plan=ground.plan, stage__kind="rollback").order_by("position"))
    assert [target.node_name for target in back] == [REST[1], CANARY]
    assert back[1].baseline == was
    assert back[0].baseline is not None


def test_a_plan_whose_lease_is_over_writes_nothing(ground: Ground):
    ground.armed()
    old = ground.writer()
    ground.clock.move(minutes=1)
    ground.take_lease()

    with pytest.raises(LostRace):
        waves.release_wave(old, WAVE)

    assert ground.writes() == []


VERBS = [plan_control.halt, plan_control.pause, plan_control.abort, plan_control.roll_back]


def test_a_word_that_comes_while_the_node_is_read_counts(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    """The intent stands; before the patch is sent somebody is answered that it stopped."""
    read = client.get_node
    ground.armed()
    for verb in VERBS:
        with ground.case(verb), monkeypatch.context() as patch:
            asked: list[str] = []

            def be_told_and_read(*given, verb=verb, asked=asked):
                seen = read(*given)
                asked.append(seen.name)
                if len(asked) == 2:  # first as the wave is checked, then to take the label off
                    told(verb)(ground)
                return seen

            writer = ground.writer()
            patch.setattr(client, "get_node", be_told_and_read)
            waves.release_wave(writer, WAVE)

            assert ground.releases() == []
            assert ground.target().state == TargetState.RELEASING


def sent_late(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> Callable[[], object]:
    """A release that its worker gave up, or was stopped in. What has the API server hear of it."""
    sent: list[tuple] = []

    def send_late(*given):
        sent.append(given)
        raise client.Unreachable("It did not answer in time.")

    with monkeypatch.context() as patched:
        patched.setattr(client, "patch_node", send_late)
        with pytest.raises(client.Unreachable):
            waves.release_wave(writer, WAVE)
    return lambda: client.patch_node(*sent[0])


@pytest.mark.parametrize("later", [{"minutes": 1}, {"milliseconds": 1}])
def test_a_release_that_is_still_on_its_way_when_it_is_recalled_comes_too_late(
    ground: Ground, monkeypatch: pytest.MonkeyPatch, later: dict[str, float]
):
    """Z3: the API server hears of it after the recall, though both are of the same second."""
    ground.armed()
    writer = ground.writer()
    hold_node(writer, ground.target().node_uid, CANARY, anew=True)
    arrive = sent_late(writer, monkeypatch)
    told(plan_control.halt)(ground)
    ground.clock.move(**later)
    waves.recall(writer, Recall(0, (CANARY,)))

    with pytest.raises(client.Conflict):
        arrive()
    assert ground.held() == set(NODES)


class KilledError(BaseException):
    pass


@pytest.mark.parametrize("verb", [plan_control.halt, plan_control.pause, plan_control.roll_back])
def test_a_recall_that_was_killed_before_it_wrote_is_written_by_the_next_worker(
    ground: Ground, monkeypatch: pytest.MonkeyPatch, verb: Callable
):
    """Z3: its row says held and so does the label, and the release that was sent before is on its way."""
    ground.armed()
    arrive = sent_late(ground.writer(), monkeypatch)
    told(verb)(ground)
    ground.clock.move(minutes=1)

    def killed(*_, **__):
        raise KilledError

    with monkeypatch.context() as crash:
        crash.setattr(client, "patch_node", killed)
        with pytest.raises(KilledError):
            ground.round()
    assert ground.target().state == TargetState.HELD
    ground.clock.move(minutes=1)
    ground.round()

    with pytest.raises(client.Conflict):
        arrive()
    assert ground.held() == set(NODES)
    writes = len(ground.writes())
    ground.round()
    assert writes
    assert not [one for one in ground.writes() if "/nodes/" in one["path"]], "and it is written once"


def told_before(moment: str, monkeypatch: pytest.MonkeyPatch, tell: Callable[[], object]) -> None:
    """Something is said as the worker keeps its lease, or asks for the stop switch, to take the first label off."""
    is_read: list[str] = []
    read, kept, switch = client.get_node, Plan.keep_lease, client.get_config_map

    def read_node(*given):
        is_read.append("")
        return read(*given)

    def at(name: str) -> None:
        if name == moment and len(is_read) == 2:  # first as the wave is checked
            is_read.append("told")
            tell()

    def keep_lease(plan: Plan, **given) -> None:
        at("lease")
        kept(plan, **given)

    def ask_for_switch(*given):
        at("switch")
        return switch(*given)

    monkeypatch.setattr(client, "get_node", read_node)
    monkeypatch.setattr(Plan, "keep_lease", keep_lease)
    monkeypatch.setattr(client, "get_config_map", ask_for_switch)


def test_a_word_that_comes_as_the_lease_is_kept_counts(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    """The lease's row is the plan's: it waits for the halt that is being written, and goes on behind it."""
    ground.armed()
    for moment, verb in product(["lease", "switch"], VERBS):
        with ground.case((moment, verb)), monkeypatch.context() as patch:
            writer = ground.writer()
            told_before(moment, patch, lambda verb=verb: told(verb)(ground))

            waves.release_wave(writer, WAVE)

            assert ground.releases() == []
            assert ground.target().state == TargetState.RELEASING


def test_the_stop_in_the_cluster_is_looked_for_before_each_label(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    ground.armed()
    writer = ground.writer()
    told_before("lease", monkeypatch, lambda: ground.stop_everything("incident 4711"))

    waves.release_wave(writer, WAVE)

    assert ground.releases() == []
