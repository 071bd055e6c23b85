"""Z12: a plan that relies on a policy which destroys work needs a reason."""

from rollouts.preflight.rules.lost_work import is_lost
from tests.rollouts.preflight.make import a_pod, a_policy, facts

ALONE = {"owner_kind": ""}
FORCE, EMPTY = {"podDeletion": {"force": True}}, {"podDeletion": {"deleteEmptyDir": True}}


def lost(*pods, **policy) -> dict[str, str]:
    found = list(is_lost(facts(*pods, policy=a_policy(**policy))))
    assert all(check.may_be_overridden for check in found)
    return {check.code: check.sentence for check in found}


def test_a_policy_that_would_destroy_work_is_no_matter_where_there_is_none():
    assert lost(a_pod(), **FORCE, drain={"enable": True, "force": True, "deleteEmptyDir": True}) == {}


def test_pods_that_no_controller_makes_again_are_named():
    assert lost(a_pod("team-a/notebook", **ALONE), **FORCE) == {
        "loses-unmanaged": "podDeletion.force deletes team-a/notebook. No controller creates the pods again."
    }


def test_what_pods_keep_on_the_node_is_lost():
    assert lost(a_pod(has_empty_dir=True), **EMPTY) == {
        "loses-empty-dir": (
            "podDeletion.deleteEmptyDir deletes local files of team-a/model-0. "
            "The emptyDir volumes of the pods are lost."
        )
    }


def test_a_pod_that_holds_its_node_up_loses_nothing_there():
    keeping = a_pod("team-a/keeping", has_empty_dir=True)

    assert lost(a_pod(**ALONE), keeping, **FORCE) == {}
    assert list(lost(a_pod(**ALONE, node="node-2"), keeping, **FORCE)) == ["loses-unmanaged"]


def test_a_drain_that_follows_takes_every_pod_of_the_node():
    beside = a_pod("team-a/web", resources=(), has_empty_dir=True)
    drain = {"enable": True, "force": True, "deleteEmptyDir": True}

    assert lost(beside, drain=drain) == {}
    assert lost(a_pod(**ALONE), beside, drain=drain) == {
        "drain-loses-unmanaged": "drain.force deletes team-a/model-0. No controller creates the pods again.",
        "drain-loses-empty-dir": (
            "drain.deleteEmptyDir deletes local files of team-a/web. The emptyDir volumes of the pods are lost."
        ),
    }


def test_a_drain_that_refuses_loses_nothing():
    beside = a_pod("team-a/web", resources=(), has_empty_dir=True)

    assert lost(a_pod(**ALONE), beside, drain={"enable": True, "force": True}) == {}
