"""Reads the last lines of a pod's log for the person who asked, with likely secrets redacted."""

from dataclasses import replace

from fleet.models import Pod
from health.sources.pod_log_answers import PodLogAnswer, answer_for, save_answer
from kube import client
from kube.client.single_requests import last_lines
from kube.log_lines import ESCAPES
from kube.redaction import redacted

LINES_AT_MOST = 200
BYTES_AT_MOST = 64 * 1024
LINE_CHARS = 2000  # also bounds the time of the redaction
CUT = "[cut]"


def read_requested_log(pod: Pod, user_id: int) -> None:
    """Reads the log that this person asked for, once. A request that has expired is left alone.

    :raises SnapshotsUnavailable: when Redis does not answer
    """
    asked = answer_for(pod.uid, user_id)
    if asked is not None and asked.lines is None and not asked.trouble:
        save_answer(pod.uid, user_id, _answer(pod, asked))


def _answer(pod: Pod, asked: PodLogAnswer) -> PodLogAnswer:
    cluster, has_crashed = pod.cluster, bool(pod.stuck_container and pod.waiting_reason)
    try:
        with client.reach(cluster.kubeconfig, cluster.context, uid=cluster.uid) as connection:
            lines = last_lines(connection, pod.namespace, pod.name, asked.container, crashed=has_crashed)
    except client.ClusterError as error:
        return replace(asked, trouble=redacted(str(error))[:LINE_CHARS])
    return replace(asked, lines=tuple(bounded_lines(lines)))


def bounded_lines(lines: list[str]) -> list[str]:
    """Returns the last lines, redacted, of at most 64 KiB in all."""
    kept: list[str] = []
    left = BYTES_AT_MOST
    for line in reversed(lines[-LINES_AT_MOST:]):
        shown = line if len(line) <= LINE_CHARS else f"{line[:LINE_CHARS]} {CUT}"
        shown = redacted(ESCAPES.sub("", shown))
        left -= len(shown.encode()) + 1
        if left < 0:
            break
        kept.append(shown)
    return kept[::-1]
