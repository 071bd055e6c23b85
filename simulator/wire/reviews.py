"""authorization.k8s.io: what may I?"""

from collections.abc import Callable
from typing import Any

from simulator.rbac import Act, User, rules_of
from simulator.store import Store
from simulator.wire.answers import Answer, of_json

Decider = Callable[[User, Act], bool]


def access_review(decide: Decider, user: User, body: dict[str, Any]) -> Answer:
    spec = body.get("spec") or {}
    wanted = spec.get("resourceAttributes") or {}
    path = spec.get("nonResourceAttributes") or {}
    act = Act(
        verb=wanted.get("verb") or path.get("verb", ""),
        group=wanted.get("group", ""),
        resource=wanted.get("resource", ""),
        subresource=wanted.get("subresource", ""),
        namespace=wanted.get("namespace", ""),
        name=wanted.get("name", ""),
        path=path.get("path", ""),
    )
    return of_json({**_shape("SelfSubjectAccessReview"), "spec": spec, "status": {"allowed": decide(user, act)}}, 201)


def self_review(user: User) -> Answer:
    status = {"userInfo": {"username": user.name, "groups": list(user.groups)}}
    shape = _shape("SelfSubjectReview") | {"apiVersion": "authentication.k8s.io/v1"}
    return of_json({**shape, "status": status}, 201)


def rules_review(store: Store, user: User, body: dict[str, Any]) -> Answer:
    spec = body.get("spec") or {}
    rules = list(rules_of(store, user, spec.get("namespace", "")))
    resources = [_picked(rule, "apiGroups", "resources", "resourceNames") for rule in rules if "resources" in rule]
    paths = [_picked(rule, "nonResourceURLs") for rule in rules if "nonResourceURLs" in rule]
    status = {"resourceRules": resources, "nonResourceRules": paths, "incomplete": False}
    return of_json({**_shape("SelfSubjectRulesReview"), "spec": {}, "status": status}, 201)


def _picked(rule: Any, *members: str) -> dict[str, Any]:
    return {member: rule[member] for member in ("verbs", *members) if rule.get(member)}


def _shape(kind: str) -> dict[str, Any]:
    return {"kind": kind, "apiVersion": "authorization.k8s.io/v1", "metadata": {"creationTimestamp": None}}
