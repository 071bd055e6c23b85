"""What the crash bench reads in the log of cases and operations: each invariant is broken once."""

from datetime import timedelta
from typing import Any

import pytest

from benchmarks.crashing.case_actors import HOSTS_PATH
from benchmarks.crashing.case_neighbours import EVENT, IS_CORDONED, PRE_EXISTING
from benchmarks.crashing.case_oracle import Breaker, CaseOracle
from benchmarks.crashing.nodes_seen import CORDONED_BY, OUT_OF_SERVICE
from benchmarks.crashing.tenants import PODS
from benchmarks.crashing.words import Word
from tests.make import NOON

MARK, NODE, UID = "operation-1", "gpu-1", "uid-1"
DAY = timedelta(days=1)


def at(second: int) -> str:
    return (NOON + timedelta(seconds=second)).isoformat()


def entry(second: int, method: str, path: str, body: Any = None, *, ours: bool = True, code: int = 200) -> dict:
    who, user = ("quarterdeck/1", f"{MARK}-9") if ours else ("kubectl", "admin")
    return {
        "at": at(second), "method": method, "path": path, "body": body, "code": code, "user_agent": who, "user": user,
    }  # fmt: skip


def pod(second: int, name: str, node: str = NODE) -> dict:
    return entry(second, "POST", PODS, {"metadata": {"name": name}, "spec": {"nodeName": node}}, ours=False)


def evict(second: int, name: str = "web-0", *, ours: bool = True) -> dict:
    return entry(second, "POST", f"{PODS}/{name}/eviction", {}, ours=ours)


def try_eviction(second: int, name: str = "web-0") -> dict:
    return entry(second, "POST", f"{PODS}/{name}/eviction", {"deleteOptions": {"dryRun": ["All"]}})


def delete(second: int, uid: str = "uid-of-web-0", **more: Any) -> dict:
    return entry(second, "DELETE", f"{PODS}/web-0", {"preconditions": {"uid": uid}, **more})


def uncordon(second: int) -> dict:
    return entry(second, "PATCH", f"/api/v1/nodes/{NODE}", [{"op": "remove", "path": "/spec/unschedulable"}])


def patch_node(second: int) -> dict:
    return entry(second, "PATCH", f"/api/v1/nodes/{NODE}", {"spec": {"unschedulable": None}}, ours=False)


def mark_off(second: int) -> dict:
    taint = {"op": "add", "path": "/spec/taints", "value": [{"key": OUT_OF_SERVICE}]}
    return entry(second, "PATCH", f"/api/v1/nodes/{NODE}", [taint])


def silence(second: int) -> dict:
    conditions = [{"type": "Ready", "status": "Unknown"}]
    return entry(second, "PATCH", f"/api/v1/nodes/{NODE}/status", {"status": {"conditions": conditions}}, ours=False)


def break_in(second: int, events: str = "[1]", **more: Any) -> dict:
    marks = {EVENT: events, IS_CORDONED: "True", CORDONED_BY: None} | more
    return entry(second, "PATCH", f"/api/v1/nodes/{NODE}", {"metadata": {"annotations": marks}}, ours=False)


def word(second: int, verb: str) -> Word:
    return Word(0, at(second), "ada", verb)


def found(*entries: dict, words: tuple[Word, ...] = (), owner: str = MARK) -> set[str]:
    node = {
        "metadata": {"name": NODE, "uid": UID, "annotations": {CORDONED_BY: owner}},
        "spec": {"unschedulable": True},
    }
    cases = {UID: [(NOON - DAY, None)]}
    reading = CaseOracle(
        entries,
        words,
        [node],
        cases=cases,
        nodes_of={MARK: {NODE}},
        past={MARK: "uid-of-web-0"},
        of_plans={MARK},
        asking={MARK: NOON + timedelta(seconds=9)},
    )
    return {violation.figure for violation in reading.read()}


def ask_repair(second: int, path: str = "https://repairs.example.com/requests", **more: Any) -> dict:
    return entry(second, "POST", path, {}, **more)


def hosts_patch(second: int, op: str, value: str | None) -> dict:
    return entry(
        second, "PATCH", f"{HOSTS_PATH}/{NODE}", [{"op": op, "path": "/metadata/annotations/x", "value": value}]
    )


def make_job(second: int, **limits: str) -> dict:
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [NODE]}]}]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    spec = {"affinity": affinity, "containers": [{"name": "main", "resources": {"limits": limits}}]}
    body = {"metadata": {"name": "quarterdeck-test-1"}, "spec": {"template": {"spec": spec}}}
    return entry(second, "POST", "/apis/batch/v1/namespaces/gpu-operator/jobs", body)


def make_test(second: int) -> dict:
    return make_job(second, **{"nvidia.com/gpu": "8"})


PODS_THERE = (pod(0, "web-0"), pod(0, "web-1"), pod(0, "web-2", "gpu-2"))
APPROVED = word(1, f"approve {MARK}")
PASSED = word(1, f"passed {UID}")
SEEN = (PASSED, word(1, f"saw {MARK} {NODE} [1]"))


def test_an_undisturbed_drain_and_return_break_nothing():
    assert found(*PODS_THERE, evict(1), uncordon(2), words=(PASSED,)) == set()


@pytest.mark.parametrize(
    ("entries", "words", "figure"),
    [
        ((*PODS_THERE, evict(2)), (word(1, f"cancel {MARK}"),), "acts_after_stop"),
        ((*PODS_THERE, evict(2)), (word(1, f"pause {MARK}"),), "acts_after_stop"),
        ((*PODS_THERE, evict(2)), (word(1, "freeze"),), "acts_after_stop"),
        ((*PODS_THERE, entry(1, "GET", "/x/configmaps/quarterdeck-stop"), evict(2)), (), "acts_after_stop"),
        ((*PODS_THERE, evict(1), evict(2, "web-1")), (), "evictions_over_budget"),
        ((*PODS_THERE, entry(1, "DELETE", f"{PODS}/web-0")), (), "evictions_over_budget"),
        ((*PODS_THERE, delete(2)), (), "evictions_over_budget"),
        ((*PODS_THERE, delete(2, "uid-of-another")), (APPROVED,), "evictions_over_budget"),
        ((*PODS_THERE, delete(2, gracePeriodSeconds=0)), (APPROVED,), "evictions_over_budget"),
        ((*PODS_THERE, delete(3)), (APPROVED, word(2, "freeze")), "acts_after_stop"),
        ((*PODS_THERE, delete(3)), (APPROVED, word(2, f"cancel {MARK}")), "acts_after_stop"),
        ((*PODS_THERE, evict(1, "web-2")), (), "wrong_evictions"),
        ((uncordon(2),), (), "unvalidated_returns"),
        ((uncordon(3),), (PASSED, word(2, f"fault {UID}")), "unvalidated_returns"),
        ((uncordon(3),), (PASSED, word(2, f"boot {UID}")), "unvalidated_returns"),
        ((uncordon(3),), (PASSED, word(2, f"failed {UID}")), "unvalidated_returns"),
        ((ask_repair(1), ask_repair(2)), (), "repeated_repairs"),
        ((hosts_patch(1, "add", "soft"), hosts_patch(2, "replace", "soft")), (), "repeated_repairs"),
        ((ask_repair(1), ask_repair(2, "/apis/x/rebootnodes")), (), "repeated_repairs"),
        ((entry(2, "GET", "/x"), ask_repair(3)), (word(1, "freeze"),), "acts_after_stop"),
        ((entry(2, "GET", "/x"), make_test(3)), (word(1, f"cancel {MARK}"),), "acts_after_stop"),
        ((patch_node(1), entry(2, "GET", "/x"), make_test(3)), (), "tests_beside_pods"),
        ((entry(2, "GET", "/x"), make_job(3)), (word(1, "freeze"),), "acts_after_stop"),
        ((entry(3, "GET", "/x"), make_job(4)), (word(1, "draft edited"), word(2, "sweep")), "acts_after_stop"),
        ((mark_off(2),), (APPROVED,), "wrong_taints"),
        ((silence(1), mark_off(2)), (), "wrong_taints"),
        ((patch_node(0), silence(1), mark_off(2)), (APPROVED,), "wrong_taints"),
        ((silence(1), mark_off(3)), (APPROVED, word(2, f"cancel {MARK}")), "acts_after_stop"),
        ((silence(1), mark_off(3)), (APPROVED, word(2, "freeze")), "acts_after_stop"),
        ((break_in(1, "[1, 2]"), uncordon(2)), SEEN, "wrong_cancels"),
        ((uncordon(2),), SEEN, "wrong_cancels"),
        ((break_in(1, **{PRE_EXISTING: "True"}), uncordon(2)), SEEN, "wrong_cancels"),
        ((break_in(1, **{CORDONED_BY: "plan-1"}), uncordon(2)), SEEN, "wrong_cancels"),
        ((break_in(1), uncordon(3)), (*SEEN, Word(0, at(2), "bob", "freeze", is_stop=True)), "acts_after_stop"),
        ((break_in(1), uncordon(3)), (*SEEN, word(2, f"cancel {MARK}")), "acts_after_stop"),
        ((pod(0, "train-0"), evict(8, "train-0")), (), "jobs_ended_early"),
        ((make_test(1), uncordon(4)), (word(3, "broke quarterdeck-test-1"),), "unvalidated_returns"),
        (
            (make_test(1), uncordon(4)),
            (word(2, f"fault {UID}"), word(3, "completed quarterdeck-test-1")),
            "unvalidated_returns",
        ),
    ],
)
def test_each_broken_invariant_is_found(entries: tuple[dict, ...], words: tuple[Word, ...], figure: str):
    assert found(*entries, words=words) == {figure}


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ((*PODS_THERE, evict(3)), (word(1, f"pause {MARK}"), word(2, f"resume {MARK}"))),
        ((*PODS_THERE, evict(3)), (word(1, "freeze"), word(2, "lift"))),
        ((*PODS_THERE, try_eviction(1), evict(2, "web-1")), ()),
        ((*PODS_THERE, delete(2)), (APPROVED,)),
        ((silence(1), mark_off(2)), (APPROVED,)),
        ((break_in(1), uncordon(2)), SEEN),
        ((break_in(1, **{CORDONED_BY: MARK}), uncordon(2)), SEEN),
        ((break_in(1), uncordon(3)), (*SEEN, word(2, "freeze"))),  # a freeze does not bind it
        ((pod(0, "train-0"), evict(10, "train-0")), ()),
        ((*PODS_THERE, entry(4, "GET", "/x"), evict(2)), (word(3, f"cancel {MARK}"),)),  # it was sent before
        ((uncordon(3),), (word(1, f"fault {UID}"), word(2, f"override {UID}"))),
        ((ask_repair(1), ask_repair(2, code=400)), ()),
        ((hosts_patch(1, "add", "soft"), hosts_patch(2, "remove", None)), ()),
        ((ask_repair(2),), (word(1, "freeze"),)),  # whoever sent it asked nothing since
        ((patch_node(1), entry(2, "GET", "/x"), make_job(3)), ()),  # it takes no GPU
        ((entry(2, "GET", "/x"), make_job(3)), (word(1, "draft edited"),)),  # no sweep has seen it
        ((entry(4, "GET", "/x"), make_job(5)), (word(1, "draft edited"), word(2, "sweep"), word(3, "draft asks"))),
        ((make_test(2), uncordon(4)), (word(1, f"fault {UID}"), word(3, "completed quarterdeck-test-1"))),
    ],
)
def test_what_nobody_could_prevent_or_somebody_allowed_is_no_violation(
    entries: tuple[dict, ...], words: tuple[Word, ...]
):
    assert found(*entries, words=words) == set()


def test_a_foreign_cordon_that_a_release_removes_is_found():
    assert found(uncordon(2), words=(PASSED,), owner="somebody") == {"foreign_cordons_removed"}


def test_an_automatic_case_past_each_limit_of_the_breaker_is_found():
    breaker = Breaker(most=3)
    assert list(breaker.take(1, NOON)) == []
    breaker.state, breaker.acts_since = "half-open", 0
    assert list(breaker.take(2, NOON)) == []
    assert list(breaker.take(3, NOON)) == ["the breaker is half-open, and has let one pass"]
    breaker.state = "open"
    assert len(list(breaker.take(4, NOON))) == 3
