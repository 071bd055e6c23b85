"""The GPU rows of a node: as many as it was ever seen to have, so that one that is lost is missed.

They are boards: `gpu.resources.physical` says how many, and where nobody tells that, there are none.
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

BOARDS_AT_MOST = 128  # of a node; more is a label that lies


def follow(cluster_id: int, written: Written) -> None:
    """Costs a query more where a DRA driver offers GPUs, and where GPUs were taken for whole that turn out shared."""
    _drop_shares(written)
    nodes = [*written.new, *(row for old, row in written.changed if _board(old) != _board(row))]
    by_slices = [row["name"] for row in nodes if any(map(is_dra, row["capacity"]))]
    fit(nodes, offered_on(cluster_id, by_slices) if by_slices else {})


def _drop_shares(written: Written) -> None:
    """Delete the rows that were made of shares, before anything told that they are."""
    numbers: dict[int, list[int]] = defaultdict(list)
    for old, row in written.changed:
        if row["sharing"] and not old["sharing"]:
            numbers[_number(row)].append(row["id"])
    for number, nodes in numbers.items():
        if number:
            Gpu.objects.filter(node__in=nodes, index__gte=number, uuid="").delete()


def fit(nodes: Iterable[Columns], offered: Mapping[str, Offered]) -> None:
    """Make rows for GPUs that have none, and give all of a node what is said of them."""
    counted: list[Columns] = []
    named: list[Columns] = []
    for row in nodes:
        if row["name"] in offered:
            named.extend(_by_slices(row, offered[row["name"]]))
        elif boards := registered_in(row["annotations"]):
            named.extend(_by_plugin(row, boards))
        else:
            counted.append(row)
    upsert(Gpu, _by_labels(counted), unique=("node", "index"), only_new={"uuid": ""})
    upsert(Gpu, named, unique=("node", "index"), only_new={})


def _board(row: Columns) -> tuple[object, ...]:
    """What the rows are made from. A count that a driver offers stands for the UUIDs behind it."""
    by_slices = sorted((name, amount) for name, amount in row["capacity"].items() if is_dra(name))
    return row["gpu_product"], row["gpu_memory_mib"], _number(row), by_slices, registered_in(row["annotations"])


def _number(row: Columns) -> int:
    """Boards, as many as the node's row counts; at most so many get a row of their own."""
    return min(row["physical_gpus"] or 0, BOARDS_AT_MOST)


def _by_labels(nodes: Iterable[Columns]) -> Iterator[Columns]:
    for row in nodes:
        said = {"product": row["gpu_product"], "memory_mib": row["gpu_memory_mib"]}
        yield from ({"node": row["id"], "index": index, **said} for index in range(_number(row)))


def _by_plugin(row: Columns, boards: Iterable[Registered]) -> Iterator[Columns]:
    """In the order of their registration, which is that of their numbers."""
    for index, board in enumerate(boards):
        said = {"product": board.product or row["gpu_product"], "memory_mib": row["gpu_memory_mib"]}
        yield {"node": row["id"], "index": index, **said, "uuid": board.uuid}


def _by_slices(row: Columns, offered: Offered) -> Iterator[Columns]:
    for index, board in sorted(numbered(offered).items())[:BOARDS_AT_MOST]:
        memory = board.memory_mib if not board.is_cut else row["gpu_memory_mib"]
        product = board.product or ("" if offered.first("product") else row["gpu_product"])
        said = {"product": product, "memory_mib": memory}
        yield {"node": row["id"], "index": index, **said, "uuid": board.board}


def numbered(offered: Offered) -> dict[int, OfferedDevice]:
    """The boards by number: that in the device's name, else the next that is free. A cut board is told by a slice."""
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
