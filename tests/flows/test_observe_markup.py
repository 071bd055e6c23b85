"""Markup in whatever a cluster says, through the wire and the rows to every page: shown as it is, run by nobody."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.urls import reverse

from fleet.messages import announce, listeners, wake
from fleet.models import Cluster, Node
from fleet.observer.lease import list_watch
from tests.fleet.documents import node_document, pod_document
from tests.fleet.light_server import DRIVERS, NODES, PODS, LightServer, light_servers
from tests.flows.light import Watched, eventually, watched
from tests.make import a_pool, a_user
from tests.pages import HOSTILE, page, visiting

pytestmark = [pytest.mark.observe, pytest.mark.django_db(transaction=True)]
DAEMON_SETS, EVENTS = "/apis/apps/v1/daemonsets", "/api/v1/events"
SHORT = "<b>x</b>"  # where a column or a label is short
OPERAND = {"app": "nvidia-driver-daemonset", "app.kubernetes.io/component": "nvidia-driver"}


def a_bad_node() -> dict:
    labels = {
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.product": HOSTILE,
        "nvidia.com/cuda.driver-version.full": SHORT,
        "nvidia.com/gpu-driver-upgrade-state": SHORT,
        "nvidia.com/mig.config": SHORT,
        "topology.kubernetes.io/zone": SHORT,
        "kubernetes.io/hostname": HOSTILE,
        HOSTILE: HOSTILE,
    }
    document = node_document(HOSTILE, uid="uid-of-bad", labels=labels, ready="False")
    document["status"]["conditions"][1] |= {"reason": HOSTILE, "message": HOSTILE}
    document["status"]["nodeInfo"] = dict.fromkeys(
        ("kernelVersion", "osImage", "containerRuntimeVersion", "kubeletVersion"), SHORT
    )
    document["spec"]["taints"] = [{"key": HOSTILE, "value": HOSTILE, "effect": "NoSchedule"}]
    return document


def a_bad_pod(name: str, labels: dict[str, str]) -> dict:
    waiting = {"name": HOSTILE, "state": {"waiting": {"reason": "CrashLoopBackOff", "message": HOSTILE}}}
    pod = pod_document(name, uid=f"uid-{len(name)}", node=HOSTILE, namespace=SHORT, labels=labels, statuses=[waiting])
    pod["status"]["phase"] = "Pending"
    return pod


def a_bad_daemonset() -> dict:
    template = {"metadata": {"labels": OPERAND}, "spec": {"containers": [{"name": "c", "image": HOSTILE}]}}
    metadata = {"name": HOSTILE, "namespace": SHORT, "uid": "uid-of-ds", "labels": OPERAND}
    return {"metadata": metadata, "spec": {"template": template}, "status": {}}


def a_bad_driver() -> dict:
    conditions = [{"type": "Error", "status": "True", "reason": HOSTILE, "message": HOSTILE}]
    spec = {"version": SHORT, "repository": HOSTILE, "image": HOSTILE, "nodeSelector": {HOSTILE: HOSTILE}}
    status = {"state": SHORT, "conditions": conditions}
    return {"metadata": {"name": HOSTILE, "uid": "uid-of-driver"}, "spec": spec, "status": status}


def a_bad_event() -> dict:
    about = {"kind": "Node", "name": HOSTILE, "uid": "uid-of-bad"}
    said = {"reason": HOSTILE, "message": HOSTILE, "type": "Warning", "lastTimestamp": "2026-11-21T08:00:00Z"}
    return {"metadata": {"name": "e", "namespace": "default", "uid": "uid-of-e"}, "involvedObject": about, **said}


@pytest.fixture
def mirrored(db: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    monkeypatch.setattr(list_watch, "LOOK_UP_S", 0.05)
    monkeypatch.setattr(wake, "wake_observer", lambda *_: None)
    monkeypatch.setattr(listeners, "notify", lambda *_: None)
    monkeypatch.setattr(announce, "send", lambda *_: None)
    documents = {
        NODES: [a_bad_node(), node_document(HOSTILE * 2, uid="unread", labels={"a": 7})],
        PODS: [a_bad_pod(HOSTILE, OPERAND), a_bad_pod(HOSTILE + "2", {HOSTILE: HOSTILE})],
        DAEMON_SETS: [a_bad_daemonset()],
        DRIVERS: [a_bad_driver()],
        EVENTS: [a_bad_event()],
    }
    server = LightServer(objects={path: [json.dumps(one).encode() for one in all_] for path, all_ in documents.items()})
    with light_servers(server):
        north = watched(tmp_path, server)
        with north.lease():
            eventually(lambda: north.is_listed("pods") and north.is_listed("events"))
        yield north


def test_every_page_shows_it_and_no_page_runs_it(mirrored):
    Cluster.objects.update(foreign_uid=HOSTILE[:64])
    browser, node = visiting(a_user(role="admin")), Node.objects.get(uid="uid-of-bad")
    pool = a_pool(mirrored.cluster, "all", selector="nvidia.com/gpu.present=true")
    pool.nodes.add(node)
    of = {"node": [node.pk], "cluster": [mirrored.cluster.pk], "pool": [pool.pk]}

    names = ("fleet", "findings", "pools", "segments", "node", "cluster", "pool")
    pages = {name: page(browser, reverse(name, args=of.get(name, []))) for name in names}

    assert "<script>alert(1)</script>" in pages["node"].text
    assert "<script>alert(1)</script>" in pages["cluster"].text
    assert "unread" in mirrored.bookmark("nodes").unread
