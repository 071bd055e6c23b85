"""Who asks, by bearer token, and whether that person may."""

from dataclasses import dataclass, field, replace
from enum import StrEnum

from simulator.rbac import MASTERS, Act, User, allows, denied, service_account
from simulator.refusals import Refused
from simulator.store import Store
from simulator.wire.paths import Target

OPEN_PATHS = ("/healthz", "/livez", "/readyz", "/version")
"""What system:public-info-viewer lets anybody see."""
ADMIN = User("simulator-admin", (MASTERS, "system:authenticated"))


class Authorization(StrEnum):
    ALLOW = "allow"  # whoever has a token may do everything
    RBAC = "rbac"  # the roles and bindings in the cluster decide


@dataclass(slots=True)
class Access:
    store: Store
    mode: Authorization
    tokens: dict[str, User] = field(default_factory=dict)

    def user_of(self, headers: dict[str, str], path: str) -> User:
        """:raises Refused: 401 without a token that is known."""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        user = self.tokens.get(token.strip()) if scheme.lower() == "bearer" else None
        if user is None and path.startswith(OPEN_PATHS):
            return User("system:anonymous", ("system:unauthenticated",))
        if user is None and not token and self.mode is Authorization.ALLOW:
            return ADMIN  # kubectl sends no token over plain HTTP: as on the insecure port of old, everybody is trusted
        if user is None:
            raise Refused(401, "Unauthorized", "Unauthorized")
        return self._impersonated(user, headers)

    def _impersonated(self, user: User, headers: dict[str, str]) -> User:
        name = headers.get("impersonate-user")
        if not name:
            return user
        act = Act("impersonate", "", "users", name=name)
        if not self.may(user, act):
            raise denied(user, act)
        if name.startswith("system:serviceaccount:"):
            return service_account(*name.split(":")[2:4])
        return User(name, (headers.get("impersonate-group", "system:authenticated"), "system:authenticated"))

    def may(self, user: User, act: Act) -> bool:
        return self.mode is Authorization.ALLOW or allows(self.store, user, act)

    def check(self, user: User, act: Act) -> None:
        """:raises Refused: 403 in the words of the API server."""
        if act.path.startswith(OPEN_PATHS):
            return
        if not self.may(user, act):
            raise denied(user, act)


def act_of(method: str, path: str, target: Target | None, *, is_watch: bool) -> Act:
    """The verb that rules speak of."""
    if target is None:
        return Act(method.lower(), path=path)
    plain = Act("", target.group, target.plural, target.subresource, target.namespace, target.name)
    return replace(plain, verb=_verb(method, target.name, is_watch=is_watch))


def with_selected_name(act: Act, field_selector: str) -> Act:
    """A list or watch of one name is about that object: k8s.io/apiserver, pkg/endpoints/request/requestinfo.go."""
    key, _, name = field_selector.partition("=")
    is_of_one = act.verb in {"list", "watch"} and key == "metadata.name" and "," not in name
    return replace(act, name=name.removeprefix("=")) if is_of_one else act


def _verb(method: str, name: str, *, is_watch: bool) -> str:
    match method:
        case "GET" | "HEAD":
            return "watch" if is_watch else "get" if name else "list"
        case "DELETE":
            return "delete" if name else "deletecollection"
    return {"POST": "create", "PUT": "update", "PATCH": "patch"}.get(method, method.lower())
