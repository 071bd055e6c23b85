"""Sums of GPU pods by workload, against the rows themselves."""

import csv
import random
from collections import defaultdict
from datetime import timedelta
from io import StringIO

import pytest
from django.db import connection

from capacity.pods import workload_groups
from capacity.pods.pod_filter import PodFilter
from capacity.pods.rows import table_of
from capacity.pods.workload_groups import WITHOUT_GPUS, group_sums, groups_of
from fleet.models import Cluster, Node, Pod, Workload
from fleet.states.pod import PodState
from tests import make
from tests.callers import calling
from tests.make import NOON
from tests.pages import visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now"), pytest.mark.sqlite]

STATES = (
    {"phase": "Running"},
    {"phase": "Running", "is_ready": False},
    {"phase": "Pending", "is_ready": False, "node_name": ""},
    {"phase": "Pending", "is_ready": False, "status": "ContainerCreating"},
    {"phase": "Succeeded"},
    {"phase": "Failed", "status": "Error"},
    {"phase": "Running", "restarts": 9, "crashed_at": NOON - timedelta(minutes=1)},
    {"phase": "Running", "restarts": 9, "crashed_at": NOON - timedelta(days=9)},
)


@pytest.fixture
def bob():
    return make.a_user("bob", role="viewer")


@pytest.fixture
def fleet():
    """Pods of two clusters in every state, of owners with and without an owner above; one kubelet is silent."""
    dice = random.Random(34)
    for name in ("east", "west"):
        cluster = make.a_cluster(name)
        nodes = [make.a_node(cluster, f"{name}-{number}") for number in range(3)]
        Node.objects.filter(pk=nodes[2].pk).update(is_ready=None)
        Workload.objects.create(
            cluster=cluster, kind="ReplicaSet", name="chat-7d9", uid="r", namespace="team-a", created_at=NOON,
            changed_at=NOON, owner_kind="Deployment", owner_name="chat", owner_uid="d",
        )  # fmt: skip
        for number in range(60):
            kind, owner, uid = dice.choice((("ReplicaSet", "chat-7d9", "r"), ("Job", "train", "j"), ("", "", "")))
            make.a_pod(
                dice.choice(nodes), f"pod-{number}", namespace=dice.choice(("team-a", "team-b")),
                gpus=dice.choice((1, 2, 8)), owner_kind=kind, owner_name=owner, owner_uid=uid,
                created_at=NOON - timedelta(minutes=dice.randrange(5000)), **dice.choice(STATES),
            )  # fmt: skip
        make.a_pod(nodes[0], "driver", gpus=0, operand="driver")
    Pod.objects.filter(node_name="").update(node=None)


def counted_one_by_one():
    """Returns pods by state, GPUs, waiting GPUs and the oldest pod by workload, from every row."""
    found = defaultdict(list)
    for pod in Pod.objects.filter(is_tenant=True).select_related("node", "cluster"):
        owner = {"r": ("Deployment", "chat")}.get(pod.owner_uid, (pod.owner_kind, pod.owner_name))
        found[pod.cluster.name, pod.namespace, *owner].append(pod)
    return {
        key: (
            {state: number for state in PodState if (number := sum(p.state(now=NOON) is state for p in pods))},
            sum(pod.gpus for pod in pods if pod.state(now=NOON) not in WITHOUT_GPUS),
            sum(pod.gpus for pod in pods if pod.state(now=NOON) is PodState.PENDING),
            min(pod.created_at for pod in pods),
        )
        for key, pods in found.items()
    }


def test_page_file_and_rest_have_the_sums_of_the_rows(fleet, bob):
    expected = counted_one_by_one()
    assert {state for states, *_ in expected.values() for state in states} >= set(PodState) - {
        PodState.TERMINATING, PodState.REJECTED
    }  # fmt: skip

    groups = groups_of(table_of(bob, PodFilter(), now=NOON))

    assert expected == {
        (each.cluster, each.namespace, each.kind, each.name): (
            dict(each.states), each.gpus, each.waiting_gpus, each.oldest,
        )
        for each in groups
    }  # fmt: skip
    answer = calling(bob).get("/api/v1/pod-workloads").json()
    assert [each["by_state"] for each in answer["workloads"]] == [dict(each.states) for each in groups]
    assert [(each["gpus"], each["gpus_waiting"]) for each in answer["workloads"]] == [
        (each.gpus, each.waiting_gpus) for each in groups
    ]
    rows = list(csv.DictReader(StringIO(visiting(bob).get("/pods.csv?by=workload").content.decode())))
    assert [(row["pods"], row["gpus"]) for row in rows] == [(str(each.pods), str(each.gpus)) for each in groups]


def test_a_cluster_that_was_deleted_since_the_sums_has_no_group(fleet, bob, monkeypatch):
    table = table_of(bob, PodFilter(), now=NOON)
    sums = list(group_sums(table.pods))
    west = Cluster.objects.get(name="west").pk
    monkeypatch.setattr(workload_groups, "group_sums", lambda _: [(west + 99, *row[1:]) for row in sums] + sums)

    assert {each.cluster for each in groups_of(table)} == {"east", "west"}


def test_sums_read_their_index_alone(fleet, bob):
    """Rows of pods are long: with 40,000 of them, reading the rows takes four times as long."""
    table = table_of(bob, PodFilter(), now=NOON)
    is_postgresql = connection.vendor == "postgresql"
    if is_postgresql:
        with connection.cursor() as cursor:  # the table is too small for an index
            cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off")
            # as after a vacuum; without it, an index alone costs as much as any other
            cursor.execute("UPDATE pg_class SET relallvisible = 1000 WHERE relname = 'fleet_pod'")

    plan = group_sums(table.pods).explain()

    assert ("Index Only Scan using" if is_postgresql else "USING INDEX") + " gpu_pods_by_owner" in plan
