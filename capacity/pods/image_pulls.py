"""The image that a starting pod waits for: since when, how large it is, and how long its pulls took elsewhere.

From Events alone, which clusters keep for about an hour: kubernetes, pkg/kubelet/images/image_manager.go. No kubelet
reports how much of an image it has pulled.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median

from fleet.models import ClusterEvent, Pod
from wording.durations import spell
from wording.numbers import count

PULLING = re.compile(r'Pulling image "?([^"\s]+)')
PULLED = re.compile(
    r'Successfully pulled image "?([^"\s]+)"? in (\S+) \((\S+) including waiting\)(?:\. Image size: (\d{1,18}) bytes)?'
)
PART = re.compile(r"(\d+(?:\.\d+)?)(h|ms|m|µs|us|ns|s)")  # of a duration as Go prints it
SECONDS = {"h": 3600, "m": 60, "s": 1, "ms": 1e-3, "µs": 1e-6, "us": 1e-6, "ns": 1e-9}
PULLS_AT_MOST = 200
PULLS_AT_LEAST = 3  # of an image, to call another one slow
KEPT_FOR = timedelta(hours=2)  # before a pull; clusters keep Events for about an hour
ENDS = ("Pulled", "Failed", "BackOff")
GB = 10**9


@dataclass(frozen=True)
class PendingPull:
    image: str
    since: datetime
    size_bytes: int | None  # as a runtime reported it; None: no pull of it is known
    took: Sequence[timedelta]  # other pulls in this cluster, with waiting
    others: int  # images of other starting pods on the same node, which it may pull, too

    @property
    def typical(self) -> timedelta | None:
        return timedelta(seconds=median(each.total_seconds() for each in self.took)) if self.took else None

    def sentences(self, *, now: datetime) -> list[str]:
        found = [f"Its size is {_gb(self.size_bytes)} GB." if self.size_bytes else "Its size is unknown here."]
        typical, lasts = self.typical, now - self.since
        if typical is None:
            found.append("No other pull of it is known from the last hour.")
        else:
            pulls = count(len(self.took), "other pull")
            found.append(
                f"{pulls} in this cluster took {spell(typical)}{' at the median' if len(self.took) > 1 else ''}."
            )
            if len(self.took) >= PULLS_AT_LEAST and lasts > 2 * max(self.took):
                found.append("This one lasts more than twice as long as any of them: check the network of the node.")
        if self.others:
            found.append(
                f"Pods that start on the node need {count(self.others, 'other image')}. A kubelet may pull one by one."
            )
        return found


def pending_pull_of(pod: Pod) -> PendingPull | None:
    """Returns the pull that the pod waits for. None: it waits for none. Three queries, one without a pull."""
    if not pod.node_name or pod.phase != "Pending":
        return None
    own = ClusterEvent.objects.filter(cluster=pod.cluster_id, about_uid=pod.uid, reason__in=("Pulling", *ENDS))
    begun: tuple[str, datetime] | None = None
    for reason, message, at in own.order_by("last_at", "pk").values_list("reason", "message", "last_at"):
        named = PULLING.match(message) if reason == "Pulling" else None
        if named and at:
            begun = named[1], at
        elif begun and _names(message, begun[0]):
            begun = None
    if begun is None:
        return None
    image, since = begun
    pulls = ClusterEvent.objects.filter(
        cluster=pod.cluster_id,
        about_kind="Pod",
        reason="Pulled",
        last_at__gte=since - KEPT_FOR,
        message__contains=image,
    )
    read = [
        PULLED.match(message)
        for message in pulls.order_by("-last_at").values_list("message", flat=True)[:PULLS_AT_MOST]
    ]
    found = [each for each in read if each and each[1] == image]
    sizes = [int(each[4]) for each in found if each[4]]
    took = [lasted for each in found if (lasted := _duration(each[3])) is not None]
    return PendingPull(image, since, sizes[0] if sizes else None, took, _others_on_node(pod, image))


def _others_on_node(pod: Pod, image: str) -> int:
    """Returns how many other images pods of the node wait for."""
    waiting = Pod.objects.filter(cluster=pod.cluster_id, node_name=pod.node_name, phase="Pending").exclude(pk=pod.pk)
    images = waiting.filter(started_at__isnull=False, stuck_container="").exclude(image__in=("", image))
    return images.order_by().values("image").distinct().count()


def _duration(written: str) -> timedelta | None:
    parts = PART.findall(written)
    if not parts or "".join(number + unit for number, unit in parts) != written:
        return None
    return timedelta(seconds=sum(float(number) * SECONDS[unit] for number, unit in parts))


def _gb(size: int) -> str:
    return f"{size / GB:,.0f}" if size >= 10 * GB else f"{size / GB:.2g}"


def _names(message: str, image: str) -> bool:
    """Tells whether a message names an image, and not one whose name begins alike: a:1 in a:1.1."""
    return re.search(rf"(?<![\w./:@-]){re.escape(image)}(?![\w/:@-]|\.\w)", message) is not None
