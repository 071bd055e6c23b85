"""Namespace, Lease, ConfigMap, the server's version: what we ask for one at a time."""

from datetime import datetime

from kube.structs.meta import Seen, Struct


class NamespaceSeen(Seen, frozen=True):
    """Its UID, where it is kube-system, is the cluster's."""


class ConfigMapSeen(Seen, frozen=True):
    data: dict[str, str] | None = None

    @property
    def values(self) -> dict[str, str]:
        return self.data or {}


class LeaseSpec(Struct, frozen=True):
    holder_identity: str | None = ""
    acquire_time: datetime | None = None
    renew_time: datetime | None = None
    lease_transitions: int | None = 0


class LeaseSeen(Seen, frozen=True):
    spec: LeaseSpec = LeaseSpec()


class ServerVersion(Struct, frozen=True):
    git_version: str = ""
