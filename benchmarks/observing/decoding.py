"""Our structs against the official client's typed models: the same bytes, one after the other, in one process."""

import gc
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from timeit import Timer
from typing import Any

from kubernetes.client import ApiClient, models

from benchmarks.observing.api import Api
from kube.client.decoder import decode_list
from kube.structs import NodeSeen, PodSeen

# In the proportion of a first list: ten pods a node.
LISTS = (("/api/v1/nodes", 1, NodeSeen, "V1NodeList"), ("/api/v1/pods", 10, PodSeen, "V1PodList"))


PYTHONS_OWN = (700, 10, 10)  # gc.get_threshold() of a process that sets none, up to Python 3.13
HEAD = re.compile(rb'"kind":"(\w+)","apiVersion":"(?:([\w.-]+)/)?(\w+)"')


def decode_ratio(api: Api) -> float:
    """How many times as long theirs takes."""
    client = ApiClient()
    ours_s = theirs_s = 0.0
    for path, pages, struct, model in LISTS:
        bodies = list(_bodies(api, path, pages))
        texts = [body.decode() for body in bodies]
        ours_s += _cpu_s(bodies, partial(decode_list, kind=struct))
        theirs_s += _cpu_s(texts, partial(client.deserialize, response_type=model, content_type="application/json"))
    return theirs_s / ours_s


def typed_models_s(api: Api, paths: Sequence[str]) -> float:
    """What their typed models take for these lists, page by page; what the server takes is no part of it."""
    client, taken_s = ApiClient(), 0.0
    with _thresholds(*PYTHONS_OWN):
        for path in paths:
            for body in api.pages(path):
                text, model = body.decode(), model_of(body)
                began = time.perf_counter()
                client.deserialize(text, response_type=model, content_type="application/json")
                taken_s += time.perf_counter() - began
    return taken_s


def model_of(body: bytes) -> str:
    """Their name for a list: V1PodList, CoreV1EventList. What they have no model for they give as it is."""
    found = HEAD.search(body[:4096])
    if not found:
        return "object"
    kind, group, version = (part.decode() if part else "" for part in found.groups())
    name = f"{version.capitalize()}{kind}"
    apart = f"{(group or 'core').partition('.')[0].capitalize()}{name}"
    return next((each for each in (name, apart) if hasattr(models, each)), "object")


def _bodies(api: Api, path: str, pages: int) -> Iterator[bytes]:
    for body, _ in zip(api.pages(path), range(pages), strict=False):
        yield body


def _cpu_s(pages: Sequence[Any], decode: Callable[[Any], object]) -> float:
    """The best of three runs, each for a fifth of a second or longer, in CPU time: what else the machine does costs
    caches, and a page of few nodes is decoded within one millisecond.

    Looking for cycles as often as Python does by itself: our processes do so more rarely, and theirs would not.
    """
    timer = Timer(partial(_once, pages, decode), setup=gc.enable, timer=time.process_time)
    with _thresholds(*PYTHONS_OWN):
        number, _ = timer.autorange()
        return min(timer.repeat(3, number)) / number


@contextmanager
def _thresholds(*wanted: int) -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(*wanted)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _once(pages: Sequence[Any], decode: Callable[[Any], object]) -> None:
    for page in pages:
        decode(page)  # and let go of it, as a reflector does that goes on to the next
