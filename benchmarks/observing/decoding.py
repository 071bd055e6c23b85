"""Our structs against the official client's typed models: the same bytes, one after the other, in one process."""

import statistics
import time
from collections.abc import Callable

from kubernetes.client import ApiClient

from benchmarks.observing.api import Api
from fleet.kube.decoding import decode_list
from fleet.kube.structs import NodeSeen, PodSeen

LISTS = (("/api/v1/pods", PodSeen, "V1PodList"), ("/api/v1/nodes", NodeSeen, "V1NodeList"))


def decode_ratio(api: Api) -> float:
    """How many times as long theirs takes, over a page of each."""
    models = ApiClient()
    ours_s = theirs_s = 0.0
    for path, struct, model in LISTS:
        body = api.page(path)
        text = body.decode()
        ours_s += _cpu_s(lambda: decode_list(body, struct))  # noqa: B023
        theirs_s += _cpu_s(lambda: models.deserialize(text, model, "application/json"))  # noqa: B023
    return theirs_s / ours_s


def _cpu_s(act: Callable[[], object]) -> float:
    """Of three runs the median, in CPU time: what else the machine does is no part of it."""
    return statistics.median(_once(act) for _ in range(3))


def _once(act: Callable[[], object]) -> float:
    began = time.process_time()
    act()
    return time.process_time() - began
