"""What a page draws its map from, read as the page reads it."""

import json
import struct
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from django.test import Client

from fleet.map_cells.cell import CRITICAL, HELD, TAKEN_AT, CellColumns, CellCounts, GpuState, GpuTaken

STATE_BITS = 0x0F


@dataclass(frozen=True)
class Drawn:
    """A node of the map."""

    key: int
    name: str
    by: dict[str, str]
    code: int
    is_held: bool
    is_critical: bool
    gpus: list[tuple[GpuState, GpuTaken]]
    parts: CellCounts | None
    cluster: dict[str, Any]

    def count(self, state: GpuState, taken: GpuTaken = GpuTaken.NONE) -> int:
        return self.gpus.count((state, taken))

    @property
    def whole(self) -> tuple[int, int, int]:
        """Allocated, allocatable, expected."""
        taken, free = self.count(GpuState.WHOLE, GpuTaken.ALL), self.count(GpuState.WHOLE)
        return taken, taken + free, taken + free + self.count(GpuState.MISSING) + self.count(GpuState.AWAY)


def gpus_of(text: bytes) -> list[tuple[GpuState, GpuTaken]]:
    return [(GpuState(each & STATE_BITS), GpuTaken(each >> TAKEN_AT)) for each in text]


def read_raster(client: Client) -> tuple[dict[str, Any], CellColumns]:
    text = client.get("/parts/fleet/map").content
    assert text[:4] == b"QDM1"
    (length,) = struct.unpack("<I", text[4:8])
    head, rest = json.loads(text[8 : 8 + length]), text[8 + length :]
    nodes = sum(cluster["nodes"] for cluster in head["clusters"])
    sizes = rest[nodes : 2 * nodes]
    gpus = rest[2 * nodes : 2 * nodes + sum(sizes)]
    return head, CellColumns(rest[:nodes], sizes, gpus, rest[2 * nodes + len(gpus) :])


def read_map(client: Client) -> list[Drawn]:
    head, columns = read_raster(client)
    index = client.get("/parts/fleet/map/index").json()
    assert index["version"] == head["index"]
    clusters = [cluster for cluster in head["clusters"] for _ in range(cluster["nodes"])]
    keys, nodes = list(accumulate(index["keys"])), list(columns.nodes())
    assert len(keys) == len(nodes) == len(clusters) == len(index["names"])
    by = {name: [column["values"][at] for at in column["at"]] for name, column in index["by"].items()}
    return [
        Drawn(
            key,
            index["names"][at],
            {name: values[at] for name, values in by.items()},
            nodes[at].state & STATE_BITS,
            bool(nodes[at].state & HELD),
            bool(nodes[at].state & CRITICAL),
            gpus_of(nodes[at].gpus),
            nodes[at].parts,
            clusters[at],
        )
        for at, key in enumerate(keys)
    ]
