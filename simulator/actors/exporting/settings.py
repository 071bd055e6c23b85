"""What an exporter is set to write, as its pod says it: version, spelling, counters.

NVIDIA/dcgm-exporter, pkg/cmd/app.go for the variables; its labels are `Hostname` up to 4.8.2 and `hostname` from then
on (#655). GPU Operator: a ConfigMap that ClusterPolicy names is mounted as /etc/dcgm-exporter/dcgm-metrics.csv.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from simulator.actors.exporting.counters import (
    DRIVER_VERSION,
    SHIPPED,
    Counter,
    as_before_4_8_3,
    parse,
    without,
)
from simulator.actors.objects import Obj, namespace

VERSION = re.compile(r":[0-9.]+-(?P<version>[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3})(?:-|$)")
NEWEST = (4, 8, 3)
CUSTOM_FILE = "dcgm-metrics.csv"
ReadFile = Callable[[str, str, str], str | None]
"""(namespace, ConfigMap, key) -> what is written there."""


@dataclass(frozen=True, slots=True, eq=False)
class Settings:
    version: tuple[int, ...]
    counters: tuple[Counter, ...]
    names_driver: bool  # on every series
    names_pods: bool
    names_all: bool = False  # of those that share a device
    names_uids: bool = False
    names_claims: bool = False  # of those that claim their devices, too
    is_old: bool = False  # --use-old-namespace

    @classmethod
    def of(cls, exporter: Obj, read_file: ReadFile) -> "Settings":
        """:raises UnreadableCounters:"""
        container = exporter["spec"]["containers"][0]
        env = {each["name"]: each.get("value") or "" for each in container.get("env") or ()}
        words = container.get("args") or ()
        found = VERSION.search(container.get("image", ""))
        version = tuple(int(part) for part in found["version"].split(".")) if found else NEWEST
        own = _own_file(exporter, env, read_file)
        read = parse(SHIPPED if own is None else own)
        if own is None and version < NEWEST:
            read = as_before_4_8_3(read)
        return cls(
            version,
            without(read, DRIVER_VERSION),
            names_driver=any(each.name == DRIVER_VERSION for each in read),
            names_pods=env.get("DCGM_EXPORTER_KUBERNETES") != "false",
            names_all=env.get("KUBERNETES_VIRTUAL_GPUS") == "true",
            names_uids=env.get("DCGM_EXPORTER_KUBERNETES_ENABLE_POD_UID") == "true",
            names_claims=env.get("KUBERNETES_ENABLE_DRA") == "true",
            is_old=env.get("DCGM_EXPORTER_USE_OLD_NAMESPACE") == "true" or "--use-old-namespace" in words,
        )

    @property
    def hostname(self) -> str:
        return "hostname" if self.version >= NEWEST else "Hostname"

    @property
    def skips_blanks(self) -> bool:
        """What a GPU that is cut has no value of, is left out; others have written 0."""
        return self.version >= NEWEST

    @property
    def uuid(self) -> str:
        return "uuid" if self.is_old else "UUID"

    @property
    def of_pod(self) -> tuple[str, str, str]:
        """What container, namespace and pod are called."""
        return ("container_name", "pod_namespace", "pod_name") if self.is_old else ("container", "namespace", "pod")


def _own_file(exporter: Obj, env: dict[str, str], read_file: ReadFile) -> str | None:
    """What is mounted; None: nothing is, or it is not there, and the image's own is read."""
    asked = env.get("DCGM_EXPORTER_COLLECTORS", "").rpartition("/")[2]
    for volume in exporter["spec"].get("volumes") or ():
        mounted = (volume.get("configMap") or {}).get("name", "")
        text = read_file(namespace(exporter), mounted, asked or CUSTOM_FILE) if mounted else None
        if text is not None:
            return text
    return None
