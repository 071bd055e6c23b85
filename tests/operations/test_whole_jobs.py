"""Whole jobs in a drain: they leave the nodes of an operation together, and once."""

from collections.abc import Mapping
from datetime import timedelta

import pytest

from fleet.models import Node, Pod
from kube import client
from operations.models import ExternalWork, Operation
from operations.refusals import BadOperation
from operations.steps import nodes_in_progress
from operations.steps.whole_jobs import linked_nodes, side_by_side
from simulator.kinds import DISRUPTION_BUDGET, NODE, POD
from tests import make
from tests.operations.test_rounds import a_pod, begin, end_pods, pods, rounds, terminating
from tests.rollouts.engine.ground import CANARY, REST, Ground

pytestmark = pytest.mark.django_db
OTHER = REST[0]


@pytest.fixture
def job(ground: Ground) -> None:
    """A job on two nodes, which have no other pods."""
    Pod.objects.filter(cluster=ground.cluster).delete()
    for pod in ground.store.list(POD)[0]:
        ground.store.delete(POD, pod["metadata"]["name"], pod["metadata"]["namespace"], grace_s=0)
    for name, on in (("rank-0", CANARY), ("rank-1", OTHER)):
        seeded = a_pod(ground, name, node=on, owner="Job")
        row = Node.objects.get(cluster=ground.cluster, name=on)
        make.a_pod(row, name, uid=seeded["metadata"]["uid"], owner_kind="Job", owner_name="web", gpus=8)


def a_service(ground: Ground) -> None:
    """A pod on the other node that its budget keeps."""
    pod, labels = a_pod(ground, "template", node=OTHER), {"app": "server"}
    ground.store.delete(POD, "template", "team-a", grace_s=0)
    owners = pod["metadata"]["ownerReferences"]
    metadata = {"name": "server", "labels": labels, "ownerReferences": owners}
    ground.store.seed(POD, {**pod, "metadata": metadata}, "team-a")
    budget = {"spec": {"selector": {"matchLabels": labels}, "maxUnavailable": 0}, "metadata": {"name": "server"}}
    ground.store.seed(DISRUPTION_BUDGET, budget, "team-a")


def states(operation: Operation) -> Mapping[str, str]:
    return {
        pod["name"].removeprefix("team-a/"): f"{pod['state']}: {pod['reason']}"
        for node in operation.nodes.all()
        for pod in node.progress.get("pods", ())
    }


def test_a_job_ends_on_no_node_while_a_service_of_another_node_cannot_leave(ground: Ground, job: None):
    """One evicted rank ended the job, which started again on the node whose drain was blocked."""
    a_service(ground)

    operation = rounds(ground, begin(ground, "drain", CANARY, OTHER), 3)

    assert terminating(ground) == []
    assert OTHER in states(operation)["rank-0"]
    assert "cannot end it yet" in operation.nodes.get(node_name=CANARY).reason

    ground.store.delete(POD, "server", "team-a", grace_s=0)
    rounds(ground, operation, 2)

    assert {metadata["name"] for metadata in terminating(ground)} == {"rank-0", "rank-1"}
    end_pods(ground)
    assert pods(ground) == []


def test_a_round_reads_the_jobs_once_and_the_pods_of_each_node_once(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    """Each node read the jobs of all nodes: with 20 nodes of one job, 40 times in a round."""
    names = [node["metadata"]["name"] for node in ground.store.list(NODE)[0]]
    pattern = ground.store.get(NODE, CANARY)
    for number in range(20 - len(names)):
        metadata = {**pattern["metadata"], "name": f"more-{number}", "uid": f"uid-{number}"}
        ground.store.seed(NODE, {**pattern, "metadata": metadata})
        make.a_node(ground.cluster, f"more-{number}", uid=f"uid-{number}")
        names.append(f"more-{number}")
    Pod.objects.filter(cluster=ground.cluster).delete()
    for number, name in enumerate(names):
        seeded = a_pod(ground, f"rank-{number}", node=name, owner="Job")
        row = Node.objects.get(cluster=ground.cluster, name=name)
        make.a_pod(row, f"rank-{number}", uid=seeded["metadata"]["uid"], owner_kind="Job", owner_name="web", gpus=8)
    lists, reads, queries = [], [], []
    real_list, real_read = client.list_pods_on, nodes_in_progress.jobs_by_node
    monkeypatch.setattr(client, "list_pods_on", lambda *given: lists.append(given) or real_list(*given))
    monkeypatch.setattr(nodes_in_progress, "jobs_by_node", lambda *given: reads.append(given) or real_read(*given))

    operation = begin(ground, "drain", *names, options={"at_once": 20})
    for _ in range(3):
        lists.clear(), reads.clear()
        operation = rounds(ground, operation)
        queries.append((len(lists), len(reads)))

    assert operation.nodes.filter(state="running").count() == 20
    assert queries == [(20, 1), (20, 1), (20, 1)]


def test_a_job_waits_for_its_nodes_that_have_not_begun(ground: Ground, job: None):
    """Evicted now, it would start again on the node whose turn comes next, and end twice."""
    note = begin(ground, "note", OTHER)
    note.nodes.update(state="running")  # the other node is taken
    operation = rounds(ground, begin(ground, "drain", CANARY, OTHER), 2)

    assert (terminating(ground), operation.nodes.get(node_name=OTHER).state) == ([], "pending")
    assert f"{OTHER} cannot end it yet" in states(operation)["rank-0"]

    note.nodes.update(state="done")
    rounds(ground, operation, 2)
    assert {metadata["name"] for metadata in terminating(ground)} == {"rank-0", "rank-1"}


def test_a_job_on_more_nodes_than_drain_at_once_does_not_wait_for_nodes_that_have_not_begun(ground: Ground, job: None):
    rounds(ground, begin(ground, "drain", CANARY, OTHER, options={"at_once": 1}), 2)

    assert [metadata["name"] for metadata in terminating(ground)] == ["rank-0"]


def test_a_job_waits_for_a_blocked_node_for_half_of_the_time_to_the_deadline(ground: Ground, job: None):
    """The blocked node fails at the deadline, and must not make the others fail, too."""
    a_service(ground)
    operation = rounds(ground, begin(ground, "drain", CANARY, OTHER, options={"deadline_s": 3600}), 2)
    began = operation.nodes.get(node_name=CANARY).step_since

    assert terminating(ground) == []
    operation.nodes.update(step_since=began - timedelta(seconds=1790))
    rounds(ground, operation)

    assert [metadata["name"] for metadata in terminating(ground)] == ["rank-0"]


def test_owners_get_time_to_suspend_their_jobs(ground: Ground, job: None):
    operation = rounds(ground, begin(ground, "drain", CANARY, options={"jobs_wait_s": 600}))

    assert states(operation)["rank-0"].startswith("waiting: its owner may suspend or end it until")
    rounds(ground, operation, 20)

    assert [metadata["name"] for metadata in terminating(ground)] == ["rank-0"]
    with pytest.raises(BadOperation, match="before the deadline"):
        begin(ground, "drain", OTHER, options={"jobs_wait_s": 600, "deadline_s": 600})


def test_the_preview_names_the_nodes_of_a_job_that_are_not_chosen(ground: Ground, job: None):
    alone, both = (begin(ground, "try-drain", *names).preview["jobs"] for names in ((CANARY,), (CANARY, OTHER)))

    assert (alone, both) == ([], [])  # a trial ends no job
    alone = begin(ground, "drain", CANARY).preview["jobs"]
    assert alone == ["Job team-a/web (16 GPUs on 2 nodes), 1 node of them not chosen"]


def test_a_job_on_more_nodes_than_begin_at_once_is_a_warning(ground: Ground, job: None):
    ExternalWork.objects.create(cluster=ground.cluster, looked_at=ground.clock())
    (warning,) = begin(ground, "drain", CANARY, OTHER, options={"at_once": 1}).preview["warnings"]

    assert warning.startswith("Job team-a/web runs on 2 of these nodes. With fewer “Nodes at once”")


def test_nodes_of_one_job_begin_one_after_another():
    nodes = [Node(name=name) for name in ("a", "b", "c", "d", "e")]
    jobs = {"a": frozenset({"x"}), "d": frozenset({"x", "y"}), "e": frozenset({"y"})}

    assert [node.name for node in side_by_side(nodes, jobs)] == ["a", "d", "e", "b", "c"]


def test_jobs_that_share_a_node_link_all_of_their_nodes():
    """With two at once, a and b would each wait for a node that begins only after them."""
    jobs = {"a": {"1", "2"}, "b": {"1", "3"}, "c": {"2"}, "d": {"3"}, "e": {"4"}, "f": set()}

    linked = linked_nodes({name: frozenset(its) for name, its in jobs.items()})

    assert {name: "".join(sorted(group)) for name, group in linked.items()} == {
        "a": "abcd", "b": "abcd", "c": "abcd", "d": "abcd", "e": "e", "f": "f",
    }  # fmt: skip
