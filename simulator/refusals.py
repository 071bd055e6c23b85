"""What an API server says no with: the Status object, in the words of k8s.io/apimachinery's api/errors."""

from dataclasses import dataclass
from typing import Any

from simulator.kinds import Kind


@dataclass(frozen=True, slots=True)
class Cause:
    """One field's complaint; `reason` is FieldValueInvalid, FieldValueRequired, FieldValueForbidden and the like."""

    field: str
    message: str
    reason: str = "FieldValueInvalid"

    def as_json(self) -> dict[str, str]:
        return {"reason": self.reason, "message": self.message, "field": self.field}


class Refused(Exception):
    def __init__(
        self,
        status: int,
        reason: str,
        message: str,
        *,
        details: dict[str, Any] | None = None,
        retry_after_s: int | None = None,
        continue_: str = "",
    ) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message
        self.details = details or {}
        self.retry_after_s = retry_after_s
        self.continue_ = continue_

    def body(self) -> dict[str, Any]:
        details = dict(self.details)
        if self.retry_after_s is not None:
            details["retryAfterSeconds"] = self.retry_after_s
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {"continue": self.continue_} if self.continue_ else {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
        }
        if not self.reason:
            del status["reason"]
        if details:
            status["details"] = details
        return {**status, "code": self.status}


def of_object(kind: Kind, name: str) -> dict[str, Any]:
    """The `details` that name an object by its resource."""
    details = {"name": name, "group": kind.group, "kind": kind.plural}
    return {key: value for key, value in details.items() if value}


def not_found(kind: Kind, name: str) -> Refused:
    return Refused(404, "NotFound", f'{kind.resource} "{name}" not found', details=of_object(kind, name))


def path_not_found() -> Refused:
    return Refused(404, "NotFound", "the server could not find the requested resource")


def already_exists(kind: Kind, name: str) -> Refused:
    return Refused(409, "AlreadyExists", f'{kind.resource} "{name}" already exists', details=of_object(kind, name))


MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def conflict(kind: Kind, name: str, why: str = MODIFIED) -> Refused:
    message = f'Operation cannot be fulfilled on {kind.resource} "{name}": {why}'
    return Refused(409, "Conflict", message, details=of_object(kind, name))


def invalid(kind: Kind, name: str, *causes: Cause) -> Refused:
    said = [f"{cause.field}: {cause.message}" for cause in causes]
    listed = said[0] if len(said) == 1 else f"[{', '.join(said)}]"
    named = f"{kind.name}.{kind.group}" if kind.group else kind.name
    details = {"name": name, "group": kind.group, "kind": kind.name, "causes": [cause.as_json() for cause in causes]}
    return Refused(
        422,
        "Invalid",
        f'{named} "{name}" is invalid: {listed}',
        details={key: value for key, value in details.items() if value},
    )


def bad_request(message: str) -> Refused:
    return Refused(400, "BadRequest", message)


def forbidden(kind: Kind, name: str, why: str) -> Refused:
    target = f'{kind.resource} "{name}"' if name else kind.resource
    return Refused(403, "Forbidden", f"{target} is forbidden: {why}", details=of_object(kind, name))


def namespace_ends(kind: Kind, name: str, namespace: str) -> Refused:
    """As its admission refuses new content, and evictions with it: they are created, too."""
    why = f"unable to create new content in namespace {namespace} because it is being terminated"
    refused = forbidden(kind, name, why)
    message = f"namespace {namespace} is being terminated"
    cause = {"reason": "NamespaceTerminating", "message": message, "field": "metadata.namespace"}
    refused.details = {**refused.details, "causes": [cause]}
    return refused


def expired(message: str, *, continue_: str = "") -> Refused:
    return Refused(410, "Expired", message, continue_=continue_)


def unsupported_media(accepted: str) -> Refused:
    message = f"the body of the request was in an unknown format - accepted media types include: {accepted}"
    return Refused(415, "UnsupportedMediaType", message)


def too_many_requests(message: str, *, retry_after_s: int, causes: tuple[Cause, ...] = ()) -> Refused:
    said = [{key: value for key, value in cause.as_json().items() if value} for cause in causes]
    details = {"causes": said} if said else {}
    # The API server sends 0 as an absent field.
    return Refused(429, "TooManyRequests", message, details=details, retry_after_s=retry_after_s or None)
