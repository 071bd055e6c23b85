import pytest

from gpu.cordons import whose_cordon
from gpu.labels import SENTINEL_CORDON

MARKED = {SENTINEL_CORDON: "NVSentinel"}


@pytest.mark.parametrize(
    ("manager", "labels", "words"),
    [
        ("gpu-operator", {}, " by gpu-operator, as the API server has it"),
        ("", {}, "; the API server does not say by whom"),
        ("", MARKED, ": the label k8saas.nvidia.com/cordon-by says NVSentinel"),
        (
            "kubectl",
            MARKED,
            " by kubectl, as the API server has it; the label k8saas.nvidia.com/cordon-by says NVSentinel",
        ),
    ],
)
def test_says_whose_a_cordon_is_as_far_as_the_cluster_does(manager, labels, words):
    assert whose_cordon(manager, labels) == words
