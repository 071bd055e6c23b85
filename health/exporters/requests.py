"""Requests to exporters, a few at a time and limited in time. An exporter without an answer affects only itself."""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from threading import Event

from fleet.models import Pod
from gpu.operands import EXPORTER_PORTS
from health.telemetry.exporter import ExporterDevice, read_devices
from health.telemetry.exposition import NodeSamples, read_node
from health.telemetry.lines import UnreadableMetrics
from kube import client
from kube.client.pod_proxy import metrics_of

AT_ONCE = 4
SECONDS = 20.0  # per round; the next round starts with the exporters that were not reached


@dataclass(frozen=True)
class ExporterAnswer:
    """The answer of one node's exporter. If `refused` is empty, `devices` holds it."""

    node_name: str
    devices: tuple[ExporterDevice, ...] = ()
    samples: NodeSamples = field(default_factory=NodeSamples)
    refused: str = ""
    is_forbidden: bool = False


def answers(connection: client.Connection, pods: Sequence[Pod], *, stop: Event) -> Iterator[ExporterAnswer]:
    """Yields answers as they arrive, until stopped.

    A forbidden namespace is tried a few times a round, not once per pod.
    """
    until, forbidden = time.monotonic() + SECONDS, dict[str, str]()

    def ask(pod: Pod) -> ExporterAnswer | None:
        if pod.namespace in forbidden:
            return ExporterAnswer(pod.node_name, refused=forbidden[pod.namespace], is_forbidden=True)
        is_over = stop.is_set() or time.monotonic() > until
        return None if is_over else _query_exporter(connection, pod, forbidden)

    threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="exporters")
    try:
        for asked in as_completed([threads.submit(ask, pod) for pod in pods]):
            if answer := asked.result():
                yield answer
    finally:
        threads.shutdown(cancel_futures=True)


def _query_exporter(connection: client.Connection, pod: Pod, forbidden: dict[str, str]) -> ExporterAnswer:
    if pod.phase != "Running":
        phase = pod.phase or "not started"
        return ExporterAnswer(pod.node_name, refused=f"The exporter pod {pod} is {phase}, so it cannot be queried.")
    port = EXPORTER_PORTS[pod.operand]
    try:
        text = metrics_of(connection, pod.namespace, pod.name, port)
        return ExporterAnswer(pod.node_name, read_devices(text), read_node(text, pod.node_name))
    except client.Forbidden as refusal:
        samples = (
            "Quarterdeck may not query the exporter: the right get on pods/proxy is missing in "
            f"{pod.namespace}. {refusal}"
        )
        forbidden[pod.namespace] = samples
        return ExporterAnswer(pod.node_name, refused=samples, is_forbidden=True)
    except client.Absent as error:
        return ExporterAnswer(pod.node_name, refused=f"The exporter pod {pod} is gone or has no /metrics: {error}")
    except client.ClusterError as error:
        return ExporterAnswer(pod.node_name, refused=f"The exporter pod {pod} does not answer on port {port}: {error}")
    except UnreadableMetrics as error:
        return ExporterAnswer(pod.node_name, refused=f"The answer of the exporter pod {pod} is invalid: {error}")
