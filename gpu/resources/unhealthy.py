"""Unhealthy GPUs of a node that its labels or annotations identify.

AMD's exporter labels only unhealthy ones, `metricsexporter.amd.com.gpu.<GPU_ID>.state` (docs of
ROCm/device-metrics-exporter; its pkg/exporter/utils has 16 at most). HAMi's device plugin registers each board
with its health.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from types import MappingProxyType

from gpu.resources.registered import Registered

AMD_STATE = re.compile(r"^metricsexporter\.amd\.com\.gpu\.(\d{1,3})\.state$")
AMD_PREFIX = "metricsexporter.amd.com.gpu."
AT_MOST = 128
DeviceRows = Sequence[Mapping[str, object]]  # rows of the node's column
NOBODY: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class Unhealthy:
    gpu: str  # for people: GPU 3, GPU-5a…
    reason: str  # reporter and report
    index: int | None = None
    uuid: str = ""


def unhealthy_in(labels: Mapping[str, str], boards: Sequence[Registered]) -> list[dict[str, object]]:
    """Returns rows for the node's column."""
    return unhealthy_rows([*_unhealthy_by_labels(labels), *_unhealthy_by_plugin(boards)])


def unhealthy_rows(gpus: Iterable[Unhealthy]) -> list[dict[str, object]]:
    return [asdict(gpu) for gpu in list(gpus)[:AT_MOST]]


def unhealthy_in_words(named: DeviceRows, by_kubelet: Mapping[str, str] = NOBODY) -> list[str]:
    """Returns sentences such as `GPU 3: AMD's metrics exporter reports it as unhealthy.` `by_kubelet`: pods by UUID
    (KEP-4680)."""
    sentences = [f"{row['gpu']}: {row['reason']}." for row in named]
    return sentences + [
        f"{uuid}: the kubelet reports it as unhealthy; {pod} uses it." for uuid, pod in sorted(by_kubelet.items())
    ]


def _unhealthy_by_labels(labels: Mapping[str, str]) -> Iterator[Unhealthy]:
    sick = (AMD_STATE.match(key) for key in labels if key.startswith(AMD_PREFIX) and labels[key].lower() == "unhealthy")
    for index in sorted(int(match[1]) for match in sick if match):
        yield Unhealthy(f"GPU {index}", "AMD's metrics exporter reports it as unhealthy", index)


def _unhealthy_by_plugin(boards: Sequence[Registered]) -> Iterator[Unhealthy]:
    for index, board in enumerate(boards):
        if not board.is_healthy:
            yield Unhealthy(f"GPU {index}", "HAMi's device plugin reports it as unhealthy", index, board.uuid)
