"""The reason why a pod does not run, with the container and its last message, in the cluster's words."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from fleet.observer.mirror.rows.text import both_ends, fitted, fitted_words
from kube.log_lines import LineWeight, as_shown, decisive_line, other_lines, weight
from kube.redaction import redacted
from kube.structs import PodSeen
from kube.structs.pod import ContainerStateTerminated, ContainerStateWaiting, ContainerStatus
from wording.reports import shares_of

ORDINARY = frozenset({"PodInitializing", "ContainerCreating"})
AT_MOST = 500
MOST_OF_REASON = 63  # characters: one word
BY_SIGNAL = 128  # an exit code above it is the number of a signal more
MOST_LINES, MORE_AT_MOST = 4, 700  # further lines of a termination message, and the characters of all
READ_AT_MOST = 20_000  # characters of a termination message: the kubelet caps it at 12 KiB


@dataclass(frozen=True)
class StuckContainer:
    container: str
    reason: str
    last_words: str
    more_words: str = ""


def waiting_reason(seen: PodSeen, trouble: StuckContainer | None) -> str:
    """Returns the reason. `trouble` is the result of `stuck`. Blank: running or finished."""
    if seen.status.phase == "Succeeded":
        return ""
    if seen.status.phase == "Failed":
        return fitted_words(AT_MOST, seen.status.reason, both_ends(seen.status.message, AT_MOST - MOST_OF_REASON))
    if trouble is not None:
        return trouble.reason
    scheduled = seen.scheduled
    if scheduled is not None and scheduled.status == "False":
        return fitted_words(AT_MOST, scheduled.reason, scheduled.message)
    return ""


def stuck(seen: PodSeen) -> StuckContainer | None:
    """Returns the first container that waits abnormally or crashes; of a failed pod, the one that failed.

    Otherwise the running init container without a message, since a validation that never ends looks the same.
    """
    if seen.status.phase == "Succeeded":
        return None
    found = _container_in_trouble(seen) or _container_at_work(seen)
    if found is None or found.last_words or seen.status.phase != "Failed" or seen.status.reason:
        return found
    return replace(found, last_words=found.reason.partition(",")[0].removeprefix("Error: "))  # all that is known


def _container_in_trouble(seen: PodSeen) -> StuckContainer | None:
    found = ((status, _reason(status)) for status in seen.status.of_all_containers)
    return next((_troubled(status, why) for status, why in found if why), None)


def _troubled(status: ContainerStatus, why: str) -> StuckContainer:
    ended = max(_endings(status), key=_telling, default=None)  # the newest, if an earlier end tells no more
    words = (words_of(ended), _more_words(ended)) if ended else ("", "")
    return StuckContainer(fitted(status.name, 253), why, *words)


def _container_at_work(seen: PodSeen) -> StuckContainer | None:
    for status in seen.status.init_container_statuses or ():
        state = status.state
        if not status.ready and state is not None and state.waiting is None and state.terminated is None:
            return StuckContainer(fitted(status.name, 253), "", "")
    return None


def _reason(status: ContainerStatus) -> str:
    waiting = status.state.waiting if status.state else None
    died = next(filter(_is_bad_end, _endings(status)), None)
    if waiting is not None and waiting.reason and waiting.reason not in ORDINARY:
        return _waits(waiting, died)
    # A crashing container runs briefly between two back-offs; its last end is still the reason.
    if status.ready or died is None:
        return ""
    return fitted_words(AT_MOST, died.reason, f"exit code {died.exit_code}, {status.restart_count} restarts")


def _waits(waiting: ContainerStateWaiting, died: ContainerStateTerminated | None) -> str:
    """Returns the reason of a wait with the last end: a back-off hides that the kernel killed it for memory."""
    reason, ended = fitted(waiting.reason, MOST_OF_REASON), ""
    if died is not None and (died.reason not in ("", "Error", None) or died.exit_code > BY_SIGNAL):
        ended = f" (it ended with {fitted(died.reason or 'Error', MOST_OF_REASON)}, exit code {died.exit_code})"
    message = both_ends(waiting.message, AT_MOST - len(reason) - len(": ") - len(ended))
    return fitted_words(AT_MOST, reason, f"{message}{ended}".strip())


def _is_bad_end(ended: ContainerStateTerminated) -> bool:
    """Tells whether a container failed. One whose child was killed for memory may end with 0 and still be OOMKilled."""
    return ended.exit_code != 0 or ended.reason == "OOMKilled"


def _endings(status: ContainerStatus) -> Iterator[ContainerStateTerminated]:
    for state in (status.state, status.last_state):
        if state is not None and state.terminated is not None:
            yield state.terminated


def _telling(ended: ContainerStateTerminated) -> LineWeight:
    return weight(decisive_line(_lines(ended)))


def words_of(ended: ContainerStateTerminated) -> str:
    """Returns the decisive line of its termination message, redacted."""
    line = decisive_line(_lines(ended))
    return both_ends(redacted(line), AT_MOST) if line else ""


def _more_words(ended: ContainerStateTerminated) -> str:
    """Returns further telling lines of its termination message, redacted, each on a line."""
    lines = [redacted(line) for line in other_lines(_lines(ended), MOST_LINES)]
    shares = shares_of(lines, MORE_AT_MOST - len(lines))
    return "\n".join(both_ends(line, share) for line, share in zip(lines, shares, strict=True))


def _lines(ended: ContainerStateTerminated) -> list[str]:
    return [as_shown(line) for line in fitted(ended.message, READ_AT_MOST).split("\n")]
