"""Our service account's rights in the simulator's cluster, as deploy/rbac grants them, or some of them."""

from pathlib import Path
from typing import Any

import yaml

from kube import client
from tests.api_server import ApiServer

MANIFEST = Path(__file__).parents[2] / "deploy" / "rbac" / "quarterdeck.yaml"
OURS = "quarterdeck-rbac"  # the simulator's context of that manifest's service account
RBAC = "/apis/rbac.authorization.k8s.io/v1"
ROLES = f"{RBAC}/clusterroles"
PLACES = {"ClusterRole": ROLES, "ClusterRoleBinding": f"{RBAC}/clusterrolebindings", "Namespace": "/api/v1/namespaces"}
IN_SYSTEM = {kind: f"{RBAC}/namespaces/kube-system/{kind.lower()}s" for kind in ("Role", "RoleBinding")}


def grant(server: ApiServer, *without: str) -> None:
    """Apply the parts of the manifest for the cluster and for kube-system, without the rules for these resources."""
    admin = client.connect(server.kubeconfig, server.context)
    for document in yaml.safe_load_all(MANIFEST.read_text()):
        is_of_system = document["metadata"].get("namespace") == "kube-system"
        if place := (IN_SYSTEM if is_of_system else PLACES).get(document["kind"]):
            narrowed = {"rules": [narrow(rule, without) for rule in document["rules"]]} if "rules" in document else {}
            create(admin, place, document | narrowed)
    admin.close()


def narrow(rule: dict[str, Any], without: tuple[str, ...]) -> dict[str, Any]:
    kept = [resource for resource in rule["resources"] if resource not in without]
    return rule | {"resources": kept or ["nothing"]}


def create(admin: client.Connection, path: str, document: dict[str, Any]) -> None:
    try:
        admin.request("POST", path, body=document)
    except client.Conflict:
        return  # the simulator has that namespace from the start


def allow(server: ApiServer) -> None:
    """What an administrator does who reads on a page which rule is missing."""
    admin = client.connect(server.kubeconfig, server.context)
    roles = (document for document in yaml.safe_load_all(MANIFEST.read_text()) if document["kind"] == "ClusterRole")
    for role in roles:
        patch = [{"op": "replace", "path": "/rules", "value": role["rules"]}]
        path = f"{ROLES}/{role['metadata']['name']}"
        admin.request("PATCH", path, body=patch, content_type="application/json-patch+json")
    admin.close()
