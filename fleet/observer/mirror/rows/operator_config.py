"""Rows of the ConfigMaps named by a ClusterPolicy: GPU layouts and sharing by entry name.

The device plugin's has one entry per file (NVIDIA docs, "Time-Slicing GPUs in Kubernetes"); mig-parted's has one
file, config.yaml, with its entries under `mig-configs` (gpu-operator, assets/state-mig-manager/0400_configmap.yaml).
"""

import re
from collections.abc import Iterator
from typing import Any

from fleet.observer.mirror.rows.text import VALUE_AT_MOST, fitted
from fleet.observer.mirror.watch_scope import MIG, WatchScope
from kube.structs import ConfigMapSeen

ENTRIES_AT_MOST = 256
TEXT_AT_MOST = 16 * 1024
ENTRIES = re.compile(r"^mig-configs:[ \t]*(?:#.*)?$", re.MULTILINE)
NAME = re.compile(r"""^( +)["']?([^\s"'#][^"'\n]*?)["']?:[ \t]*(?:#.*)?$""")


def config_row(seen: ConfigMapSeen, scope: WatchScope, purpose: str) -> dict[str, Any] | None:
    """Returns the row. None: another ConfigMap."""
    if not scope.configs.get(purpose) or seen.name != scope.configs[purpose]:
        return None
    entries = dict(_mig_config_entries(seen.values)) if purpose == MIG else seen.values
    return {
        "namespace": fitted(seen.metadata.namespace, 63),
        "name": fitted(seen.name, 253),
        "purpose": purpose,
        "entries": {
            fitted(name, VALUE_AT_MOST): fitted(text, TEXT_AT_MOST)
            for name, text in list(entries.items())[:ENTRIES_AT_MOST]
        },
    }


def _mig_config_entries(files: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yields the entries, split by indentation so that their text stays as written."""
    for text in files.values():
        head = ENTRIES.search(text)
        if head is not None:
            yield from _entries(text[head.end() :].split("\n"))


def _entries(lines: list[str]) -> Iterator[tuple[str, str]]:
    indent, name, body = "", "", list[str]()
    for line in lines:
        if line and not line[0].isspace() and not line.startswith("#"):
            break
        found = NAME.match(line)
        if found is not None and found[1] == (indent or found[1]):
            if name:
                yield name, "\n".join(body).rstrip()
            indent, name, body = found[1], found[2], []
        elif name:
            body.append(line)
    if name:
        yield name, "\n".join(body).rstrip()
