"""The last lines of a pod's log for the person who asked: bounded, redacted, audited, and stored nowhere."""

from contextlib import contextmanager

import pytest
from redis.exceptions import RedisError

from fleet.messages import wake
from health.logs import requested_logs
from health.logs.requested_logs import BYTES_AT_MOST, bounded_lines, read_requested_log
from health.sources import pod_log_answers
from health.sources.pod_log_answers import answer_for
from kube import client
from people.models import AuditEntry
from tests import make
from tests.callers import calling
from tests.pages import page, visiting

pytestmark = pytest.mark.django_db
LINES = ["loading model", "password=hunter2hunter2", "CUDA out of memory"]


@pytest.fixture
def pod():
    return make.a_pod(make.a_node(make.a_cluster("east"), "gpu-1"), "serving", stuck_container="main")


@pytest.fixture(autouse=True)
def quiet(monkeypatch):
    monkeypatch.setattr(wake, "queue", lambda *_, **__: None)


@contextmanager
def reached(*_, **__):
    yield None


def answering(monkeypatch, lines) -> None:
    """As if the cluster answered so."""

    def read(*_, **__):
        if isinstance(lines, Exception):
            raise lines
        return lines

    monkeypatch.setattr(requested_logs, "last_lines", read)
    monkeypatch.setattr(requested_logs.client, "reach", reached)


def test_an_operator_asks_and_reads_and_another_person_does_not_see_it(redis, pod, monkeypatch):
    operators = [make.a_user(name, role="operator") for name in ("ann", "bob")]
    ann = visiting(operators[0])
    assert "A worker reads it" in ann.post(f"/pods/{pod.pk}/log").content.decode()
    answering(monkeypatch, LINES)

    read_requested_log(pod, operators[0].pk)

    text = page(ann, f"/pods/{pod.pk}").text
    assert "CUDA out of memory" in text
    assert "hunter2" not in text
    assert "Known error in these lines: Not enough free GPU memory." in text
    assert "CUDA out of memory" not in page(visiting(operators[1]), f"/pods/{pod.pk}").text
    entry = AuditEntry.objects.get(verb="pod.read-log")
    assert (entry.actor, entry.evidence["pod"]) == ("ann", "team-a/serving")
    assert "CUDA" not in str(entry.evidence)


def test_a_viewer_is_refused_with_the_reason(redis, pod):
    viewer = visiting(make.a_user("viv", role="viewer"))

    assert viewer.post(f"/pods/{pod.pk}/log").status_code == 403
    assert not AuditEntry.objects.filter(verb="pod.read-log").exists()


def test_what_the_cluster_forbids_is_shown_with_the_right_that_lacks(redis, pod, monkeypatch):
    user = make.a_user("ann", role="operator")
    visiting(user).post(f"/pods/{pod.pk}/log")
    answering(monkeypatch, client.Forbidden('pods "serving" is forbidden'))

    read_requested_log(pod, user.pk)

    assert answer_for(pod.uid, user.pk).lines is None
    text = page(visiting(user), f"/pods/{pod.pk}").text
    assert 'pods "serving" is forbidden' in text
    assert "get pods/log" in text


def test_rest_has_the_same_rights_lines_and_audit_entry(redis, pod, monkeypatch):
    ann, bob, viv = (
        make.a_user("ann", role="operator"),
        make.a_user("bob", role="operator"),
        make.a_user("viv", role="viewer"),
    )
    place = f"/api/v1/pods/{pod.pk}/log"
    assert calling(ann).get(place).json()["state"] == "none"
    asked = calling(ann).post(place)
    assert (asked.status_code, asked.json()["state"], asked.json()["container"]) == (202, "waiting", "main")
    answering(monkeypatch, LINES)

    read_requested_log(pod, ann.pk)

    found = calling(ann).get(place).json()
    assert (found["state"], found["lines"][0], found["lines"][2]) == ("read", "loading model", "CUDA out of memory")
    assert found["reason"]["key"] == "cuda_out_of_memory"
    assert "hunter2" not in str(found)
    assert calling(bob).get(place).json()["state"] == "none"
    refused = calling(viv).get(place).json()
    assert (refused["state"], refused["lines"]) == ("none", None)
    assert refused["why_not"]
    assert calling(viv).post(place).status_code == 403
    assert [entry.actor for entry in AuditEntry.objects.filter(verb="pod.read-log")] == ["ann"]


def test_rest_answers_503_if_the_lines_cannot_be_handed_over(pod, monkeypatch):
    def fail():
        raise RedisError("refused")

    monkeypatch.setattr(pod_log_answers, "redis_client", fail)
    ann = calling(make.a_user("ann", role="operator"))

    assert ann.post(f"/api/v1/pods/{pod.pk}/log").status_code == 503
    assert "Redis" in ann.get(f"/api/v1/pods/{pod.pk}/log").json()["problem"]


def test_the_lines_are_bounded_from_the_end():
    found = bounded_lines([f"{number} " + "word " * 500 for number in range(1000)])

    assert found[-1].startswith("999 ")
    assert len(found) <= 200
    assert sum(len(line.encode()) + 1 for line in found) <= BYTES_AT_MOST
    assert bounded_lines(["x \x1b[31mred\x1b[0m"]) == ["x red"]
