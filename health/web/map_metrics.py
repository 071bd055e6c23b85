"""The map's colours by a metric: one byte for each cell of its raster, in raster order.

`static/js/map-colours.js` reads them. A node's cells are counts, or, under a metric, its boards by index.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.http import Http404, HttpResponse
from django.utils import timezone

from edges.digits import whole_number
from edges.parts import packed, part_response
from edges.requests import PersonRequest
from fleet.models import Node
from fleet.web.node_map import SeenMap
from health.sources.cluster_telemetry import ClusterTelemetry, SnapshotBoard, telemetry_of_clusters
from health.sources.readings import NOT_UNDER_MIG, UTILISATION
from health.telemetry.base import AHEAD_S, FORGET_AFTER_S, STALE_AFTER_S

NO_DATA = 255
NOT_OF_NOW = 254  # the value is too old, or its source is silent
NOT_EXPORTED = 253  # the source answers, but the exporter has no series of it
MOST = 252


@dataclass(frozen=True)
class MapMetric:
    keys: tuple[str, ...]  # of metrics: the first that a board has
    byte: Callable[[float], int]


def _ratio(value: float) -> int:
    """Returns a percentage. A value above zero is never shown as zero."""
    return 1 if 0 < value < 0.01 else int(min(MOST, max(0, 100 * value)) + 0.5)


MAP_METRICS: Mapping[str, MapMetric] = {
    "temperature": MapMetric(("temperature_celsius",), int),
    "utilisation": MapMetric(UTILISATION, _ratio),
}


@packed
@part_response
def map_metric(request: PersonRequest, name: str) -> HttpResponse:
    """Returns the bytes of all clusters or of one. 409 if the map's index has changed, since bytes would belong to
    other cells."""
    metric, seen = MAP_METRICS.get(name), SeenMap.by(request.user)
    if metric is None:
        raise Http404
    if request.GET.get("index", seen.version)[:64] != seen.version:
        return HttpResponse(status=409)
    if named := request.GET.get("cluster"):
        key = whole_number(named)
        seen = replace(seen, clusters=[one for one in seen.clusters if one.cluster.pk == key])
        if not seen.clusters:
            raise Http404
    return HttpResponse(bytes_for(metric, seen, now=timezone.now()), content_type="application/octet-stream")


def bytes_for(metric: MapMetric, seen: SeenMap, *, now: datetime) -> bytes:
    """Returns the bytes with three queries beside the map's, and two Redis requests for each cluster with a source."""
    ids = [one.cluster.pk for one in seen.clusters]
    rows = Node.objects.filter(cluster__in=ids, is_gpu_node=True).order_by()
    named = {pk: (name, vendor) for pk, name, vendor in rows.values_list("pk", "name", "gpu_vendor")}
    told = telemetry_of_clusters(ids, metric.keys, now=now)
    found = bytearray()
    for one in seen.clusters:
        telemetry = told[one.cluster.pk]
        of_boards = _bytes_of_boards(metric, telemetry, now=now.timestamp())
        boards, by_node = telemetry.boards.every, telemetry.boards.by_node
        for key, size in zip(one.keys, one.columns.sizes, strict=True):
            name, vendor = named.get(key, ("", ""))
            without = _byte_without_value(metric, telemetry, name, vendor)
            found += cells_of(of_boards, boards, by_node.get(name, ()), size, without=without)
    return bytes(found)


def cells_of(
    of_boards: bytes, boards: Sequence[SnapshotBoard], places: Collection[int], size: int, *, without: int = NO_DATA
) -> bytes:
    """Places each board at its index. A board without an index, or with a taken one, gets the first free cell."""
    cells = bytearray([without]) * size
    taken: set[int] = set()
    rest: list[int] = []
    for place in places:
        index = boards[place].index
        if index is None or index >= size or index in taken:
            rest.append(place)
        else:
            taken.add(index)
            cells[index] = of_boards[place]
    free = (at for at in range(size) if at not in taken)
    for place, at in zip(rest, free, strict=False):
        cells[at] = of_boards[place]
    return bytes(cells)


def _bytes_of_boards(metric: MapMetric, telemetry: ClusterTelemetry, *, now: float) -> bytes:
    columns = [list(_bytes_of(metric, telemetry, key, now=now)) for key in metric.keys]
    first, *others = columns
    for other in others:
        pairs = zip(first, other, strict=True)
        first = [second if one == NO_DATA or (one == NOT_OF_NOW and second <= MOST) else one for one, second in pairs]
    found, every = bytearray(first), telemetry.boards.every
    for node, places in telemetry.boards.by_node.items() if NO_DATA in found else ():
        for at in places:
            if found[at] == NO_DATA:
                found[at] = _byte_without_value(metric, telemetry, node, is_cut=every[at].is_mig)
    return bytes(found)


def _byte_without_value(
    metric: MapMetric, telemetry: ClusterTelemetry, node: str, vendor: str = "", *, is_cut: bool = False
) -> int:
    """Returns the byte for a GPU of this node without a value."""
    standing = telemetry.standing
    is_known = standing.has_source and not standing.is_silent and telemetry.kept is not None
    keys = set(metric.keys) - NOT_UNDER_MIG if is_cut else metric.keys
    is_exported = any(telemetry.is_exported(key, node, vendor) for key in keys)
    return NO_DATA if is_exported or not is_known else NOT_EXPORTED


def _bytes_of(metric: MapMetric, telemetry: ClusterTelemetry, key: str, *, now: float) -> Iterable[int]:
    """Yields bytes by the same rules as `reading.read_metric`."""
    oldest, newest = now - FORGET_AFTER_S, now + AHEAD_S
    fresh = float("inf") if telemetry.standing.is_silent else now - STALE_AFTER_S
    for value, at in zip(telemetry.values(key), telemetry.times(key), strict=True):
        if not (value - value == 0 and oldest <= at <= newest):  # neither NaN nor infinite
            yield NO_DATA
        else:
            yield min(MOST, max(0, metric.byte(value))) if at >= fresh else NOT_OF_NOW
