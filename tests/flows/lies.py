"""What an API server says that lets no plan start, said by the recorder in its place: one after another to a draft."""

from collections.abc import Callable
from typing import Any

from tests.flows.asked import Asked
from tests.flows.plans import Plan

DENIED = 'admission webhook "policy.example.com" denied the request: not today'


def status(code: int, reason: str, message: str) -> dict[str, Any]:
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure"}
    return body | {"code": code, "reason": reason, "message": message}


def asks_for_the_namespace(asked: Asked) -> bool:
    return asked.of("GET", "/api/v1/namespaces/quarterdeck")


def asks_to_patch_nodes(asked: Asked) -> bool:
    if not asked.path.endswith("/selfsubjectaccessreviews"):
        return False
    wanted = asked.body["spec"]["resourceAttributes"]
    return (wanted["verb"], wanted["resource"]) == ("patch", "nodes")


def tries_the_version(asked: Asked) -> bool:
    return asked.query.get("dryRun") == "All" and "/apis/nvidia.com/" in asked.path


def tries_a_node(asked: Asked) -> bool:
    return asked.query.get("dryRun") == "All" and asked.path.startswith("/api/v1/nodes/")


NOT_ALLOWED = {"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "status": {"allowed": False}}
LIES: tuple[tuple[Callable[[Asked], bool], int, dict[str, Any]], ...] = (
    (asks_for_the_namespace, 404, status(404, "NotFound", 'namespaces "quarterdeck" not found')),
    (asks_to_patch_nodes, 201, NOT_ALLOWED),
    (tries_the_version, 403, status(403, "Forbidden", DENIED)),
    (tries_a_node, 403, status(403, "Forbidden", DENIED)),
)


def barred_by_each(plan: Plan) -> list[str]:
    """The codes of the answers by which it was not started."""
    found: list[str] = []
    for matches, code, body in LIES:
        with plan.proxy.answering(matches, code, body):
            plan.start_in_vain()
        found += [code for code, one in plan.live_answers().items() if one["result"] == "barred"]
    return found
