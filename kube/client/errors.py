"""Errors of requests to a cluster.

Nothing outside `kube.client` may catch, import or mention the client's exceptions. Every call raises one of these,
with the original exception as its cause.
"""

import re

import msgspec


class ClusterError(Exception):
    """A failed request to a cluster. `retry_after_s` None: a retry is useless.

    The sentence is shown to people with access to one pool, so it has no address, path, context or plugin output.
    `in_full` is for the log and for administrators with a shell.
    """

    retry_after_s: float | None = None

    def __init__(self, sentence: str, *, retry_after_s: float | None = None, in_full: str = "") -> None:
        super().__init__(sentence.replace("\0", ""))  # PostgreSQL text cannot hold NUL, and server messages are stored
        self.in_full = in_full or sentence
        if retry_after_s is not None:
            self.retry_after_s = retry_after_s


class BadKubeconfig(ClusterError):
    """The kubeconfig is missing or does not describe a cluster."""


class Unreachable(ClusterError):
    """The API server did not answer. The nodes behind it may be fine."""

    retry_after_s = 5.0


class Silent(Unreachable):
    """The connection is open but delivers nothing, as behind a firewall that dropped it."""


class Untrusted(ClusterError):
    """The kubeconfig does not trust the server's certificate."""


class NotAnApiServer(ClusterError):
    """The answer did not come from a Kubernetes API server."""

    retry_after_s = 15.0


class BadCredentials(ClusterError):
    """401: the server rejects our credentials. Tokens are renewed, so a retry can help."""

    retry_after_s = 15.0


class Forbidden(ClusterError):
    """403: our credentials are valid but lack a permission. The sentence names the missing rule."""


class NamespaceTerminating(Forbidden):
    """403 with the cause NamespaceTerminating: the namespace is being deleted, and its pods with it."""


class Absent(ClusterError):
    """404: the object does not exist, or its kind is not installed."""


class Gone(ClusterError):
    """410: the server no longer has this resource version. List again."""

    retry_after_s = 0.0


class Backwards(ClusterError):
    """504 with the cause ResourceVersionTooLarge: the server is behind the version we have seen. Possible causes are
    a lagging replica and data restored from a backup.
    """

    retry_after_s = 1.0


class Conflict(ClusterError):
    """409, or a JSON patch with a failed test: the object changed since it was read. Read it again, then decide
    again."""

    retry_after_s = 0.0


class TooManyRequests(ClusterError):
    """429: throttled."""

    retry_after_s = 1.0


class BudgetRefused(TooManyRequests):
    """429 with the cause DisruptionBudget: a PodDisruptionBudget does not allow the eviction now."""

    retry_after_s = 5.0


class ServerFailing(ClusterError):
    """5xx: the server failed or is too busy."""

    retry_after_s = 5.0


class InternalError(ServerFailing):
    """500: the server failed on this request. It also answers 500 when a mandatory webhook does not answer
    (apiserver's admission/plugin/webhook/mutating/dispatcher.go); other requests may still succeed.
    """


class SeveralBudgets(InternalError):
    """500 with its own message: more than one PodDisruptionBudget selects the pod, so it is never evicted."""


class Refused(ClusterError):
    """The server rejected the request: an invalid object, or an unsupported method."""


class Unreadable(ClusterError):
    """The answer is not JSON of the expected shape."""

    retry_after_s = 15.0


# The API server's message for a JSON patch that cannot be applied, such as one with a failed `test` (apiserver's
# patch.go, applyJSPatch, answers with NewGenericServerResponse(422)). An invalid object says "… is invalid" instead.
PATCH_DOES_NOT_APPLY = "the server rejected our request due to an error in our request"

# The answer of a watch cache that waited three seconds for a version in vain (NewTimeoutError with this cause:
# kubernetes/kubernetes pull 92537; the body is quoted in kubernetes-client/java issue 2190).
VERSION_TOO_LARGE = "ResourceVersionTooLarge"
# kubernetes, pkg/registry/core/pod/storage/eviction.go (checkAndDecrement: DisruptionBudgetCause), and
# k8s.io/api/core/v1/types.go (NamespaceTerminatingCause).
BUDGET, NAMESPACE_ENDS = "DisruptionBudget", "NamespaceTerminating"
SEVERAL_BUDGETS = "more than one PodDisruptionBudget"  # in the message; the answer has no cause

SECONDS = re.compile(r"[0-9]{1,9}")  # RFC 9110 10.2.3; a date is ignored
LONGEST_WAIT_S = 300.0

BY_STATUS: dict[int, type[ClusterError]] = {
    401: BadCredentials,
    403: Forbidden,
    404: Absent,
    409: Conflict,
    410: Gone,
    429: TooManyRequests,
    500: InternalError,
}


BY_CAUSE: dict[str, type[ClusterError]] = {
    VERSION_TOO_LARGE: Backwards,
    BUDGET: BudgetRefused,
    NAMESPACE_ENDS: NamespaceTerminating,
}


class StatusCause(msgspec.Struct, frozen=True):
    reason: str | None = ""
    message: str | None = ""


class StatusDetails(msgspec.Struct, frozen=True, rename="camel"):
    retry_after_seconds: float | None = None
    causes: list[StatusCause] | None = None


class Status(msgspec.Struct, frozen=True, rename="camel"):
    """The body of every refusal: metav1.Status."""

    kind: str = ""
    code: int | None = None
    reason: str | None = ""
    message: str | None = ""
    details: StatusDetails | None = None


UNAUTHORIZED = "Unauthorized"  # the API server's only message for wrong, expired and missing credentials
STATUS = msgspec.json.Decoder(Status)  # here, not where it is used: see decoder.py


def error_for(code: int, body: bytes, *, retry_after: str | None = None) -> ClusterError:
    """Returns the error that an answer means. The only function that maps HTTP status codes."""
    status = read_status(body)
    if status is None:
        return _without_status(code, retry_after)
    return error_from(status, code=code, retry_after=retry_after)


def error_from(status: Status, *, code: int | None = None, retry_after: str | None = None) -> ClusterError:
    code = code or status.code or 500
    message = status.message or status.reason or f"The API server answered {code}."
    wait_s = _seconds(retry_after)
    if wait_s is None and status.details is not None:
        wait_s = _bounded(status.details.retry_after_seconds)
    if code == 401 and message == UNAUTHORIZED:
        message = "The API server does not accept our credentials (401 Unauthorized)."
    if code == 422 and status.message == PATCH_DOES_NOT_APPLY:
        return Conflict("The object changed since the patch was made.")
    for cause in (status.details and status.details.causes) or ():
        if kind := BY_CAUSE.get(cause.reason or ""):
            return kind(f"{message} {cause.message or ''}".strip(), retry_after_s=wait_s)
    if code == 500 and SEVERAL_BUDGETS in message:
        return SeveralBudgets(message)
    return _class_for(code)(message, retry_after_s=wait_s)


def read_status(body: bytes) -> Status | None:
    """Decodes a Status. None: the body is none."""
    try:
        status = STATUS.decode(body)
    except Exception:  # noqa: BLE001 - of any class: the caller handles the missing Status
        return None
    return status if status.kind == "Status" else None


def _class_for(code: int) -> type[ClusterError]:
    return BY_STATUS.get(code) or (ServerFailing if code >= 500 else Refused)


def _without_status(code: int, retry_after: str | None) -> ClusterError:
    """Returns the error for an answer without a Status: from a proxy, another server, or a missing API group."""
    sentence = f"The answer was HTTP {code} without a Kubernetes Status."
    if code in (401, 403, 404, 429) or code >= 500:
        return _class_for(code)(sentence, retry_after_s=_seconds(retry_after))
    return NotAnApiServer(sentence)


def _seconds(text: str | None) -> float | None:
    return _bounded(float(text)) if text and SECONDS.fullmatch(text) else None


def _bounded(seconds: float | None) -> float | None:
    """Limits a server's wait to what a person would wait."""
    return None if seconds is None else max(0.0, min(seconds, LONGEST_WAIT_S))
