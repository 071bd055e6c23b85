"""GPUs are cut or shared anew: device plugin, labels and MIG manager come back in any order, and nobody is alarmed."""

from dataclasses import dataclass

from hypothesis import assume, given
from hypothesis import strategies as st

from fleet.observer.mirror.diff import remember
from fleet.observer.mirror.rows.node import node_row
from gpu.resources import units_missing
from tests.fleet.documents import GPU_LABELS, a_node_seen, mig_mixed, time_sliced
from tests.make import NOON

GPU = "nvidia.com/gpu"
ORDER, STATE = "nvidia.com/mig.config", "nvidia.com/mig.config.state"
SILENT = {"nvidia.com/gpu.present": "true"}


@dataclass(frozen=True)
class Cut:
    """What a node says of itself once it is cut so."""

    order: str
    amounts: dict[str, int]
    labels: dict[str, str]


def mixed(order: str, slices: dict[str, int], whole: int) -> Cut:
    amounts = {f"nvidia.com/mig-{profile}": count for profile, count in slices.items()}
    return Cut(order, amounts | {GPU: whole}, mig_mixed(slices, config=order))


def single(order: str, profile: str, count: int) -> Cut:
    product = f"NVIDIA-H100-80GB-HBM3-MIG-{profile}"
    labels = GPU_LABELS | {f"{GPU}.product": product, f"{GPU}.count": str(count), f"{GPU}.replicas": "1"}
    return Cut(order, {GPU: count}, labels)


WHOLE = Cut("all-disabled", {GPU: 8}, GPU_LABELS)
CUTS = (
    WHOLE,
    mixed("all-1g.10gb", {"1g.10gb": 56}, 0),
    mixed("half-1g.10gb", {"1g.10gb": 28}, 4),
    mixed("all-balanced", {"1g.10gb": 16, "2g.20gb": 8, "3g.40gb": 8}, 0),
    single("single-1g.10gb", "1g.10gb", 56),
    single("single-3g.40gb", "3g.40gb", 16),
)
SHARINGS = (WHOLE, Cut("", {GPU: 32}, time_sliced(4)), Cut("", {GPU: 16}, time_sliced(2, how="mps")))


class Story:
    """A node's row through what is seen of it, and what of it does not come back at once."""

    def __init__(self, cut: Cut) -> None:
        self.amounts, self.to_be_had, self.labels, self.order, self.state = (
            dict(cut.amounts), dict(cut.amounts), cut.labels, cut.order, "success",
        )  # fmt: skip
        self.row = None
        self.look()

    def look(self) -> None:
        labels = self.labels | ({ORDER: self.order, STATE: self.state} if self.order else {})
        seen = a_node_seen(resources=self.amounts, allocatables=self.to_be_had, labels=labels)
        self.row = remember(self.row, node_row(seen), now=NOON)

    def stop_plugin(self) -> None:
        """The kubelet still names the capacity."""
        self.to_be_had = dict.fromkeys(self.amounts, 0)

    def start_plugin(self, cut: Cut) -> None:
        """What it offers no more stays, for five minutes."""
        self.amounts = self.amounts | cut.amounts
        self.to_be_had = dict.fromkeys(self.amounts, 0) | cut.amounts

    def forget(self, cut: Cut) -> None:
        self.amounts = dict.fromkeys(self.amounts, 0) | cut.amounts


@given(st.sampled_from(CUTS), st.sampled_from(CUTS), st.permutations(["plugin", "labels", "manager"]))
def test_a_new_cut_is_no_alarm(was, now, order):
    assume(was != now)
    story = Story(was)
    story.order = now.order
    story.look()
    story.state = "pending"
    story.stop_plugin()
    story.labels = SILENT
    story.look()

    for who in order:
        if who == "plugin":
            story.start_plugin(now)
        elif who == "labels":
            story.labels = now.labels
        else:
            story.state = "success"
        story.look()
    story.forget(now)
    story.look()

    assert units_missing(story.row) == 0
    assert story.row["expected"] == {name: amount for name, amount in now.amounts.items() if amount}


@given(st.sampled_from(SHARINGS), st.sampled_from(SHARINGS), st.permutations(["plugin", "labels"]))
def test_a_new_way_of_sharing_is_no_alarm(was, now, order):
    assume(was != now)
    story = Story(was)

    for who in order:
        if who == "plugin":
            story.start_plugin(now)
        else:
            story.labels = now.labels
        story.look()

    assert units_missing(story.row) == 0
    assert story.row["expected"] == now.amounts


@given(st.sampled_from(CUTS + SHARINGS))
def test_a_plugin_that_stops_is_an_alarm_however_gpus_are_cut(cut):
    story = Story(cut)

    story.stop_plugin()
    story.labels = SILENT
    story.look()
    story.forget(Cut("", dict.fromkeys(cut.amounts, 0), {}))
    story.look()

    assert units_missing(story.row) == sum(cut.amounts.values())
