"""Checks of the way from a request to a GPU in the container: request, node, allocation, kubelet, runtime."""

from datetime import timedelta

from gpu.operands import TOOLKIT
from gpu.resources import gpu_groups, is_gpu_resource
from health.pod_checklist.facts import PodCheckFacts
from health.pod_checklist.replies import NO_NODE, Reply, by_cause, no, unknown_reply, yes
from health.stack import NodeStack, OperandOnNode
from health.stack.causes import Weight
from health.stack.causes.entries import table
from health.stack.checklist import DRA_PLUGINS, PLUGINS
from wording.durations import spell
from wording.lists import names
from wording.numbers import either

RECENT = timedelta(minutes=30)  # an older Event of the kubelet is about something that is over
IN_USE_FROM_MIB = 1024.0  # a GPU without a program has less of its memory in use. Ours


def keys_of(*tables: str) -> frozenset[str]:
    return frozenset(rule.entry.key for rule in table(*tables))


REFUSED = keys_of("tenants.kubelet", "tenants.dra") | {
    "gpus_all_held", "numa_not_aligned", "refused_by_kubelet", "devices_taken", "gpu_lost", "claim_waits",
    "claim_unpublished",
}  # fmt: skip
OF_RUNTIME = keys_of("tenants.cdi", "tenants.device", "runtime.first", "runtime.rule") | {
    "container_toolkit", "sandbox", "container_not_created", "cuda_none_given", "cuda_driver_not_given",
}  # fmt: skip


def check_requests(facts: PodCheckFacts) -> Reply:
    pod, without = facts.pod, facts.settings.get("without_gpus", [])
    if pod.operand and not pod.resources:
        return unknown_reply("A pod of the GPU stack gets GPUs without a request: by runtime class or privileges.")
    if not pod.resources and not pod.claims and not gpu_groups(pod.labels):
        return no("No container requests a GPU.", "Add the GPU resource to the limits of the container.")
    stuck = pod.stuck_container or facts.ended.get("container", "")
    if stuck in without:
        return no(
            f"Container {stuck} requests no GPU. Other containers of the pod do.",
            f"Move the GPU resource to the limits of container {stuck}.",
        )
    if not pod.resources:
        return yes(f"The pod uses {names(pod.claims) or 'a share by its labels'}. Containers are not compared.")
    others = f" {names(without)} {either(len(without), 'requests', 'request')} none." if without else ""
    asks = facts.asks or names([f"{amount} {name}" for name, amount in pod.resources.items()])  # blank once it ended
    return yes(f"The pod requests {asks}. Kubernetes accepts only equal requests and limits.{others}")


def check_node(facts: PodCheckFacts) -> Reply:
    pod, node = facts.pod, facts.node
    if not pod.node_name:
        return unknown_reply(NO_NODE, "Read why the pod waits for a node.")
    if node is None:
        return unknown_reply(f"Node {pod.node_name} is not observed.")
    at = facts.node_seen_at
    if not node.is_gpu_node:
        return no(f"{node.name} has no GPU.", "Remove nodeName or the node selector that chose this node.", at=at)
    missing = [name for name in pod.resources if is_gpu_resource(name) and not node.allocatable.get(name)]
    if missing:
        return no(f"{node.name} offers no {names(missing)} now.", f"Read the checklist of {node.name}.", at=at)
    product = node.gpu_product or "GPUs of an unknown product"
    return yes(f"{node.name} has {product} and offers what the pod requests.", at=at)


def check_allocation(facts: PodCheckFacts) -> Reply:
    pod = facts.pod
    if facts.cause is not None and facts.cause.key in REFUSED:
        return by_cause(facts.cause)
    if facts.unallocated_claims:
        return no(f"Not allocated: {names(facts.unallocated_claims)}.", "Check the DRA driver and the DeviceClass.")
    if facts.missing_claims:
        return unknown_reply(f"Not observed: {names(facts.missing_claims)}.")
    if not pod.node_name:
        return unknown_reply(NO_NODE)
    if pod.started_at is None:
        return unknown_reply(f"The kubelet of {pod.node_name} has not accepted the pod yet.")
    if facts.gpus:
        shown = names([f"{gpu.name} ({gpu.profile or gpu.uuid or 'UUID unknown'})" for gpu in facts.gpus])
        return yes(f"The pod has {shown}.", at=pod.started_at)
    return yes(
        "The kubelet accepted the pod, so the allocation succeeded. Nothing reports which GPUs it has.",
        at=pod.started_at,
    )


def check_events(facts: PodCheckFacts) -> Reply:
    if facts.stack is None:
        return unknown_reply(NO_NODE)
    if facts.events_gap:
        return unknown_reply(f"Events are not checked. {facts.events_gap}".strip())
    plugin = plugin_of(facts.stack)
    if plugin is not None and plugin.cause is not None and plugin.cause.weight is Weight.WRONG and not plugin.is_ready:
        return by_cause(plugin.cause, at=facts.node_seen_at)
    newest = next(iter(facts.warnings), None)
    ready_since = facts.pod.ready_since if facts.pod.is_ready else None
    if newest is not None and (ready_since is None or newest.last_at is None or newest.last_at > ready_since):
        steps = facts.cause.steps if facts.cause else ("Check the device plugin and the kubelet of the node.",)
        return no(f"{newest.reason}: {newest.message}", *steps, at=newest.last_at)
    none = f"No warning of the kubelet in the last {spell(RECENT)}."
    if newest is not None:
        none = f"The last warning of the kubelet ({newest.reason}) came before the pod became ready."
    if plugin is None:
        return unknown_reply(f"{none} No device plugin was observed on the node.", at=facts.node_seen_at)
    if not plugin.is_ready or plugin.is_silent:
        return unknown_reply(f"{none} {plugin.pod or plugin.title} is not ready.", at=facts.node_seen_at)
    return yes(f"{none} {plugin.pod} is ready.", at=facts.node_seen_at)


def plugin_of(stack: NodeStack) -> OperandOnNode | None:
    """Returns the device plugin or DRA driver of the node: a ready one, if there are several."""
    rows = [row for row in stack.operands if row.operand in (*PLUGINS, *DRA_PLUGINS) and (row.pod or row.is_wanted)]
    return next((row for row in rows if row.is_ready), next(iter(rows), None))


def check_runtime(facts: PodCheckFacts) -> Reply:
    for cause in (facts.cause, facts.ended_cause):
        if cause is not None and cause.key in OF_RUNTIME:
            return by_cause(cause, at=facts.ended_at if cause is facts.ended_cause else None)
    if facts.stack is None:
        return unknown_reply(NO_NODE)
    toolkit = next((row for row in facts.stack.operands if row.operand == TOOLKIT), None)
    if toolkit is not None and not toolkit.is_ready and toolkit.cause and toolkit.cause.weight is Weight.WRONG:
        return by_cause(toolkit.cause, at=facts.node_seen_at)
    used = [gpu.name for gpu in facts.gpus if gpu.is_exclusive and (gpu.memory_used_mib or 0) >= IN_USE_FROM_MIB]
    if used and not facts.is_over:
        return yes(f"Memory of {names(used)} is in use, and no other pod uses it.", at=facts.sampled_at)
    named = f"runtime class {facts.pod.runtime_class}" if facts.pod.runtime_class else "the node's default runtime"
    state = f" {toolkit.pod} is ready." if toolkit is not None and toolkit.is_ready else ""
    return unknown_reply(
        f"The pod runs with {named}.{state} The configuration of the runtime is not checked.",
        "Run nvidia-smi in the container.",
    )
