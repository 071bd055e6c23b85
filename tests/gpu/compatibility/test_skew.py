"""A kubelet against its API server."""

import pytest

from gpu.compatibility import Answer
from tests.gpu.compatibility.answers import verdicts


@pytest.mark.parametrize(
    ("kubelet", "kubernetes", "said"),
    [
        ("v1.36.4", "v1.36.1", [Answer.SUPPORTED]),
        ("v1.33.9", "v1.36.4", [Answer.SUPPORTED]),
        ("v1.32.9", "v1.36.4", [Answer.UNSUPPORTED]),
        ("v1.37.0", "v1.36.4", [Answer.UNSUPPORTED]),
        ("v1.24.17", "v1.26.15", [Answer.SUPPORTED]),
        ("v1.24.17", "v1.27.16", [Answer.UNSUPPORTED]),
        ("", "v1.36.4", []),
        ("v1.36.4", "", []),
        ("v2.0.0", "v1.36.4", []),
    ],
)
def test_a_kubelet_is_never_newer_and_at_most_three_minors_older(kubelet, kubernetes, said):
    found = [each.answer for each in verdicts(kubelet=kubelet, kubernetes=kubernetes) if each.rule == "skew"]

    assert found == said
