"""Z17, Z18: what keeps NVSentinel and autoscalers off a node goes with its release, and is put back, whatever comes."""

import json
from io import StringIO

import pytest
from django.core.management import call_command

from edges.transition_errors import LostRace
from kube import client
from rollouts.commands import plan_control
from rollouts.engine.act import exclusions, waves
from rollouts.engine.act.writer import Writer
from rollouts.engine.decide.acts import ExcludeAgain, PutBack, Recall, ReleaseWave
from rollouts.engine.live_state import ask_cluster
from rollouts.engine.observation import observe
from rollouts.lifecycle import PlanState, StageState, TargetState
from rollouts.models import Exclusion, Plan, PlanEvent, Target
from simulator.kinds import CONFIG_MAP
from tests.rollouts.engine.ground import CANARY, NODES, UPGRADE_SKIP, Ground
from tests.variants import nightly_but_first

pytestmark = pytest.mark.rounds

OPT_OUT = "k8saas.nvidia.com/ManagedByNVSentinel"
LEAVE, STAY = "karpenter.sh/do-not-disrupt", "cluster-autoscaler.kubernetes.io/scale-down-disabled"
BY, BACK = "quarterdeck.io/opted-out-by", "quarterdeck.io/put-back"
WATCHED = {"nvsentinel.dgxc.nvidia.com/driver.installed": "true"}
WAVE = ReleaseWave(0, (CANARY,), "1 node: the stage may have 1.")


class KilledError(BaseException):
    """The process is gone: nothing after this line ran."""


def annotations(ground: Ground, name: str = CANARY) -> dict[str, str]:
    return ground.node(name)["metadata"].get("annotations", {})


def annotate(ground: Ground, **given: str | None) -> None:
    ground.patch_node(CANARY, {"metadata": {"annotations": given}})


def ours(ground: Ground) -> dict[str, str]:
    """What is on any node by which a controller leaves it alone, and what says that it is ours."""
    return {
        f"{name} {key}": value
        for name in NODES
        for key, value in {**ground.labels(name), **annotations(ground, name)}.items()
        if key in {OPT_OUT, LEAVE, STAY, BY, BACK}
    }


def watched(ground: Ground, *names: str) -> Ground:
    ground.armed(labels=WATCHED, labelled=names or NODES)
    return ground


def released(ground: Ground, *names: str) -> Ground:
    """The canary is let go, with NVSentinel kept off it."""
    watched(ground, *names)
    ground.round()
    assert ground.labels(CANARY)[OPT_OUT] == "false"
    return ground


def uid(ground: Ground, name: str = CANARY) -> str:
    return ground.node(name)["metadata"]["uid"]


def say(verb, ground: Ground) -> None:
    verb(Plan.objects.get(pk=ground.plan.pk), actor=ground.ada, reason="It is odd.", now=ground.clock())


def rows() -> list[Exclusion]:
    return list(Exclusion.objects.all())


def change(ground: Ground) -> None:
    ground.take_the_new_driver(CANARY)
    ground.set_state(CANARY, "upgrade-done")


def test_it_is_written_in_the_patch_that_lets_the_node_go_and_recorded_before(ground: Ground):
    watched(ground)

    ground.round()

    (write,) = [one for one in ground.writes() if "/nodes/" in one["path"]]
    steps = {(step["op"], step["path"].rsplit("/", 1)[-1]) for step in write["body"]}
    assert ("remove", UPGRADE_SKIP.replace("/", "~1")) in steps
    assert ("add", OPT_OUT.replace("/", "~1")) in steps
    assert annotations(ground)[BY] == ground.plan.mark
    (row,) = rows()
    assert (row.node_name, row.controller, row.was) == (CANARY, "nvsentinel", None)
    assert row.placed_at is not None
    assert PlanEvent.objects.get(to="exclusions-set").reason == f"NVSentinel: {OPT_OUT}=false during the change."


def test_where_no_controller_is_nothing_is_written_and_nothing_kept(ground: Ground):
    ground.armed()

    ground.round()

    (write,) = [one for one in ground.writes() if "/nodes/" in one["path"]]
    assert BY not in json.dumps(write["body"])
    assert rows() == []


def test_each_controller_has_its_own_and_what_was_there_is_kept(ground: Ground):
    ground.label(CANARY, **WATCHED, **{"karpenter.sh/nodepool": "gpu"})
    annotate(ground, **{LEAVE: "false"})
    ground.armed()

    ground.round()

    assert annotations(ground)[LEAVE] == "true"
    assert {row.controller: row.was for row in rows()} == {"nvsentinel": None, "karpenter": "false"}


@pytest.mark.nightly
def test_the_cluster_autoscaler_is_known_by_its_status(ground: Ground):
    status = {"metadata": {"name": "cluster-autoscaler-status"}, "data": {"status": "Healthy"}}
    ground.store.create(CONFIG_MAP, status, "kube-system")
    ground.armed()

    ground.round()

    assert annotations(ground)[STAY] == "true"


@pytest.mark.nightly
def test_where_its_status_may_not_be_read_its_marks_on_the_node_count(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    read = client.get_config_map

    def forbidden(connection, namespace: str, name: str):
        if namespace == "quarterdeck":  # where the stop switch would be
            return read(connection, namespace, name)
        raise client.Forbidden("configmaps is forbidden.")

    annotate(ground, **{STAY: "false"})
    ground.armed()
    monkeypatch.setattr(client, "get_config_map", forbidden)

    ground.act(WAVE)

    assert annotations(ground)[STAY] == "true"


def test_a_changed_node_is_put_back_before_its_stage_soaks(ground: Ground):
    before = (ground.labels(CANARY), annotations(ground))
    released(ground)
    change(ground)
    states = []
    for _ in range(6):
        ground.round()
        states.append((ground.stage().state, OPT_OUT in ground.labels(CANARY)))

    assert (StageState.SOAKING, True) not in states
    assert (StageState.PROMOTING, False) in states
    assert ground.stage().state in {StageState.SOAKING, StageState.PASSED}
    assert ours(ground) == {}
    assert before[1] == {key: value for key, value in annotations(ground).items() if key in before[1]}
    (row,) = Exclusion.objects.filter(node_name=CANARY)
    assert row.ended_at is not None
    assert row.left_reason == ""


@pytest.mark.nightly
def test_another_value_is_restored_and_not_taken_away(ground: Ground):
    ground.label(CANARY, **{OPT_OUT: "true"})
    released(ground)
    change(ground)

    ground.rounds(4)

    assert ground.labels(CANARY)[OPT_OUT] == "true"
    assert annotations(ground).keys() & {BY, BACK} == set()


@pytest.mark.nightly
def test_what_left_the_node_alone_before_is_not_ours_and_stays(ground: Ground):
    ground.label(CANARY, **{OPT_OUT: "false"})
    watched(ground)
    ground.round()
    change(ground)

    ground.rounds(4)

    assert ground.labels(CANARY)[OPT_OUT] == "false"
    assert rows() == []


def test_a_value_that_somebody_changed_is_left_and_said(ground: Ground):
    released(ground)
    ground.label(CANARY, **{OPT_OUT: "mine"})
    change(ground)

    ground.rounds(4)

    assert ground.labels(CANARY)[OPT_OUT] == "mine"
    assert annotations(ground).keys() & {BY, BACK} == set()
    (row,) = rows()
    assert row.left_reason == f"{OPT_OUT} is mine: another owner changed it, so it stays."
    assert PlanEvent.objects.get(to="put-back").reason == row.left_reason


def test_one_that_somebody_made_ours_no_more_is_left(ground: Ground):
    """As who takes over by hand does, or who wants it for good."""
    released(ground)
    annotate(ground, **{BY: None, BACK: None})
    change(ground)

    ground.rounds(4)

    assert ground.labels(CANARY)[OPT_OUT] == "false"
    assert rows()[0].left_reason == f"{OPT_OUT} is false: another owner changed it, so it stays."


@pytest.mark.parametrize("verb", [plan_control.halt, plan_control.abort, plan_control.roll_back])
def test_who_is_called_back_is_put_back_in_the_same_patch(ground: Ground, verb):
    released(ground)
    ground.writes()

    say(verb, ground)
    ground.round(look=False)

    (write,) = [one for one in ground.writes() if one["path"].endswith(CANARY)]
    assert {"op": "remove", "path": "/metadata/labels/" + OPT_OUT.replace("/", "~1")} in write["body"]
    assert ours(ground) == {}
    assert not Exclusion.objects.in_force().exists()


@pytest.mark.nightly
def test_what_has_begun_when_somebody_halts_is_put_back_when_it_is_through(ground: Ground):
    released(ground)
    ground.set_state(CANARY, "drain-required")
    ground.rounds(2)

    say(plan_control.halt, ground)
    ground.rounds(2)
    assert ground.labels(CANARY)[OPT_OUT] == "false"
    change(ground)
    ground.rounds(3)

    assert ground.plan.state == PlanState.HALTED
    assert ours(ground) == {}


@pytest.mark.nightly
def test_one_that_is_taken_out_of_its_stage_is_put_back(ground: Ground):
    released(ground)
    ground.set_state(CANARY, "upgrade-failed")
    ground.rounds(1)
    Target.objects.filter(pk=ground.target().pk).update(state=TargetState.EXCLUDED)

    ground.rounds(1)

    assert ours(ground) == {}


@pytest.mark.nightly
def test_a_node_that_leaves_the_object_is_put_back(ground: Ground):
    released(ground)
    ground.leave(CANARY)

    ground.rounds(4)

    assert ours(ground) == {}
    assert not Exclusion.objects.in_force().exists()


def test_of_a_node_that_is_gone_nothing_is_left_to_put_back(ground: Ground):
    released(ground)
    ground.delete(CANARY)

    ground.rounds(4)

    assert not Exclusion.objects.in_force().exists()
    assert rows()[0].left_reason == "The node is gone."


def test_of_a_node_that_was_made_again_under_its_name_nothing_is_touched(ground: Ground):
    released(ground)
    row = Exclusion.objects.get()
    Exclusion.objects.update(node_uid="of-the-node-that-was")
    ground.writes()

    ground.act(PutBack({"of-the-node-that-was": CANARY}))

    assert ground.writes() == []
    row.refresh_from_db()
    assert row.ended_at is not None
    assert ground.labels(CANARY)[OPT_OUT] == "false"


POINTS = {
    "after the patch": (client, "patch_node", True),
    "before the patch": (client, "patch_node", False),
    "before it is read back": (exclusions, "read_back", False),
    "after it is read back": (exclusions, "read_back", True),
}


@pytest.mark.parametrize("point", nightly_but_first(POINTS))
def test_a_worker_killed_in_the_release_forgets_nothing(ground: Ground, monkeypatch: pytest.MonkeyPatch, point: str):
    watched(ground)
    where, name, is_after = POINTS[point]
    act = getattr(where, name)

    def die(*given):
        if is_after:
            act(*given)
        raise KilledError

    with monkeypatch.context() as patched:
        patched.setattr(where, name, die)
        with pytest.raises(KilledError):
            ground.round()
    ground.clock.move(minutes=1)
    ground.rounds(3)
    assert ground.labels(CANARY)[OPT_OUT] == "false"
    assert rows()[0].placed_at is not None

    change(ground)
    ground.rounds(4)

    assert ours(ground) == {}
    assert not Exclusion.objects.in_force().exists()


BACK_POINTS = {
    "after the patch": (client, "patch_node", True),
    "before the patch": (client, "patch_node", False),
    "before it is settled": (exclusions, "settle", False),
    "after it is settled": (exclusions, "settle", True),
}


@pytest.mark.parametrize("point", nightly_but_first(BACK_POINTS))
def test_a_worker_killed_as_it_puts_back_does_it_again(ground: Ground, monkeypatch: pytest.MonkeyPatch, point: str):
    released(ground, CANARY)
    change(ground)
    where, name, is_after = BACK_POINTS[point]
    act = getattr(where, name)

    def die(*given):
        if is_after:
            act(*given)
        raise KilledError

    with monkeypatch.context() as patched:
        patched.setattr(where, name, die)
        with pytest.raises(KilledError):
            ground.rounds(6)
    ground.clock.move(minutes=1)
    ground.rounds(6)

    assert ours(ground) == {}
    assert not Exclusion.objects.in_force().exists()
    assert Exclusion.objects.count() == 1


def test_one_released_by_hand_before_we_were_through_is_excluded_all_the_same(ground: Ground):
    watched(ground)
    stage = ground.stage()
    node = client.get_node(ground.connection, CANARY)
    off = {uid(ground): exclusions.wanted_for(node, has_autoscaler=False)}
    writer = ground.writer()
    waves._intend(writer.plan, stage, [ground.target()], {}, off=off, reason="", now=ground.clock())
    writer.plan.end_lease(now=ground.clock(), next_look_at=ground.clock(), waiting_for="")
    ground.patch_node(
        CANARY, {"metadata": {"labels": {UPGRADE_SKIP: None}, "annotations": {"quarterdeck.io/held-by": None}}}
    )

    ground.rounds(3)

    assert ground.labels(CANARY)[OPT_OUT] == "false"
    assert rows()[0].placed_at is not None


def test_it_is_as_it_was_when_the_patch_was_sent_that_is_kept(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    """Somebody writes between the intent and the act."""
    watched(ground)
    release = waves._release

    def be_late(*given):
        ground.label(CANARY, **{OPT_OUT: "perhaps"})
        release(*given)

    monkeypatch.setattr(waves, "_release", be_late)
    ground.act(WAVE)

    assert ground.labels(CANARY)[OPT_OUT] == "false"
    assert rows()[0].was == "perhaps"
    assert json.loads(annotations(ground)[BACK])["metadata"]["labels"] == {OPT_OUT: "perhaps"}


def test_one_that_somebody_opts_out_in_between_is_theirs(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    watched(ground)
    release = waves._release

    def be_late(*given):
        ground.label(CANARY, **{OPT_OUT: "false"})
        release(*given)

    monkeypatch.setattr(waves, "_release", be_late)
    ground.act(WAVE)

    assert BY not in annotations(ground)
    assert rows()[0].left_reason == f"NVSentinel already ignored the node: another owner set {OPT_OUT} to false."


def test_a_release_that_loses_keeps_nobody_off(ground: Ground):
    watched(ground)
    writer = ground.writer()
    say(plan_control.pause, ground)

    with pytest.raises(LostRace):
        waves.release_wave(writer, WAVE)

    assert rows() == []
    assert ours(ground) == {}


@pytest.mark.parametrize("act", [PutBack, ExcludeAgain])
def test_whose_lease_is_over_writes_nothing(ground: Ground, act):
    released(ground)
    old: Writer = ground.writer()
    ground.clock.move(minutes=1)
    ground.take_lease()
    ground.writes()

    with pytest.raises(LostRace):
        {PutBack: exclusions.put_back, ExcludeAgain: exclusions.exclude_again}[act](old, act({uid(ground): CANARY}))

    assert ground.writes() == []
    assert Exclusion.objects.get().is_wanted


def test_a_foreign_write_in_between_is_read_and_not_overwritten(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    """The patch tests what it saw: it loses, and looks again."""
    released(ground)
    read, asked = client.get_node, []

    def read_and_be_late(*given):
        seen = read(*given)
        asked.append(seen)
        if len(asked) == 1:
            ground.label(CANARY, **{OPT_OUT: "mine"})
        return seen

    monkeypatch.setattr(client, "get_node", read_and_be_late)
    ground.act(PutBack({uid(ground): CANARY}))

    assert len(asked) == 2
    assert ground.labels(CANARY)[OPT_OUT] == "mine"
    assert BY not in annotations(ground)


@pytest.mark.nightly
def test_what_may_not_be_put_back_keeps_the_stage_from_its_soak_and_is_named(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
):
    released(ground)
    change(ground)

    def forbidden(*_given):
        raise client.Forbidden("nodes is forbidden.")

    with monkeypatch.context() as patched:
        patched.setattr(client, "patch_node", forbidden)
        ground.rounds(5)
        assert ground.stage().state == StageState.PROMOTING
        assert ground.plan.waiting_for == (
            f"Canary soaks once the exclusion of {CANARY} from NVSentinel is removed. nodes is forbidden."
        )

    ground.rounds(2)

    assert ground.stage().state == StageState.SOAKING


@pytest.mark.nightly
def test_the_soak_is_counted_from_when_it_was_put_back(ground: Ground):
    ground.label(CANARY, **WATCHED)
    gates = {"driver_version": {}, "failure_budget": {}, "soak": {"duration_s": 600}}
    ground.armed(gates=gates)
    ground.round()
    change(ground)
    ground.rounds(6)

    row = Exclusion.objects.get()
    live = ask_cluster(ground.plan, ground.connection)
    stage = observe(ground.plan, live, now=ground.clock()).stages[0]

    assert ground.stage().state == StageState.SOAKING
    assert stage.evidence.others_passing_since is not None
    assert stage.evidence.others_passing_since >= row.ended_at


@pytest.mark.nightly
def test_a_plan_whose_rows_forgot_it_does_not_end_before_it_is_put_back(ground: Ground):
    """What the API server's own list shows counts."""
    released(ground)
    say(plan_control.abort, ground)
    ground.round(look=False)
    forgotten = {"metadata": {"labels": {OPT_OUT: None}, "annotations": {BY: None, BACK: None}}}
    annotate(ground, **{BY: ground.plan.mark, BACK: json.dumps(forgotten)})
    ground.label(CANARY, **{OPT_OUT: "false"})
    for _ in range(12):
        for name in NODES:
            if "nvidia.com/gpu-driver-upgrade-state" not in ground.labels(name):
                ground.set_state(name, "upgrade-done")
        if ground.round().is_final:
            break

    assert ground.plan.state == PlanState.ABORTED, ground.plan.waiting_for
    assert ours(ground) == {}
    assert f"The exclusion of {CANARY} from NVSentinel is removed." in ground.plan.reason


def test_a_recall_that_arrives_first_makes_the_late_release_lose_whole(ground: Ground, monkeypatch):
    watched(ground)
    sent: list[tuple] = []

    def send_late(*given):
        sent.append(given)
        raise client.Unreachable("It did not answer in time.")

    with monkeypatch.context() as patched:
        patched.setattr(client, "patch_node", send_late)
        with pytest.raises(client.Unreachable):
            waves.release_wave(ground.writer(), WAVE)
    say(plan_control.halt, ground)
    ground.clock.move(minutes=1)
    ground.act(Recall(0, (CANARY,)))

    with pytest.raises(client.Conflict):
        client.patch_node(*sent[0])
    assert ours(ground) == {}


def test_release_all_shows_and_puts_back_what_the_cluster_says_is_ours(ground: Ground):
    """Z33."""
    ground.label(CANARY, **{OPT_OUT: "true"})
    released(ground)
    shown = StringIO()
    call_command("release_all", "north", "--dry-run", stdout=shown)
    assert f"north {CANARY}: {OPT_OUT}=false by {ground.plan.mark}; would be restored" in shown.getvalue()
    assert ground.labels(CANARY)[OPT_OUT] == "false"

    call_command("release_all", "north", "--give-up-plans", "We leave.", stdout=StringIO())

    assert ground.labels(CANARY)[OPT_OUT] == "true"
    assert annotations(ground).keys() & {BY, BACK} == set()
    assert not Exclusion.objects.in_force().exists()
