"""Our structs against the official client's typed models: the same bytes, one after the other, in one process."""

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from kubernetes.client import ApiClient

from benchmarks.observing.api import Api
from fleet.kube.decoding import decode_list
from fleet.kube.structs import NodeSeen, PodSeen

# In the proportion of a first list: ten pods a node.
LISTS = (("/api/v1/nodes", 1, NodeSeen, "V1NodeList"), ("/api/v1/pods", 10, PodSeen, "V1PodList"))


def decode_ratio(api: Api) -> float:
    """How many times as long theirs takes."""
    models = ApiClient()
    ours_s = theirs_s = 0.0
    for path, pages, struct, model in LISTS:
        bodies = list(_bodies(api, path, pages))
        texts = [body.decode() for body in bodies]
        ours_s += _cpu_s(bodies, partial(decode_list, kind=struct))
        theirs_s += _cpu_s(texts, partial(models.deserialize, response_type=model, content_type="application/json"))
    return theirs_s / ours_s


def _bodies(api: Api, path: str, pages: int) -> Iterator[bytes]:
    for body, _ in zip(api.pages(path), range(pages), strict=False):
        yield body


def _cpu_s(pages: Sequence[Any], decode: Callable[[Any], object]) -> float:
    """Of three runs the median, in CPU time: what else the machine does is no part of it."""
    return statistics.median(_once(pages, decode) for _ in range(3))


def _once(pages: Sequence[Any], decode: Callable[[Any], object]) -> float:
    began = time.process_time()
    for page in pages:
        decode(page)  # and let go of it, as a reader does that goes on to the next
    return time.process_time() - began
