"""The compatibility of drivers with some nodes of a plan, for its preview and its gate."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date

from fleet.drivers.cluster_drivers import read_drivers
from fleet.models import Node
from gpu.compatibility import Support
from health.stack.combinations import Line, compare_driver, is_compared, surroundings
from rollouts.gates.base import Combination
from rollouts.models import Plan

BARRED = {Support.KNOWN_BAD: "known-bad", Support.UNSUPPORTED: "unsupported"}  # answer → code of the blocker
UNKNOWN_VERSION = "unknown-version"
COLUMNS = (
    "uid", "os_image", "labels", "kubelet_version", "container_runtime", "driver_unknown_since", "driver_version",
    "gpu_product", "mig_strategy", "driver_owner", "kernel", "is_gpu_node", "gpu_vendor",
)  # fmt: skip


def lines_for(
    plan: Plan, nodes: Iterable[Node], versions: Sequence[str], *, today: date
) -> Mapping[str, tuple[Line, ...]]:
    """Returns the results by version, the worst first; none for an empty version. Four queries."""
    around = surroundings(read_drivers(plan.cluster))
    those = list(nodes)
    return {version: compare_driver(those, around, version, today=today) if version else () for version in versions}


def combinations(plan: Plan, uids: Sequence[str], *, today: date) -> tuple[tuple[Combination, ...], int]:
    """Returns the same for the plan's version as gate evidence, with the number of nodes. Five queries."""
    nodes = [
        node for node in Node.objects.filter(cluster=plan.cluster_id, uid__in=uids).only(*COLUMNS) if is_compared(node)
    ]
    lines = lines_for(plan, nodes, [plan.to_version], today=today)[plan.to_version]
    said = tuple(Combination(line.verdict.answer, line.verdict.sentence, line.nodes) for line in lines)
    return said, len(nodes)


def despite(plan: Plan) -> str:
    """Returns who started the plan despite an unsupported version, and why; empty if nobody did."""
    overridden = plan.sealed.get("despite", {})
    codes = {check["code"] for check in overridden.get("checks", ())}
    if not codes & {*BARRED.values(), UNKNOWN_VERSION}:
        return ""
    return f"{overridden['by']} started it despite this: {overridden['reason']}"
