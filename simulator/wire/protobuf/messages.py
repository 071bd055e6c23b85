"""Which field is which, in the messages that kubectl's typed clients send: the generated.proto files of k8s.io/api."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto


class Plain(Enum):
    TEXT = auto()
    BYTES = auto()
    NUMBER = auto()
    FLAG = auto()
    TEXT_MAP = auto()
    BYTES_MAP = auto()
    TIME = auto()


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    type: Plain | str = Plain.TEXT
    """A string names another message."""
    is_repeated: bool = False


def _texts(*names: str) -> dict[int, Field]:
    return {number: Field(name) for number, name in enumerate(names, start=1)}


def _lists(*names: str) -> dict[int, Field]:
    return {number: Field(name, is_repeated=True) for number, name in enumerate(names, start=1)}


META = Field("metadata", "ObjectMeta")
Message = Mapping[int, Field]

MESSAGES: Mapping[str, Message] = {
    "ObjectMeta": {
        **_texts("name", "generateName", "namespace", "selfLink", "uid", "resourceVersion"),
        7: Field("generation", Plain.NUMBER),
        8: Field("creationTimestamp", Plain.TIME),
        9: Field("deletionTimestamp", Plain.TIME),
        10: Field("deletionGracePeriodSeconds", Plain.NUMBER),
        11: Field("labels", Plain.TEXT_MAP),
        12: Field("annotations", Plain.TEXT_MAP),
        13: Field("ownerReferences", "OwnerReference", is_repeated=True),
        14: Field("finalizers", is_repeated=True),
    },
    "OwnerReference": {
        1: Field("kind"),
        3: Field("name"),
        4: Field("uid"),
        5: Field("apiVersion"),
        6: Field("controller", Plain.FLAG),
        7: Field("blockOwnerDeletion", Plain.FLAG),
    },
    "Preconditions": _texts("uid", "resourceVersion"),
    "DeleteOptions": {
        1: Field("gracePeriodSeconds", Plain.NUMBER),
        2: Field("preconditions", "Preconditions"),
        3: Field("orphanDependents", Plain.FLAG),
        4: Field("propagationPolicy"),
        5: Field("dryRun", is_repeated=True),
    },
    "Eviction": {1: META, 2: Field("deleteOptions", "DeleteOptions")},
    "Namespace": {1: META},
    "ConfigMap": {1: META, 2: Field("data", Plain.TEXT_MAP), 3: Field("binaryData", Plain.BYTES_MAP)},
    "Secret": {
        1: META,
        2: Field("data", Plain.BYTES_MAP),
        3: Field("type"),
        4: Field("stringData", Plain.TEXT_MAP),
    },
    "ServiceAccount": {1: META},
    "ClusterRole": {1: META, 2: Field("rules", "PolicyRule", is_repeated=True)},
    "Role": {1: META, 2: Field("rules", "PolicyRule", is_repeated=True)},
    "PolicyRule": _lists("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs"),
    "ClusterRoleBinding": {1: META, 2: Field("subjects", "Subject", is_repeated=True), 3: Field("roleRef", "RoleRef")},
    "RoleBinding": {1: META, 2: Field("subjects", "Subject", is_repeated=True), 3: Field("roleRef", "RoleRef")},
    "Subject": _texts("kind", "apiGroup", "name", "namespace"),
    "RoleRef": _texts("apiGroup", "kind", "name"),
    "SelfSubjectAccessReview": {1: META, 2: Field("spec", "SelfSubjectAccessReviewSpec")},
    "SelfSubjectAccessReviewSpec": {
        1: Field("resourceAttributes", "ResourceAttributes"),
        2: Field("nonResourceAttributes", "NonResourceAttributes"),
    },
    "ResourceAttributes": _texts("namespace", "verb", "group", "version", "resource", "subresource", "name"),
    "NonResourceAttributes": _texts("path", "verb"),
    "SelfSubjectRulesReview": {1: META, 2: Field("spec", "SelfSubjectRulesReviewSpec")},
    "SelfSubjectReview": {1: META},
    "SelfSubjectRulesReviewSpec": _texts("namespace"),
}
