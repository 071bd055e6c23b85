import pytest
from hypothesis import given
from hypothesis import strategies as st

from health.stack.causes.tolerations import spell, tolerates, untolerated_taints

GPU = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
WORDS = st.sampled_from(["", "a", "b"])
EFFECTS = st.sampled_from(["NoSchedule", "NoExecute", "PreferNoSchedule"])
TAINTS = st.fixed_dictionaries({"key": st.sampled_from(["a", "b"]), "value": WORDS, "effect": EFFECTS})


@pytest.mark.parametrize(
    ("toleration", "does"),
    [
        ({"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}, True),
        ({"key": "nvidia.com/gpu", "operator": "Exists"}, True),
        ({"operator": "Exists"}, True),
        ({"key": "nvidia.com/gpu", "value": "present"}, True),
        ({"key": "nvidia.com/gpu", "operator": "Equal", "value": "present", "effect": "NoSchedule"}, True),
        ({"key": "nvidia.com/gpu", "operator": "Equal", "value": "other"}, False),
        ({"key": "nvidia.com/gpu"}, False),
        ({"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "other", "operator": "Exists"}, False),
        ({"operator": "Equal", "value": "present"}, False),
        ({}, False),
        ({"key": "nvidia.com/gpu", "operator": "Gt", "value": "5"}, True),  # not ours to judge, so not blamed
    ],
)
def test_which_toleration_matches_a_taint(toleration, does):
    assert tolerates(toleration, GPU) is does


@given(TAINTS)
def test_one_that_exists_without_a_key_tolerates_every_taint(taint):
    assert untolerated_taints([taint], [{"operator": "Exists"}]) == []


@given(TAINTS)
def test_without_tolerations_every_taint_keeps_away_but_the_one_that_only_prefers(taint):
    assert bool(untolerated_taints([taint], [])) is (taint["effect"] != "PreferNoSchedule")


def test_a_cordon_keeps_no_daemon_set_away():
    assert untolerated_taints([{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}], []) == []


@pytest.mark.parametrize(
    ("taint", "written"),
    [(GPU, "nvidia.com/gpu=present:NoSchedule"), ({"key": "k", "effect": "NoExecute"}, "k:NoExecute")],
)
def test_a_taint_is_spelled_as_kubectl_does(taint, written):
    assert spell(taint) == written
