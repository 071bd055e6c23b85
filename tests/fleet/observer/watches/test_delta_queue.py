"""What kinds tell each other while they are queued."""

import msgspec

from fleet.messages import listeners
from fleet.models import ClusterEvent, Pod
from fleet.observer.mirror import known_rows
from fleet.observer.mirror.memory import Memory
from fleet.observer.watches.deltas import ListBegun, ListPage, Opened
from fleet.observer.watches.reflector import Failed
from kube.structs import ClusterPolicySeen
from kube.structs.events import EventSeen
from tests.fleet.documents import a_daemonset_seen, a_node_seen, a_pod_seen


def an_event(about: str = "train-0", *, uid: str = "uid-of-event") -> EventSeen:
    document = {
        "metadata": {"name": f"{about}.1", "namespace": "research", "uid": uid},
        "involvedObject": {"kind": "Pod", "namespace": "research", "name": about, "uid": f"uid-of-{about}"},
        "type": "Warning",
        "reason": "FailedScheduling",
    }
    return msgspec.convert(document, EventSeen, strict=False)


def a_policy(
    sharing: str = "", mig: str = "", *, state: str = "ready", name: str = "cluster-policy"
) -> ClusterPolicySeen:
    spec = {"devicePlugin": {"config": {"name": sharing}}, "migManager": {"config": {"name": mig}}}
    status = {"state": state, "namespace": "nvidia-gpu-operator"}
    return msgspec.convert({"metadata": {"name": name, "uid": name}, "spec": spec, "status": status}, ClusterPolicySeen)


def test_an_event_is_kept_with_its_pod_and_no_other(mirror):
    mirror.list("pods", [a_pod_seen()])

    mirror.list("events", [an_event(), an_event("somebody-else", uid="other")])

    assert [event.about_name for event in ClusterEvent.objects.all()] == ["train-0"]


def test_an_event_that_comes_before_its_pod_is_kept_once_the_pod_is(mirror):
    mirror.list("events", [])
    mirror.see("events", an_event())
    mirror.see("events", an_event("never-comes", uid="other"))
    mirror.flush()
    before = ClusterEvent.objects.count()

    mirror.see("pods", a_pod_seen())
    mirror.flush()

    assert (before, [event.about_name for event in ClusterEvent.objects.all()]) == (0, ["train-0"])


def test_a_worker_that_takes_over_knows_whose_events_to_keep(mirror):
    mirror.list("pods", [a_pod_seen()])
    mirror.begin()
    known_rows.learn(mirror.cluster.pk, mirror.deltas.memory)

    mirror.see("events", an_event())
    mirror.flush()

    assert ClusterEvent.objects.count() == 1


def test_what_a_worker_that_takes_over_learns_makes_no_write(mirror):
    mirror.list("nodes", [a_node_seen()])
    mirror.list("pods", [a_pod_seen()])
    mirror.begin()
    known_rows.learn(mirror.cluster.pk, mirror.deltas.memory)
    changed_at = Pod.objects.get().changed_at

    mirror.later(seconds=5)
    mirror.see("pods", a_pod_seen())
    mirror.flush()

    assert Pod.objects.get().changed_at == changed_at


def test_learning_asks_nothing_where_everything_is_known(django_assert_num_queries, mirror):
    memory = Memory(1, {part.name: {"uid": 1} for part in known_rows.LEARNED})

    with django_assert_num_queries(0):
        known_rows.learn(mirror.cluster.pk, memory)


def test_what_comes_back_after_a_list_that_lacks_it_stays(mirror):
    """The list and what was watched after it are written in one flush: the later word is the watch's."""
    mirror.list("pods", [a_pod_seen()])

    mirror.record_update(ListBegun("pods"), ListPage("pods", (), "200", is_last=True), Opened("pods"))
    mirror.see("pods", a_pod_seen())
    mirror.flush()

    assert [pod.name for pod in Pod.objects.all()] == ["train-0"]


def test_a_cluster_policy_says_which_config_maps_there_are_to_read(mirror):
    mirror.list("clusterpolicies.nvidia.com", [a_policy("time-slicing", "parted")])

    scope = mirror.deltas.scope
    assert scope.configs == {"sharing": "time-slicing", "mig": "parted"}
    assert scope.policy_namespace == "nvidia-gpu-operator"


def test_another_name_of_a_config_map_is_asked_for_in_the_next_lease(mirror):
    mirror.list("clusterpolicies.nvidia.com", [a_policy("time-slicing", "parted")])
    mirror.begin()
    mirror.deltas.scope.follow_policy({"state": "ready", "sharing_config": "time-slicing", "mig_config": "parted"})

    mirror.see("clusterpolicies.nvidia.com", a_policy("time-slicing-fine", "parted"))

    assert mirror.to_list_again == {"configmaps:sharing"}


def test_a_second_cluster_policy_is_ignored_as_the_operator_does(mirror):
    mirror.list("clusterpolicies.nvidia.com", [a_policy("time-slicing"), a_policy("x", state="ignored", name="second")])

    assert mirror.deltas.scope.configs["sharing"] == "time-slicing"


def test_what_another_worker_was_told_is_in_the_rows(mirror):
    mirror.list("nodes", [a_node_seen()])
    mirror.list("daemonsets.apps", [a_daemonset_seen()])
    mirror.list("clusterpolicies.nvidia.com", [a_policy("time-slicing")])

    scope = known_rows.watch_scope_of(mirror.cluster.pk)

    assert (scope.gpu_nodes, scope.operator_namespaces) == ({"gpu-001"}, {"gpu-operator"})
    assert scope.configs == {"sharing": "time-slicing", "mig": "default-mig-parted-config"}


def test_pods_do_not_wait_for_operands_that_are_forbidden(mirror):
    mirror.list("nodes", [a_node_seen()])
    mirror.record_update(Failed("daemonsets.apps", "forbidden", "no"))

    mirror.list("pods", [a_pod_seen(gpus=0)])

    assert Pod.objects.count() == 1


def test_an_event_is_told_to_browsers_and_wakes_no_plan(mirror, told, monkeypatch):
    mirror.list("pods", [a_pod_seen()])
    mirror.list("events", [])
    mirror.flush()
    told.clear()
    woken: list[int] = []
    monkeypatch.setattr(listeners, "CHANGED", [woken.append])

    mirror.see("events", an_event())
    mirror.flush()

    assert (told[0]["kinds"], woken) == (["events"], [])
