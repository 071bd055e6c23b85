"""The only package that talks to Kubernetes, and the only importer of its client."""

from kube.client.connection import Connection, connect
from kube.client.custom_objects import create_custom, delete_custom, find_kinds, get_custom, patch_custom
from kube.client.errors import (
    Absent,
    BadCredentials,
    BudgetRefused,
    ClusterError,
    Conflict,
    Forbidden,
    Gone,
    InternalError,
    NamespaceTerminating,
    NotAnApiServer,
    Refused,
    ServerFailing,
    SeveralBudgets,
    Silent,
    TooManyRequests,
    Unreachable,
    Unreadable,
    Untrusted,
)
from kube.client.lists import list_pages
from kube.client.patches import Patch, field_patch, metadata_patch, node_patch, taint_patch
from kube.client.queries import (
    get_config_map,
    get_daemonset,
    get_driver_object,
    get_driver_object_whole,
    get_job,
    get_lease,
    get_namespace,
    get_node,
    get_pod_spec,
    kube_system_uid,
    list_daemonsets,
    list_jobs,
    list_nodes,
    list_nodes_and_unread,
    list_pods,
    list_pods_on,
    list_revisions,
    list_slices,
    list_warnings,
    server_version,
)
from kube.client.single_requests import AccessAsked, is_access_allowed, reach
from kube.client.watches import Watch
from kube.client.writes import (
    NO_DRY_RUN,
    create_job,
    create_lease,
    delete_job,
    delete_lease,
    delete_pod,
    evict_pod,
    lease_spec,
    patch_driver_object,
    patch_node,
    replace_lease,
)
from kube.structs import PodSeen
from kube.structs.workload import JobSeen
