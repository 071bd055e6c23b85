"""The roles that every cluster is born with, as far as ordinary clients lean on them."""

from simulator.kinds import CLUSTER_ROLE, CLUSTER_ROLE_BINDING
from simulator.store import Store

DISCOVERY_PATHS = [
    "/api",
    "/api/*",
    "/apis",
    "/apis/*",
    "/healthz",
    "/livez",
    "/openapi",
    "/openapi/*",
    "/readyz",
    "/version",
    "/version/",
]
REVIEWS = ["selfsubjectaccessreviews", "selfsubjectrulesreviews"]
RBAC = "rbac.authorization.k8s.io"

ROLES = {
    "cluster-admin": [
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
        {"nonResourceURLs": ["*"], "verbs": ["*"]},
    ],
    "system:discovery": [{"nonResourceURLs": DISCOVERY_PATHS, "verbs": ["get"]}],
    "system:basic-user": [
        {"apiGroups": ["authorization.k8s.io"], "resources": REVIEWS, "verbs": ["create"]},
        {"apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"], "verbs": ["create"]},
    ],
}
BOUND_TO = {
    "cluster-admin": "system:masters",
    "system:discovery": "system:authenticated",
    "system:basic-user": "system:authenticated",
}


def add_roles(store: Store) -> None:
    labels = {"kubernetes.io/bootstrapping": "rbac-defaults"}
    for name, granted in ROLES.items():
        metadata = {"name": name, "labels": labels}
        store.create(CLUSTER_ROLE, {"metadata": metadata, "rules": granted})
        subject = {"kind": "Group", "apiGroup": RBAC, "name": BOUND_TO[name]}
        reference = {"apiGroup": RBAC, "kind": "ClusterRole", "name": name}
        store.create(CLUSTER_ROLE_BINDING, {"metadata": metadata, "subjects": [subject], "roleRef": reference})
