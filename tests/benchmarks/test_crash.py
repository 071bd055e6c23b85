"""What the bench of crashes finds in a log, and what it does not take for a fault."""

from typing import Any

import pytest

from benchmarks.crashing.nodes_seen import LOADED, NodeSeen
from benchmarks.crashing.oracle import Reading, at_the_end
from benchmarks.crashing.seams import Kind, Write, once_decided
from benchmarks.crashing.words import ENGINE, Word

NODE = "gpu-001"
OLD, NEW = "580.95.05", "580.126.20"
SKIP = "nvidia.com/gpu-driver-upgrade.skip"
PLACE = f"/metadata/labels/{SKIP.replace('/', '~1')}"
OURS, OPERATOR = "quarterdeck/0.1.0", "gpu-operator"


def asked(
    path: str, body: object, who: str = OURS, *, second: int = 0, method: str = "PATCH", turn: str = "turn-1"
) -> dict:
    at = f"2026-11-21T12:00:{second:02}.000000Z"
    return {
        "n": 1,
        "at": at,
        "user_agent": who,
        "user": turn,
        "method": method,
        "path": path,
        "code": 200,
        "body": body,
    }


def held(name: str, **labels: str) -> dict:
    return {"metadata": {"name": name, "uid": f"uid-{name}", "labels": {SKIP: "true", **labels}, "annotations": {}}}


def release(name: str = NODE, *, second: int = 0) -> dict:
    return asked(f"/api/v1/nodes/{name}", [{"op": "remove", "path": PLACE}], second=second)


def hold(name: str = NODE) -> dict:
    return asked(f"/api/v1/nodes/{name}", [{"op": "add", "path": PLACE, "value": "true"}])


def state(to: str, name: str = NODE) -> dict:
    labels = {"nvidia.com/gpu-driver-upgrade-state": to}
    return asked(f"/api/v1/nodes/{name}", {"metadata": {"labels": labels}}, OPERATOR)


OBJECT = "/apis/nvidia.com/v1alpha1/nvidiadrivers/h100"
READ = asked(OBJECT, None, method="GET")
WRITTEN = asked(OBJECT, [{"op": "replace", "path": "/spec/version", "value": NEW}])


def ask(path: str, *, turn: str = "turn-1") -> dict:
    return asked(path, None, method="GET", turn=turn)


def said(verb: str, after: int, *, second: int = 0, who: str = "ada") -> Word:
    return Word(after, f"2026-11-21T12:00:{second:02}.000000Z", who, verb)


def reading_of(
    entries: list[dict], *words: Word, nodes: int = 1, budget: int = 1, parallel: int = 9, canary: str = NODE,
    asks: bool = False,
) -> Reading:  # fmt: skip
    names = [NODE, *(f"gpu-{number:03}" for number in range(2, nodes + 1))]
    before = [held(name, **{LOADED: OLD}) | {"spec": {}} for name in names]
    reading = Reading(
        entries, words, before, selector={}, version=OLD, new=NEW,
        budget=budget, parallel=parallel, canary=canary, asks=asks,
    )  # fmt: skip
    reading.version_read["turn-1"] = OLD
    for node in reading.nodes.values():  # ours, as the log would have it
        node.annotations["quarterdeck.io/held-by"] = "plan-1"
    return reading


def found(entries: list[dict], *words: Word, **given: Any) -> set[str]:
    return {one.figure for one in reading_of(entries, *words, **given).read()}


def test_one_release_of_a_plan_that_goes_on_is_nothing():
    assert found([WRITTEN, release()]) == set()


@pytest.mark.parametrize(
    ("verb", "figure"),
    [
        ("halt", "releases_after_halt"),
        ("abort", "releases_after_halt"),
        ("rollback", "releases_after_halt"),
        ("pause", "lost_pauses"),
        ("freeze", "releases_while_frozen"),
        ("close", "releases_while_frozen"),
    ],
)
def test_a_release_after_a_word_that_stops_it_is_found(verb: str, figure: str):
    assert found([WRITTEN, release(second=2)], said(verb, 1, second=1)) == {figure}


def test_a_release_despite_the_stop_in_the_cluster_is_found_once_it_could_have_been_asked_for():
    assert found([WRITTEN, release()], said("stop", 1)) == set()
    assert found([WRITTEN, ask("/x"), release()], said("stop", 1)) == {"releases_after_halt"}


def test_a_release_that_was_sent_before_the_word_is_none():
    """It arrives behind it, and no round has been since."""
    assert found([WRITTEN, release(second=1)], said("halt", 1, second=2)) == set()


def test_a_release_that_arrives_after_a_whole_round_should_have_been_kept():
    words = said("halt", 1, second=2), said("is halted", 1, second=3, who=ENGINE)
    assert found([WRITTEN, release(second=1)], *words) == {"releases_after_halt"}


def test_a_halt_that_is_gone_without_a_word_is_lost():
    words = said("halt", 1, second=2), said("is promoting", 1, second=3, who=ENGINE)
    assert found([WRITTEN], *words) == {"lost_halts"}


def test_a_node_that_had_begun_is_released_twice():
    begun = [state("cordon-required"), state("upgrade-done"), hold()]
    assert found([WRITTEN, release(), *begun, release()]) == {"double_releases"}


def test_a_node_that_was_recalled_may_go_again():
    assert found([WRITTEN, release(), hold(), release()]) == set()


def test_a_version_that_somebody_wrote_since_it_was_read_is_nobodys_release():
    theirs = asked(OBJECT, {"spec": {"version": NEW}}, "kubectl", turn="admin")
    assert found([READ, theirs, release(second=2)], said("rollback", 0)) == set()
    both = {"releases_after_halt", "releases_to_others"}
    assert found([theirs, READ, release(second=2)], said("rollback", 0)) == both


def test_a_second_node_is_past_a_budget_of_one():
    entries = [WRITTEN, release(), release("gpu-002")]
    assert found(entries, nodes=2) == {"over_budget"}
    assert found(entries, nodes=2, budget=2) == set()


def test_a_node_that_somebody_has_cordoned_is_past_the_operators_slots():
    """Known when the wave was made up; what comes after that is not seen by whoever makes it up."""
    cordoned = asked(f"/api/v1/nodes/{NODE}", {"spec": {"unschedulable": True}}, "kubectl")
    node = ask(f"/api/v1/nodes/{NODE}")
    wave = ask("/api/v1/namespaces/kube-system/configmaps/cluster-autoscaler-status")
    assert found([WRITTEN, cordoned, node, wave, release()]) == {"over_budget"}
    assert found([WRITTEN, node, wave, cordoned, node, release()]) == set()


def changed(name: str, **spec: bool) -> dict:
    return asked(f"/api/v1/nodes/{name}", {"metadata": {"labels": {LOADED: NEW}}, "spec": spec}, OPERATOR)


PUT_BACK = [READ, asked(OBJECT, [{"op": "replace", "path": "/spec/version", "value": OLD}])]


def test_who_goes_back_is_past_the_operators_slots_too():
    entries = [WRITTEN, changed(NODE), changed("gpu-002"), *PUT_BACK, release(), release("gpu-002")]
    assert found(entries, nodes=2, budget=2, parallel=1) == {"over_budget"}
    assert found(entries, nodes=2, budget=2, parallel=2) == set()


def test_who_is_unavailable_goes_back_past_those_slots():
    broken = changed("gpu-002", unschedulable=True)
    entries = [WRITTEN, changed(NODE), broken, *PUT_BACK, release(), release("gpu-002")]
    assert found(entries, nodes=2, budget=2, parallel=1) == set()


def test_who_waits_held_in_the_operators_queue_takes_none_of_its_slots():
    failed = [release("gpu-002"), state("upgrade-failed", "gpu-002")]
    queued = [hold("gpu-002"), state("upgrade-required", "gpu-002")]
    assert found([WRITTEN, *failed, *queued, release()], nodes=2, budget=2, parallel=1) == set()
    assert found([WRITTEN, *failed, release()], nodes=2, budget=2, parallel=1) == {"over_budget"}


LOOKED_AT = [ask(f"/api/v1/nodes/{NODE}"), ask("/api/v1/namespaces/kube-system/configmaps/cluster-autoscaler-status")]


def test_a_node_that_had_begun_when_its_wave_looked_at_it_is_released_twice():
    forced = state("cordon-required")
    assert found([WRITTEN, forced, *LOOKED_AT, release()]) == {"double_releases"}
    assert found([WRITTEN, *LOOKED_AT, forced, release()]) == set()  # nobody could know


def test_a_node_whose_labels_name_a_frozen_pool_may_not_go():
    moved = asked(f"/api/v1/nodes/{NODE}", {"metadata": {"labels": {"quiet": "true"}}}, "kubectl")
    frozen = said("freeze quiet", 0)
    assert found([WRITTEN, moved, *LOOKED_AT, release()], frozen) == {"releases_while_frozen"}
    assert found([WRITTEN, *LOOKED_AT, release()], frozen) == set()
    assert found([WRITTEN, moved, *LOOKED_AT, release()], frozen, said("lift", 1)) == set()


def test_what_a_node_showed_in_an_earlier_look_is_forgotten():
    cordon, uncordon = (
        asked(f"/api/v1/nodes/{NODE}", {"spec": {"unschedulable": is_cordoned}}, "kubectl")
        for is_cordoned in (True, None)
    )
    node, wave = LOOKED_AT
    assert found([WRITTEN, cordon, node, uncordon, node, wave, release()]) == set()


def test_a_node_that_was_made_anew_under_its_name_is_not_the_one_that_may_go():
    anew = held(NODE, **{LOADED: OLD})
    anew["metadata"]["annotations"] = {"quarterdeck.io/held-by": "plan-1"}
    made = asked("/api/v1/nodes", anew, "kubectl", method="POST", turn="admin")
    assert found([WRITTEN, made, release()]) == {"unapproved_releases"}
    assert found([made, release()]) == set()  # its object asks for the version that it has


def test_a_turn_has_decided_once_it_asks_for_the_lease():
    writes = [Write(Kind.LEASE, 3, 2), Write(Kind.LEASE, 6, 4), Write(Kind.RELEASE, 16, 9)]
    assert once_decided([1, 4, 7, 9, 11, 13, 15, 18], writes, 16) == [7, 9, 11]
    assert once_decided([1, 4], [], 5) == [1]


def test_a_version_that_is_written_while_a_node_is_free_is_found():
    freed = asked(f"/api/v1/nodes/{NODE}", {"metadata": {"labels": {SKIP: None}}}, "kubectl")
    listed = asked("/api/v1/nodes", None, method="GET")
    assert found([freed, listed, WRITTEN]) == {"unheld_writes"}
    assert found([listed, freed, WRITTEN]) == set()  # nobody could know


def test_who_listed_the_nodes_in_an_earlier_turn_knows_nothing_of_them():
    freed = asked(f"/api/v1/nodes/{NODE}", {"metadata": {"labels": {SKIP: None}}}, "kubectl")
    assert found([ask("/api/v1/nodes", turn="turn-0"), freed, WRITTEN]) == {"unheld_writes"}


def test_a_version_that_somebody_else_set_is_not_written_over():
    theirs = asked(OBJECT, {"spec": {"version": "550.90.07"}}, "kubectl", turn="admin")
    assert found([READ, theirs, WRITTEN]) == {"versions_overwritten"}
    assert found([theirs, READ, WRITTEN]) == set()


@pytest.mark.parametrize("words", [(), (said("abort", 0),)], ids=["going on", "given up"])
def test_a_node_that_is_let_go_to_a_version_of_somebody_else_is_found(words: tuple[Word, ...]):
    """Hazard Z38: also while the plan has written none, as it was given up early."""
    theirs = asked(OBJECT, {"spec": {"version": "550.90.07"}}, "kubectl", turn="admin")
    assert "releases_to_others" in found([theirs, READ, release()], *words)
    assert found([READ, theirs, release()], *words) == set()  # nobody could know


def test_a_write_to_another_cluster_at_the_same_address_is_found():
    whose = ask("/api/v1/namespaces/kube-system")
    assert found([whose, WRITTEN], said("elsewhere", 1)) == set()  # nobody could know
    assert found([whose, WRITTEN], said("elsewhere", 0)) == {"writes_to_another"}
    assert found([WRITTEN], said("elsewhere", 0), said("here again", 0)) == set()


def test_who_begins_where_it_may_only_be_watched_writes_nothing():
    assert found([WRITTEN], said("watch only", 1)) == set()
    assert found([WRITTEN], said("watch only", 0)) == {"writes_to_another"}
    assert found([WRITTEN], said("watch only", 0), said("may write", 0)) == set()


def test_an_approval_that_is_void_lets_nothing_go():
    entries = [WRITTEN, release()]
    assert found(entries, said("approve", 0), canary="another", asks=True) == set()
    void = said("approve", 0), said("void", 0)
    assert found(entries, *void, canary="another", asks=True) == {"unapproved_releases"}
    assert found(entries, *void, said("approve", 0), canary="another", asks=True) == set()


def test_a_node_without_a_driver_yet_may_be_free():
    joined = asked("/api/v1/nodes", {"metadata": {"name": "gpu-late"}}, "kubelet", method="POST")
    listed = asked("/api/v1/nodes", None, method="GET")
    assert found([joined, listed, WRITTEN]) == set()


def test_what_a_plan_leaves_behind_is_found():
    done = {"nvidia.com/cuda.driver-version.full": NEW, "nvidia.com/gpu-driver-upgrade-state": "upgrade-done"}
    node = held(NODE, **done) | {"spec": {"unschedulable": True}}
    node["metadata"]["annotations"] = {"quarterdeck.io/held-by": "plan-1"}
    told = {"state": "promoted", "mark": "plan-1", "version": NEW, "left_out": set()}

    assert {one.figure for one in at_the_end([node], cordoned=set(), **told)} == {"leaked_labels", "leaked_cordons"}
    assert {one.figure for one in at_the_end([node], cordoned={NODE}, **told)} == {"leaked_labels"}


def test_a_node_that_loses_its_driver_once_its_plan_has_looked_for_the_last_time_may_stay_held():
    without = {"metadata": {"labels": {"nvidia.com/gpu.deploy.driver": "false"}}}
    lost = asked(f"/api/v1/nodes/{NODE}", without, "kubectl")
    looked = ask("/api/v1/namespaces/gpu-operator/pods")
    node = held(NODE, **{LOADED: NEW, "nvidia.com/gpu.deploy.driver": "false"}) | {"spec": {}}
    node["metadata"]["annotations"] = {"quarterdeck.io/held-by": "plan-1"}
    told = {"state": "aborted", "mark": "plan-1", "version": OLD, "left_out": set(), "cordoned": set()}

    def left(*entries: dict) -> list[str]:
        reading = reading_of(list(entries))
        reading.read()
        return [one.figure for one in at_the_end([node], left_unseen=reading.left_unseen, **told)]

    assert left(looked, lost) == []
    assert left(looked, lost, state("upgrade-done"), looked) == ["leaked_labels"]
    assert left(lost, looked, state("upgrade-done")) == ["leaked_labels"]


def test_a_node_that_was_made_anew_under_a_targets_name_is_in_no_stage_and_may_stay_held():
    node = held(NODE, **{LOADED: OLD}) | {"spec": {}}
    node["metadata"]["annotations"] = {"quarterdeck.io/held-by": "plan-1"}
    told = {"state": "promoted", "mark": "plan-1", "version": NEW, "cordoned": set()}

    assert [one.figure for one in at_the_end([node], left_out={NODE}, **told)] == ["leaked_labels"]
    assert list(at_the_end([node], left_out={"uid-gpu-001"}, **told)) == []


SENTINEL = "k8saas.nvidia.com/ManagedByNVSentinel"
MARKED = f"/metadata/labels/{SENTINEL.replace('/', '~1')}"
EXCLUDED_BY = "/metadata/annotations/quarterdeck.io~1opted-out-by"


def opt_out() -> dict:
    steps = [(MARKED, "false"), (EXCLUDED_BY, "plan-1")]
    return asked(f"/api/v1/nodes/{NODE}", [{"op": "add", "path": path, "value": value} for path, value in steps])


def put_back(was: str | None) -> dict:
    mark = {"op": "remove", "path": MARKED} if was is None else {"op": "replace", "path": MARKED, "value": was}
    return asked(f"/api/v1/nodes/{NODE}", [mark, {"op": "remove", "path": EXCLUDED_BY}])


def somebody(value: str | None) -> dict:
    return asked(f"/api/v1/nodes/{NODE}", {"metadata": {"labels": {SENTINEL: value}}}, "kubectl")


def kept_off(*entries: dict, was: str | None = None) -> list[str]:
    labels = {LOADED: OLD} if was is None else {LOADED: OLD, SENTINEL: was}
    reading = Reading(
        entries, [], [held(NODE, **labels) | {"spec": {}}], selector={}, version=OLD, new=NEW,
        budget=1, parallel=9, canary=NODE, asks=False,
    )  # fmt: skip
    reading.read()
    return [one.figure for one in reading.opt_outs_at_the_end()]


def test_an_opt_out_that_is_left_is_found_and_one_that_is_put_back_is_none():
    assert kept_off(opt_out()) == ["leaked_optouts"]
    assert kept_off(opt_out(), put_back(None)) == []


def test_what_was_there_before_must_be_there_again():
    assert kept_off(opt_out(), put_back(None), was="true") == ["leaked_optouts"]
    assert kept_off(opt_out(), put_back("true"), was="true") == []


def test_what_somebody_else_has_made_of_it_since_is_left():
    assert kept_off(opt_out(), somebody("true"), put_back(None)) == ["leaked_optouts"]
    assert kept_off(opt_out(), somebody(None)) == []
    assert kept_off(opt_out(), somebody("false"), put_back(None)) == []  # nobody can tell theirs from ours


def test_a_node_that_is_judged_while_somebody_is_kept_off_it_is_found():
    soaks = Word(1, "2026-11-21T12:00:03.000000Z", ENGINE, "is promoting", soaking=frozenset({NODE}))
    assert found([opt_out()], soaks) == {"leaked_optouts"}
    assert found([put_back(None)], soaks) == set()


def test_a_node_is_held_by_its_label_alone():
    assert NodeSeen({SKIP: "true"}).is_held
    assert not NodeSeen({SKIP: "false"}).is_held
