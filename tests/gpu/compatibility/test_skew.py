"""A kubelet against its API server."""

import pytest

from gpu.compatibility import Support
from tests.gpu.compatibility.answers import verdicts


@pytest.mark.parametrize(
    ("kubelet", "kubernetes", "said"),
    [
        ("v1.36.4", "v1.36.1", [Support.SUPPORTED]),
        ("v1.33.9", "v1.36.4", [Support.SUPPORTED]),
        ("v1.32.9", "v1.36.4", [Support.UNSUPPORTED]),
        ("v1.37.0", "v1.36.4", [Support.UNSUPPORTED]),
        ("v1.24.17", "v1.26.15", [Support.SUPPORTED]),
        ("v1.24.17", "v1.27.16", [Support.UNSUPPORTED]),
        ("", "v1.36.4", []),
        ("v1.36.4", "", []),
        ("v2.0.0", "v1.36.4", []),
    ],
)
def test_a_kubelet_is_never_newer_and_at_most_three_minors_older(kubelet, kubernetes, said):
    found = [each.answer for each in verdicts(kubelet=kubelet, kubernetes=kubernetes) if each.rule == "skew"]

    assert found == said
