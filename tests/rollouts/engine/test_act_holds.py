from datetime import timedelta

import pytest

from edges.transition_errors import LostRace
from gpu.labels import HELD_SINCE
from kube import client
from rollouts.commands.plan_control import abort, halt, pause
from rollouts.engine.act import holds
from rollouts.engine.act.holds import hold_node, want
from rollouts.engine.decide.acts import LiftHolds, PlaceHolds
from rollouts.models import Hold, Plan
from rollouts.models.plan import LEASE
from tests.make import NOON
from tests.rollouts.engine.ground import CANARY, HELD_BY, NODES, REST, UPGRADE_SKIP, Ground


def uids(ground: Ground, *names: str) -> dict[str, str]:
    return {ground.node(name)["metadata"]["uid"]: name for name in names or NODES}


def test_a_hold_carries_our_name_and_is_read_back(ground: Ground):
    """Z33: whoever finds the label can see whose it is."""
    ground.start()

    ground.act(PlaceHolds(uids(ground)))

    assert ground.held() == set(NODES)
    assert ground.node(CANARY)["metadata"]["annotations"][HELD_BY] == ground.plan.mark
    assert not Hold.objects.filter(plan=ground.plan).unfinished().exists()


def test_every_patch_tests_that_it_is_the_node_we_saw(ground: Ground):
    ground.start()

    ground.act(PlaceHolds(uids(ground, CANARY)))

    (write,) = ground.writes()
    tested = {one["path"]: one["value"] for one in write["body"] if one["op"] == "test"}
    assert tested["/metadata/uid"] == ground.node(CANARY)["metadata"]["uid"]


def test_holding_twice_writes_once(ground: Ground):
    ground.start()
    act = PlaceHolds(uids(ground))

    ground.act(act)
    ground.act(act)

    assert len(ground.writes()) == len(NODES)


def test_taking_a_hold_off_leaves_no_trace(ground: Ground):
    ground.start()
    ground.act(PlaceHolds(uids(ground)))

    ground.act(LiftHolds(uids(ground)))

    assert ground.held() == set()
    assert HELD_BY not in ground.node(CANARY)["metadata"]["annotations"]
    assert not Hold.objects.filter(plan=ground.plan).unfinished().exists()


def test_a_label_of_somebody_else_is_never_taken_off(ground: Ground):
    ground.start()
    ground.label(CANARY, **{UPGRADE_SKIP: "true"})

    ground.act(LiftHolds(uids(ground, CANARY)))

    assert CANARY in ground.held()
    assert ground.writes() == []


def test_of_a_label_that_has_another_value_by_now_our_mark_alone_goes(ground: Ground):
    ground.start()
    ground.act(PlaceHolds(uids(ground)))
    ground.label(CANARY, **{UPGRADE_SKIP: "by-bob"})

    ground.act(LiftHolds(uids(ground)))

    shown = ground.node(CANARY)["metadata"]
    assert shown["labels"][UPGRADE_SKIP] == "by-bob"
    assert not {HELD_BY, HELD_SINCE} & set(shown["annotations"])
    assert not Hold.objects.filter(plan=ground.plan).unfinished().exists()


def test_a_label_is_taken_off_with_the_value_that_was_seen(ground: Ground):
    """What somebody writes between our read and our patch is theirs: the patch fails, and the node is read again."""
    ground.start()
    ground.act(PlaceHolds(uids(ground, CANARY)))

    ground.act(LiftHolds(uids(ground, CANARY)))

    place = f"/metadata/labels/{UPGRADE_SKIP.replace('/', '~1')}"
    steps = [step for step in ground.writes()[-1]["body"] if step["path"] == place]
    assert steps == [{"op": "test", "path": place, "value": "true"}, {"op": "remove", "path": place}]


@pytest.mark.parametrize(("theirs", "words"), [("maint-bob", "named maint-bob"), (None, "named nobody")])
def test_a_hold_that_somebody_rewrote_is_taken_back_and_the_history_says_so(ground: Ground, theirs, words):
    ground.start()
    ground.act(PlaceHolds(uids(ground)))
    ground.patch_node(CANARY, {"metadata": {"annotations": {HELD_BY: theirs}}})

    ground.act(PlaceHolds(uids(ground)))
    ground.act(PlaceHolds(uids(ground)))

    assert ground.node(CANARY)["metadata"]["annotations"][HELD_BY] == ground.plan.mark
    (event,) = ground.plan.events.filter(to="hold-rewritten")
    assert (event.what, event.actor) == (
        "note",
        "somebody else",
    )
    assert event.target is not None
    assert event.target.node_name == CANARY
    assert words in event.reason
    assert ground.plan.mark in event.reason


def test_a_label_of_somebody_else_that_comes_back_before_ours_is_placed_stays_theirs(ground: Ground):
    """Rows showed the node without it, so that the plan would hold it itself: it is not ours to write over."""
    ground.label(REST[0], **{UPGRADE_SKIP: "true"})
    ground.look()
    ground.start()
    ground.free(REST[0])
    ground.look()
    ground.label(REST[0], **{UPGRADE_SKIP: "true"})

    ground.act(PlaceHolds(uids(ground, REST[0])))

    assert HELD_BY not in ground.node(REST[0])["metadata"].get("annotations", {})
    assert ground.plan.holds.get(node_name=REST[0]).is_foreign
    assert not ground.plan.events.filter(to="hold-rewritten").exists()
    assert not Hold.objects.filter(plan=ground.plan, node_name=REST[0]).exclude(placed_at=None).exists()


def test_a_node_that_joins_with_a_label_of_somebody_else_is_left_to_them(ground: Ground):
    """No row has shown the label yet."""
    ground.start()
    ground.plan.holds.filter(node_name=REST[0]).delete()
    ground.label(REST[0], **{UPGRADE_SKIP: "true"})

    ground.act(PlaceHolds(uids(ground, REST[0])))

    assert HELD_BY not in ground.node(REST[0])["metadata"].get("annotations", {})
    assert ground.plan.holds.get(node_name=REST[0]).is_foreign


def test_what_somebody_wrote_into_a_hold_is_bounded_in_the_history(ground: Ground):
    ground.start()
    ground.act(PlaceHolds(uids(ground, CANARY)))
    ground.patch_node(CANARY, {"metadata": {"annotations": {HELD_BY: "x" * 200_000}}})

    ground.act(PlaceHolds(uids(ground, CANARY)))

    assert len(ground.plan.events.get(to="hold-rewritten").reason) < 300


def test_a_hold_that_is_not_written_back_is_not_said_to_be(ground: Ground):
    ground.start()
    ground.act(PlaceHolds(uids(ground, CANARY)))
    ground.patch_node(CANARY, {"metadata": {"annotations": {HELD_BY: "maint-bob"}}})

    ground.act(PlaceHolds({"uid-of-another": CANARY}))

    assert not ground.plan.events.filter(to="hold-rewritten").exists()


def test_a_hold_that_somebody_took_off_is_put_back_and_the_history_says_so(ground: Ground):
    ground.start()
    ground.act(PlaceHolds(uids(ground)))
    ground.free(CANARY)

    ground.act(PlaceHolds(uids(ground)))
    ground.act(PlaceHolds(uids(ground)))

    (event,) = ground.plan.events.filter(actor="somebody else")
    assert (event.what, event.to) == ("note", "hold-removed")
    assert event.target is not None
    assert event.target.node_name == CANARY
    assert UPGRADE_SKIP in event.reason


def test_a_hold_that_we_took_off_ourselves_is_nobodys_doing(ground: Ground):
    """Also where the worker died between the patch and the row."""
    ground.start()
    ground.act(PlaceHolds(uids(ground, CANARY)))
    ground.free(CANARY)
    for is_wanted in (False, True):
        ground.clock.move(seconds=1)
        plan = ground.take_lease()
        want(plan, uids(ground, CANARY), is_wanted=is_wanted, now=ground.clock())
        plan.end_lease(now=ground.clock(), next_look_at=ground.clock(), waiting_for="")

    ground.act(PlaceHolds(uids(ground, CANARY)))

    assert CANARY in ground.held()
    assert not ground.plan.events.filter(actor="somebody else").exists()


def test_one_nodes_error_stops_no_other(ground: Ground):
    ground.start()
    wanted = {"uid-of-a-node-that-is-gone": "gpu-h100-000"} | uids(ground)

    ground.act(PlaceHolds(wanted))

    assert ground.held() == set(NODES)
    assert Hold.objects.get(plan=ground.plan, node_name="gpu-h100-000").trouble


def test_a_node_that_left_and_came_back_is_another_node(ground: Ground):
    ground.start()

    ground.act(PlaceHolds({"uid-of-the-old-one": CANARY}))

    assert ground.held() == set()
    assert (
        "is now a different node with the same name"
        in Hold.objects.get(plan=ground.plan, node_uid="uid-of-the-old-one").trouble
    )


def test_the_intent_loses_when_the_lease_is_over(ground: Ground):
    ground.start()
    plan = ground.take_lease()
    ground.clock.move(minutes=1)
    ground.take_lease()

    with pytest.raises(LostRace):
        want(plan, uids(ground), is_wanted=False, now=ground.clock())

    assert not Hold.objects.filter(plan=plan, is_wanted=False).exists()


def test_a_node_that_the_operator_queued_since_we_looked_stays_held(ground: Ground):
    """Z5, Z25: let go now, it would be emptied for nothing."""
    ground.armed()
    ground.set_state(REST[0], "upgrade-required")
    ground.set_state(REST[1], "upgrade-done")

    ground.act(LiftHolds(uids(ground, *REST)))

    assert ground.held() & set(REST) == {REST[0]}
    assert Hold.objects.get(plan=ground.plan, node_name=REST[0]).placed_at


@pytest.mark.parametrize("word", [halt, pause, abort])
def test_a_word_in_the_middle_of_holding_is_obeyed_before_the_next_node(ground: Ground, monkeypatch, word):
    """Z3: five thousand nodes take minutes, and nobody waits for them to be through."""
    ground.start()
    hold = holds.hold_node

    def told_meanwhile(*given, **named) -> bool:
        done = hold(*given, **named)
        word(Plan.objects.get(pk=ground.plan.pk), actor=ground.ada, reason="Not now.", now=ground.clock())
        return done

    monkeypatch.setattr(holds, "hold_node", told_meanwhile)

    with pytest.raises(LostRace):
        ground.act(PlaceHolds(uids(ground)))

    assert len(ground.writes()) == 1


def test_an_act_ends_after_some_seconds_and_the_next_goes_on(ground: Ground, monkeypatch):
    """So that its page says how far it is."""
    ground.start()
    hold = holds.hold_node

    def slowly(*given, **named) -> bool:
        ground.clock.move(seconds=8)
        return hold(*given, **named)

    monkeypatch.setattr(holds, "hold_node", slowly)
    ground.act(PlaceHolds(uids(ground)))
    first = ground.held()
    ground.act(PlaceHolds(uids(ground)))

    assert len(first) == 2
    assert ground.held() == set(NODES)


def test_an_act_keeps_its_lease_while_it_goes_on(ground: Ground, monkeypatch):
    ground.start()
    until = []

    def held(*given, **named) -> bool:
        ground.clock.move(seconds=2)
        until.append(Plan.objects.get(pk=ground.plan.pk).lease_until - ground.clock())
        return True

    monkeypatch.setattr(holds, "hold_node", held)
    ground.act(PlaceHolds(uids(ground)))

    assert min(until) >= LEASE - timedelta(seconds=2)


def test_a_node_that_another_plan_is_changing_is_left_to_it(ground: Ground):
    """It joined the object later: its label would get our name, and the other plan could not take it off."""
    ground.start()
    Hold.objects.filter(plan=ground.plan, node_name=CANARY).delete()
    uid = ground.node(CANARY)["metadata"]["uid"]
    other = Plan.objects.create(
        cluster=ground.cluster, title="", object_uid="other", lease_until=NOON, state="promoting", state_since=NOON,
        created_at=NOON, edited_at=NOON,
    )  # fmt: skip
    Hold.objects.create(plan=other, node_uid=uid, node_name=CANARY, wanted_since=NOON)

    ground.act(PlaceHolds({uid: CANARY}))

    assert not Hold.objects.filter(plan=ground.plan, node_name=CANARY).exists()
    assert CANARY not in ground.held()


def test_a_worker_that_lost_its_turn_while_it_read_a_node_writes_nothing(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
):
    """It slept between its look and its patch; the plan may be over by now, and its label would stay for ever."""
    ground.start()
    writer, read = ground.writer(), client.get_node

    def sleep_and_read(*asked):
        seen = read(*asked)
        ground.clock.move(minutes=1)
        ground.take_lease()
        return seen

    monkeypatch.setattr(client, "get_node", sleep_and_read)
    with pytest.raises(LostRace):
        hold_node(writer, *next(iter(uids(ground, CANARY).items())))

    assert ground.held() == set()
