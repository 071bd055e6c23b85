"""What an API server answers who asks what it may do (authorization.k8s.io/v1)."""

from kube.structs.meta import Struct


class AccessStatus(Struct, frozen=True):
    """Of a SubjectAccessReview. Neither allowed nor denied: no authorizer has a word for it, which is a no as well."""

    allowed: bool = False
    reason: str | None = ""
    evaluation_error: str | None = (
        ""  # something went wrong on the way to a yes or a no, which may be right all the same
    )


class AccessReview(Struct, frozen=True):
    status: AccessStatus
