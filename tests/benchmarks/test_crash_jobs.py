"""What the bench of crashes finds of Jobs that pull an image, and what it does not take for a fault."""

import pytest

from benchmarks.crashing.job_reading import JobReading, jobs_at_the_end
from benchmarks.crashing.jobs import NAMESPACE, Jobs
from benchmarks.crashing.words import Word
from simulator import kinds
from simulator.kinds import JOB, POD
from simulator.store import Store

JOBS = "/apis/batch/v1/namespaces/gpu-operator/jobs"
NAME = "quarterdeck-pull-1-1"
OURS, KUBECTL = "quarterdeck/0.1.0", "kubectl/v1.34.1"
LABELS = {"quarterdeck.io/image-pull": "1-1"}


def asked(method: str, path: str, body: object = None, *, who: str = OURS, turn: int = 1) -> dict:
    user = f"pull-{turn}" if who == OURS else "admin"
    at = "2026-11-21T12:00:00.000000Z"
    return {"at": at, "user_agent": who, "user": user, "method": method, "path": path, "code": 200, "body": body}


def made(*, who: str = OURS, turn: int = 1) -> dict:
    metadata = {"name": NAME}
    if who == OURS:
        metadata |= {"labels": LABELS, "annotations": {"quarterdeck.io/asked-at": "noon"}}
    return asked("POST", JOBS, {"metadata": metadata}, who=who, turn=turn)


def deleted(*, who: str = OURS, turn: int = 1) -> dict:
    return asked("DELETE", f"{JOBS}/{NAME}", who=who, turn=turn)


def look(*, turn: int = 1) -> dict:
    return asked("GET", "/api/v1/namespaces/kube-system", turn=turn)


def said(verb: str, after: int) -> Word:
    return Word(after, "2026-11-21T12:00:00.000000Z", "ada", verb)


def found(*entries: dict, words: tuple[Word, ...] = ()) -> list[str]:
    return [one.figure for one in JobReading(entries, words).read()]


def test_a_job_that_is_made_and_deleted_is_nothing():
    assert found(look(), made(), look(), deleted()) == []


@pytest.mark.parametrize("verb", ["freeze", "stop", "cancel", "abort", "rollback", "edit"])
def test_a_job_after_a_word_that_could_be_known_is_found(verb: str):
    assert found(look(), made(), words=(said(verb, 0),)) == ["leaked_jobs"]
    assert found(look(), made(), words=(said(verb, 1),)) == []  # it asked nothing since


@pytest.mark.parametrize(
    ("verb", "ends"), [("freeze", "lift"), ("stop", "unstop"), ("cancel", "ask"), ("edit", "edit")]
)
def test_a_word_that_is_taken_back_forbids_nothing(verb: str, ends: str):
    assert found(look(), made(), words=(said(verb, 0), said(ends, 0))) == []


def test_a_second_job_of_one_row_is_found_unless_somebody_deleted_the_first():
    assert found(made(), deleted(), made()) == ["leaked_jobs"]
    assert found(made(), deleted(who=KUBECTL), made()) == []


def test_somebody_elses_job_is_not_deleted():
    assert found(made(), deleted(who=KUBECTL), made(who=KUBECTL), deleted()) == ["leaked_jobs"]


def test_who_has_asked_anything_since_another_began_has_lost_his_turn():
    assert found(look(turn=1), look(turn=2), made(turn=1)) == []
    assert found(look(turn=1), look(turn=2), look(turn=1), made(turn=1)) == ["writes_out_of_turn"]


def test_what_is_left_of_a_pull_is_found_and_what_is_not_ours_is_left():
    ours, theirs = ({"metadata": {"name": NAME, "labels": labels}} for labels in (LABELS, {}))
    assert [one.figure for one in jobs_at_the_end([ours, theirs], [ours])] == ["leaked_jobs"] * 2


def test_the_pod_of_somebody_elses_job_is_put_on_no_node():
    store = Store()
    store.create(kinds.NAMESPACE, {"metadata": {"name": NAMESPACE}})
    theirs = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]}
    template = {"template": {"metadata": {}, "spec": theirs}}
    store.create(JOB, {"metadata": {"name": NAME, "namespace": NAMESPACE}, "spec": template}, NAMESPACE)
    Jobs(store).step()
    (pod,) = store.list(POD, NAMESPACE)[0]
    assert "nodeName" not in pod["spec"]
