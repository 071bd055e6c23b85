"""Who may: the roles and bindings in the store, evaluated as the RBAC authorizer does. Rights only add up."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from simulator.kinds import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, ROLE, ROLE_BINDING
from simulator.refusals import Refused
from simulator.store import Store

Obj = Mapping[str, Any]
MASTERS = "system:masters"
SERVICE_ACCOUNT_PREFIX = "system:serviceaccount:"


@dataclass(frozen=True, slots=True)
class User:
    name: str
    groups: tuple[str, ...] = ()


def service_account(namespace: str, name: str) -> User:
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
    return User(f"{SERVICE_ACCOUNT_PREFIX}{namespace}:{name}", groups)


@dataclass(frozen=True, slots=True)
class Act:
    """What somebody wants: a verb on a resource, or on a path outside of the resources."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    @property
    def what(self) -> str:
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


def allows(store: Store, user: User, act: Act) -> bool:
    return MASTERS in user.groups or any(covers(rule, act) for rule in rules_of(store, user, act.namespace))


def rules_of(store: Store, user: User, namespace: str) -> Iterator[Obj]:
    """Every rule that holds for the user, cluster-wide and in one namespace."""
    for record in store.page(CLUSTER_ROLE_BINDING).records:
        if _names(record.obj, user, ""):
            yield from _rules(store, record.obj["roleRef"], "")
    if not namespace:
        return
    for record in store.page(ROLE_BINDING, namespace).records:
        if _names(record.obj, user, namespace):
            yield from _rules(store, record.obj["roleRef"], namespace)


def _names(binding: Obj, user: User, namespace: str) -> bool:
    for subject in binding.get("subjects") or ():
        match subject["kind"]:
            case "User" if subject["name"] == user.name:
                return True
            case "Group" if subject["name"] in user.groups:
                return True
            case "ServiceAccount":
                home = subject.get("namespace") or namespace
                if user.name == f"{SERVICE_ACCOUNT_PREFIX}{home}:{subject['name']}":
                    return True
    return False


def _rules(store: Store, reference: Obj, namespace: str) -> list[Obj]:
    kind, home = (CLUSTER_ROLE, "") if reference["kind"] == "ClusterRole" else (ROLE, namespace)
    try:
        found: list[Obj] = store.get(kind, reference["name"], home).get("rules") or []
    except Refused:  # a binding to a role that is not there grants nothing
        return []
    return found


def covers(rule: Obj, act: Act) -> bool:
    if not _has(rule.get("verbs"), act.verb):
        return False
    if act.path:
        return any(_fits_path(pattern, act.path) for pattern in rule.get("nonResourceURLs") or ())
    if not _has(rule.get("apiGroups"), act.group) or not _has_resource(rule.get("resources") or (), act):
        return False
    names = rule.get("resourceNames") or ()
    return not names or act.name in names


def _has(allowed: Any, wanted: str) -> bool:
    return "*" in (allowed or ()) or wanted in (allowed or ())


def _has_resource(allowed: Any, act: Act) -> bool:
    return "*" in allowed or act.what in allowed or (bool(act.subresource) and f"*/{act.subresource}" in allowed)


def _fits_path(pattern: str, path: str) -> bool:
    return pattern in {"*", path} or (pattern.endswith("*") and path.startswith(pattern[:-1]))


def denied(user: User, act: Act) -> Refused:
    if act.path:
        return Refused(403, "Forbidden", f'forbidden: User "{user.name}" cannot {act.verb} path "{act.path}"')
    scope = f'in the namespace "{act.namespace}"' if act.namespace else "at the cluster scope"
    plural = f"{act.resource}.{act.group}" if act.group else act.resource
    target = f'{plural} "{act.name}"' if act.name else plural
    message = (
        f'{target} is forbidden: User "{user.name}" cannot {act.verb} resource "{act.what}" '
        f'in API group "{act.group}" {scope}'
    )
    details = {"name": act.name, "group": act.group, "kind": act.resource}
    return Refused(403, "Forbidden", message, details={key: value for key, value in details.items() if value})
