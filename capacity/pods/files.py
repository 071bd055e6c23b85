"""All matching GPU pods as a streamed CSV file."""

from collections.abc import AsyncIterator
from functools import partial

from asgiref.sync import sync_to_async
from django.http import HttpResponse, StreamingHttpResponse

from capacity.pods.rows import GpuPodLine, PodTable
from capacity.pods.workload_groups import groups_of
from edges.csv_text import as_csv, download_of
from fleet.states.pod import PodState

MOST_ROWS = 50_000
AT_ONCE = 1000
HEAD = (
    "cluster", "namespace", "pod", "state", "status", "owner", "node", "pools", "requests", "restarts", "created_at",
    "reason", "action",
)  # fmt: skip

WORKLOAD_HEAD = (
    "cluster", "namespace", "kind", "workload", "pods", *(state.value for state in PodState), "gpus", "gpus_waiting",
    "oldest_pod_at", "pods_wanted",
)  # fmt: skip


class TooManyPods(Exception):
    """More pods match than a file may have."""

    def __init__(self, rows: int) -> None:
        super().__init__(f"{rows} pods match. A file has at most {MOST_ROWS}: filter by cluster or namespace.")


def csv_of(table: PodTable) -> StreamingHttpResponse:
    """Streams the table as CSV.

    :raises TooManyPods: when too many pods match
    """
    if len(table) > MOST_ROWS:
        raise TooManyPods(len(table))
    response = StreamingHttpResponse(_stream_parts(table), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="pods-{table.now:%Y%m%d-%H%M%S}.csv"'
    response["Cache-Control"] = "private, no-store"
    return response


def csv_of_workloads(table: PodTable) -> HttpResponse:
    """Returns the workloads of the table as CSV. Pods that nothing controls are one line of their namespace."""
    rows = [
        (
            each.cluster, each.namespace, each.kind, each.name, each.pods, *(each.states[state] for state in PodState),
            each.gpus, each.waiting_gpus, each.oldest.isoformat(),
            "" if each.desired is None else each.desired,
        )
        for each in groups_of(table)
    ]  # fmt: skip
    return download_of([WORKLOAD_HEAD, *rows], f"pods-by-workload-{table.now:%Y%m%d-%H%M%S}.csv")


async def _stream_parts(table: PodTable) -> AsyncIterator[str]:
    """Yields text. Rows are read in the request's thread, which owns the database connection."""
    yield as_csv([HEAD])
    for start in range(0, len(table), AT_ONCE):
        lines = await sync_to_async(partial(table.lines, start, start + AT_ONCE))()
        yield as_csv(map(_pod_row, lines))


def _pod_row(line: GpuPodLine) -> tuple[object, ...]:
    pod, reason = line.pod, line.reason
    return (
        pod.cluster.name, pod.namespace, pod.name, line.state, pod.status, line.owner, pod.node_name,
        " ".join(line.pools), line.asks, pod.restarts, pod.created_at.isoformat(),
        reason.sentence if reason else pod.waiting_reason, reason.action if reason else "",
    )  # fmt: skip
