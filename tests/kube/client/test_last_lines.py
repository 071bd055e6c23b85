"""The end of a log of many megabytes: the kubelet counts `limitBytes` from the first of the last lines."""

import pytest

from kube.client.single_requests import AT_MOST_BYTES, last_lines


class Kubelet:
    def __init__(self, log: list[str]) -> None:
        self.log, self.sent = log, 0

    def get(self, path: str, query: dict[str, str | int], *, read_s: float) -> bytes:
        lines = self.log[-int(query["tailLines"]) :]
        answer = "\n".join(lines).encode()[: int(query["limitBytes"])]
        self.sent += len(answer)
        return answer

    def without_secrets(self, answer: bytes) -> bytes:
        return answer


@pytest.mark.parametrize("width", [10, 60_000, 250_000])
def test_the_last_line_of_fifty_megabytes_is_read(width: int):
    kubelet = Kubelet(["x" * width] * (50_000_000 // width) + ['{"sum": 312.5}'])

    lines = last_lines(kubelet, "gpu-operator", "a-pod", "test-job", crashed=False)  # type: ignore[arg-type]

    assert lines[-1] == '{"sum": 312.5}'
    assert kubelet.sent <= 3 * AT_MOST_BYTES


def test_one_line_of_fifty_megabytes_is_cut():
    kubelet = Kubelet(["{" + "x" * 50_000_000])

    (line,) = last_lines(kubelet, "gpu-operator", "a-pod", "test-job", crashed=False)  # type: ignore[arg-type]

    assert len(line) == AT_MOST_BYTES
