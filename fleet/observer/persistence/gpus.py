"""GPU rows of a node: the highest number ever seen, so that a lost GPU is noticed.

Rows are boards; `gpu.resources.physical` has their number. Without a number there are no rows.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from fleet.allocation.devices import Offered, OfferedDevice, offered_on
from fleet.models import Gpu
from fleet.observer.mirror.rows import Columns
from fleet.observer.persistence.upsert import Written
from fleet.observer.persistence.upsert_statement import upsert
from gpu.resources import Registered, registered_in
from gpu.resources.names import is_dra

BOARDS_AT_MOST = 128  # per node; larger label values are wrong


def follow(cluster_id: int, written: Written) -> None:
    """Updates GPU rows. One more query with a DRA driver, and one when GPUs turn out to be shares."""
    _drop_shares(written)
    nodes = [*written.new, *(row for old, row in written.changed if _board(old) != _board(row))]
    by_slices = [row["name"] for row in nodes if any(map(is_dra, row["capacity"]))]
    write_gpu_rows(nodes, offered_on(cluster_id, by_slices) if by_slices else {})


def _drop_shares(written: Written) -> None:
    """Deletes rows that were created for shares before the sharing was known."""
    numbers: dict[int, list[int]] = defaultdict(list)
    for old, row in written.changed:
        if row["sharing"] and not old["sharing"]:
            numbers[_board_count(row)].append(row["id"])
    for number, nodes in numbers.items():
        if number:
            Gpu.objects.filter(node__in=nodes, index__gte=number, uuid="").delete()


def write_gpu_rows(nodes: Iterable[Columns], offered: Mapping[str, Offered]) -> None:
    counted: list[Columns] = []
    named: list[Columns] = []
    for row in nodes:
        if row["name"] in offered:
            named.extend(_rows_by_slices(row, offered[row["name"]]))
        elif boards := registered_in(row["annotations"]):
            named.extend(_rows_by_plugin(row, boards))
        else:
            counted.append(row)
    upsert(Gpu, _rows_by_labels(counted), unique=("node", "index"), only_new={"uuid": ""})
    upsert(Gpu, named, unique=("node", "index"), only_new={})


def _board(row: Columns) -> tuple[object, ...]:
    """Returns the values that determine the rows. A DRA count represents the UUIDs behind it."""
    by_slices = sorted((name, amount) for name, amount in row["capacity"].items() if is_dra(name))
    return row["gpu_product"], row["gpu_memory_mib"], _board_count(row), by_slices, registered_in(row["annotations"])


def _board_count(row: Columns) -> int:
    """Returns the number of rows: the node's boards, limited."""
    return min(row["physical_gpus"] or 0, BOARDS_AT_MOST)


def _rows_by_labels(nodes: Iterable[Columns]) -> Iterator[Columns]:
    for row in nodes:
        said = {"product": row["gpu_product"], "memory_mib": row["gpu_memory_mib"]}
        yield from ({"node": row["id"], "index": index, **said} for index in range(_board_count(row)))


def _rows_by_plugin(row: Columns, boards: Iterable[Registered]) -> Iterator[Columns]:
    """Yields rows in the order of registration, which is the order of indices."""
    for index, board in enumerate(boards):
        said = {"product": board.product or row["gpu_product"], "memory_mib": row["gpu_memory_mib"]}
        yield {"node": row["id"], "index": index, **said, "uuid": board.uuid}


def _rows_by_slices(row: Columns, offered: Offered) -> Iterator[Columns]:
    for index, board in sorted(numbered(offered).items())[:BOARDS_AT_MOST]:
        memory = board.memory_mib if not board.is_cut else row["gpu_memory_mib"]
        product = board.product or ("" if offered.first("product") else row["gpu_product"])
        said = {"product": product, "memory_mib": memory}
        yield {"node": row["id"], "index": index, **said, "uuid": board.board}


def numbered(offered: Offered) -> dict[int, OfferedDevice]:
    """Returns the boards by index: from the device's name, else the next free one. A cut board is known by a slice."""
    boards: dict[str, OfferedDevice] = {}
    for device in sorted(offered.devices, key=lambda device: (device.is_cut, device.is_for_machines, device.name)):
        if device.is_board:
            boards.setdefault(device.board, device)
    found: dict[int, OfferedDevice] = {}
    rest = []
    for device in boards.values():
        if device.index is None or device.index in found:
            rest.append(device)
        else:
            found[device.index] = device
    free = (index for index in range(len(found) + len(rest)) if index not in found)
    return found | dict(zip(free, rest, strict=False))
