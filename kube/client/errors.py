"""What can go wrong when talking to a cluster, in our words.

Nothing outside `kube.client` may catch, import or mention the client's exceptions: every call here raises one of these,
with the original chained as the cause.
"""

import re

import msgspec


class ClusterError(Exception):
    """A cluster did not do what it was asked. `retry_after_s` is None when asking again is useless.

    Its sentence is for whoever sees a pool of the cluster: no address, no path, no context and no word of a plugin is
    in it. `in_full` is for who has a shell, and for the log.
    """

    retry_after_s: float | None = None

    def __init__(self, sentence: str, *, retry_after_s: float | None = None, in_full: str = "") -> None:
        super().__init__(sentence.replace("\0", ""))  # PostgreSQL keeps none, and what a server says is kept
        self.in_full = in_full or sentence
        if retry_after_s is not None:
            self.retry_after_s = retry_after_s


class BadKubeconfig(ClusterError):
    """There is no file, or it does not say how to reach a cluster."""


class Unreachable(ClusterError):
    """The API server did not answer. Says nothing about the nodes behind it."""

    retry_after_s = 5.0


class Silent(Unreachable):
    """The connection stands and nothing comes through it, as behind a firewall that forgot it."""


class Untrusted(ClusterError):
    """The server's certificate is not one that the kubeconfig trusts."""


class NotAnApiServer(ClusterError):
    """Something answered, but nothing that speaks Kubernetes."""

    retry_after_s = 15.0


class BadCredentials(ClusterError):
    """401: the server does not know us. Tokens are renewed, so it is worth asking again."""

    retry_after_s = 15.0


class Forbidden(ClusterError):
    """403: our credentials are valid but may not do this. The sentence names the missing rule."""


class Absent(ClusterError):
    """404: no such object, or its kind is not installed."""


class Gone(ClusterError):
    """410: what we want to go on from is forgotten. List again."""

    retry_after_s = 0.0


class Backwards(ClusterError):
    """504 with the cause ResourceVersionTooLarge: the server has not come as far as we were. A replica that lags, or
    data restored from a backup."""

    retry_after_s = 1.0


class Conflict(ClusterError):
    """409, or a JSON patch whose test did not hold: the object is no longer what we read. Read again, decide again."""

    retry_after_s = 0.0


class TooManyRequests(ClusterError):
    """429: throttled, or an eviction that a PodDisruptionBudget does not allow now."""

    retry_after_s = 1.0


class ServerFailing(ClusterError):
    """5xx: the server tried and failed, or is too busy."""

    retry_after_s = 5.0


class InternalError(ServerFailing):
    """500: it stumbled over this request. So it answers a write whose webhook does not answer and may not be left out
    (apiserver's admission/plugin/webhook/mutating/dispatcher.go): the server is well, and others need not stumble."""


class Refused(ClusterError):
    """The server understood and said no: an invalid object, a method it does not serve."""


class Unreadable(ClusterError):
    """The answer is no JSON of the shape that its kind has."""

    retry_after_s = 15.0


# What an API server says when a JSON patch cannot be applied, as when a `test` in it fails (apiserver's patch.go,
# applyJSPatch, answers with NewGenericServerResponse(422)). An invalid object says "… is invalid" instead.
PATCH_DOES_NOT_APPLY = "the server rejected our request due to an error in our request"

# What a watch cache answers that waited three seconds for a version in vain (NewTimeoutError with this cause:
# kubernetes/kubernetes pull 92537; the body is quoted in kubernetes-client/java issue 2190).
VERSION_TOO_LARGE = "ResourceVersionTooLarge"

SECONDS = re.compile(r"[0-9]{1,9}")  # RFC 9110 10.2.3; a date in its place is left
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


class StatusCause(msgspec.Struct, frozen=True):
    reason: str | None = ""


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


STATUS = msgspec.json.Decoder(Status)  # here, not where it is used: see decoding.py


def error_for(code: int, body: bytes, *, retry_after: str | None = None) -> ClusterError:
    """The error that an answer with this status means. The one place that knows."""
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
    if code == 422 and status.message == PATCH_DOES_NOT_APPLY:
        return Conflict("The object is not what the patch was made for.")
    if status.details is not None and any(one.reason == VERSION_TOO_LARGE for one in status.details.causes or ()):
        return Backwards(message, retry_after_s=wait_s)
    return _class_for(code)(message, retry_after_s=wait_s)


def read_status(body: bytes) -> Status | None:
    """None: the body is not a Status."""
    try:
        status = STATUS.decode(body)
    except Exception:  # noqa: BLE001 - of whatever class: its caller says that there was none
        return None
    return status if status.kind == "Status" else None


def _class_for(code: int) -> type[ClusterError]:
    return BY_STATUS.get(code) or (ServerFailing if code >= 500 else Refused)


def _without_status(code: int, retry_after: str | None) -> ClusterError:
    """A proxy on the way, no API server at all, or an API group that is not installed: those send no Status."""
    sentence = f"The answer was HTTP {code} without a Kubernetes Status."
    if code in (401, 403, 404, 429) or code >= 500:
        return _class_for(code)(sentence, retry_after_s=_seconds(retry_after))
    return NotAnApiServer(sentence)


def _seconds(text: str | None) -> float | None:
    return _bounded(float(text)) if text and SECONDS.fullmatch(text) else None


def _bounded(seconds: float | None) -> float | None:
    """No longer than a person would wait to see it again; nobody can sleep for 1e300 s."""
    return None if seconds is None else max(0.0, min(seconds, LONGEST_WAIT_S))
