"""Whose driver a node runs, where a label of the operator's outlived what it names."""

import pytest
from django.utils import timezone

from fleet.drivers.owners import nodes_by_owner
from fleet.observer.persistence.dependent_rows import count_all
from health.stack import read_stack
from health.stack.desired import driver_object_of
from tests import make

pytestmark = pytest.mark.django_db


@pytest.fixture
def cluster():
    return make.a_cluster()


def a_driver_set(cluster, owner, name: str = "nvidia-driver-daemonset"):
    return make.an_operand(cluster, name=name, owner_kind=owner.kind, owner_name=owner.name)


def a_node_of(cluster, daemon_set, **given):
    node = make.a_node(cluster, **given)
    make.a_pod(node, gpus=0, operand="driver", namespace="gpu-operator", owner_kind="DaemonSet",
               owner_name=daemon_set.name, owner_uid=daemon_set.uid)  # fmt: skip
    return node


def moved(cluster) -> dict[str, int]:
    count_all(cluster.pk)
    make.counted()
    return {f"{kind} {name}": number for (_, kind, name), number in nodes_by_owner({cluster.pk}).items()}


def test_back_in_cluster_policy_mode_every_node_is_the_policys(cluster):
    """Fourteen nodes, of which six kept the label of an NVIDIADriver that is gone."""
    policy = make.a_driver_object(cluster, "cluster-policy", kind="ClusterPolicy", version="580.95.05")
    daemon_set = a_driver_set(cluster, policy)
    for number in range(14):
        node = a_node_of(cluster, daemon_set, driver_owner="h100" if number < 6 else "")
        stack = read_stack(node, now=timezone.now())
        assert (stack.driver.desired, stack.driver.desired_by) == ("580.95.05", "ClusterPolicy cluster-policy")

    assert moved(cluster) == {"ClusterPolicy cluster-policy": 14}


def test_an_nvidia_driver_that_a_policy_does_not_turn_on_has_no_node(cluster):
    make.a_driver_object(cluster, "cluster-policy", kind="ClusterPolicy", version="580.95.05")
    make.a_driver_object(cluster, "h100", state="disabled")
    node = make.a_node(cluster, driver_owner="h100")

    assert str(driver_object_of(node, list(cluster.driver_objects.all()))) == "ClusterPolicy cluster-policy"
    assert moved(cluster) == {"ClusterPolicy cluster-policy": 1}


def test_the_daemon_sets_owner_is_believed_before_the_label(cluster):
    make.a_driver_object(cluster, "cluster-policy", kind="ClusterPolicy", uses_driver_crd=True, version="")
    new, old = make.a_driver_object(cluster, "new", version="595.1"), make.a_driver_object(cluster, "old")
    node = a_node_of(cluster, a_driver_set(cluster, new), driver_owner=old.name)

    assert read_stack(node, now=timezone.now()).driver.desired_by == "NVIDIADriver new"
    assert moved(cluster) == {"NVIDIADriver new": 1}


def test_an_operator_that_writes_no_label_is_counted_by_its_daemon_sets(cluster):
    """Before 26.7 no node is labelled with its owner."""
    make.a_driver_object(cluster, "cluster-policy", kind="ClusterPolicy", uses_driver_crd=True, version="")
    a100, h100 = make.a_driver_object(cluster, "a100"), make.a_driver_object(cluster, "h100")
    for owner in (a100, h100, h100):
        a_node_of(cluster, a_driver_set(cluster, owner, f"driver-{make.a_user().pk}"))

    assert moved(cluster) == {"NVIDIADriver a100": 1, "NVIDIADriver h100": 2}


def test_while_its_driver_pod_is_away_the_label_tells(cluster):
    make.a_driver_object(cluster, "cluster-policy", kind="ClusterPolicy", uses_driver_crd=True, version="")
    make.a_driver_object(cluster, "h100")
    node = make.a_node(cluster, driver_owner="h100")
    make.a_node(cluster, driver_owner="gone")

    assert str(driver_object_of(node, list(cluster.driver_objects.all()))) == "NVIDIADriver h100"
    assert moved(cluster) == {"NVIDIADriver h100": 1}


def test_a_node_that_gets_a_new_driver_pod_is_counted_once(cluster):
    """The operator's pod of before is told to go, or is not gone yet: the node is the newest one's."""
    make.a_driver_object(cluster, "cluster-policy", kind="ClusterPolicy", uses_driver_crd=True, version="")
    old, new = make.a_driver_object(cluster, "old"), make.a_driver_object(cluster, "new")
    leaving, staying = (a_node_of(cluster, a_driver_set(cluster, old, f"old-{number}")) for number in range(2))
    leaving.pods.update(deleted_at=make.NOON)
    for node in (leaving, staying):
        made = a_driver_set(cluster, new, f"new-{node.pk}")
        make.a_pod(node, f"new-{node.pk}", gpus=0, operand="driver", namespace="gpu-operator", owner_uid=made.uid,
                   created_at=make.NOON)  # fmt: skip

    assert moved(cluster) == {"NVIDIADriver new": 2}
