"""The reasons of pods that no node fits, from the obstacles of every node. Pure."""

from collections.abc import Sequence

from capacity.wait_reasons.amounts import amount_text, main_resource
from capacity.wait_reasons.answers import Actor, Change, DecidingKind, PendingExplanation
from capacity.wait_reasons.device_requests import PREFIX
from capacity.wait_reasons.node_index import NodeSet
from capacity.wait_reasons.obstacles import CPU, MEMORY, PODS, RULES_OF_OTHERS, Obstacle, ObstacleKind, Obstacles, union
from capacity.wait_reasons.other_resources import other_resources
from gpu.labels import GPU_PRODUCT, MIG_CONFIG
from gpu.resources import is_gpu_resource
from gpu.resources.layout import product_of
from gpu.resources.mig_slices import may_have_profile, profile_of_size
from gpu.resources.names import profile_in
from wording.lists import names
from wording.numbers import count, either
from wording.reports import LONGEST_SUMMARY, LONGEST_TITLE, clip, fit

# Fixed obstacles in the order in which they are explained: the first that leaves no node.
IN_ORDER = (
    ObstacleKind.SELECTOR, ObstacleKind.AFFINITY, ObstacleKind.TAINT, ObstacleKind.CORDON,
    ObstacleKind.VOLUME_LIMIT, ObstacleKind.VOLUME, ObstacleKind.SPREAD_LABEL, ObstacleKind.POD_AFFINITY,
)  # fmt: skip
KEYS = {
    ObstacleKind.VOLUME: "volume",
    ObstacleKind.VOLUME_LIMIT: "volume_limit",
    ObstacleKind.PORT: "host_port",
    ObstacleKind.SPREAD: "spread",
    ObstacleKind.SPREAD_LABEL: "spread",
}

ABOUT_PODS = {
    ObstacleKind.VOLUME: DecidingKind.VOLUME_CLAIM,
    ObstacleKind.VOLUME_LIMIT: DecidingKind.CSI_DRIVER,
    ObstacleKind.SPREAD_LABEL: DecidingKind.LABEL,
    ObstacleKind.EXCLUSION: DecidingKind.POD,
}


def reason_over_nodes(obstacles: Obstacles) -> PendingExplanation:
    index = obstacles.index
    if not len(index):
        return PendingExplanation("no_nodes", "The cluster has no nodes", "A pod needs a node.")
    if obstacles.fitting:
        return _fits(obstacles)
    if not obstacles.candidates:
        return _excluded(obstacles)
    if obstacles.with_room:
        return _explain_other_pods(obstacles)
    return _explain_fragmented(obstacles)


def _fits(obstacles: Obstacles) -> PendingExplanation:
    number = obstacles.fitting.bit_count()
    named = obstacles.index.named(obstacles.fitting)
    return PendingExplanation(
        "fits", f"{count(number, 'node')} {either(number, 'fits', 'fit')} by the checked requirements",
        f"For example {named}. The scheduler has not tried again, or an unchecked requirement excludes the node.",
        changes=[Change("Wait: the scheduler tries again within 5 minutes.", Actor.NOBODY, number, number)],
    )  # fmt: skip


def _excluded(obstacles: Obstacles) -> PendingExplanation:
    """Explains a pod for which no node qualifies, even if all nodes were empty: the first step that leaves none."""
    pod, index = obstacles.pod, obstacles.index
    resource = main_resource(obstacles)
    if resource and not index.offering(resource):
        return _explain_not_offered(obstacles, resource)
    left = index.offering(resource) if resource else index.every
    size = [each for each in obstacles.fixed if each.kind is ObstacleKind.SIZE]
    for each in size:
        if not index.every & ~each.nodes:
            return _too_large(obstacles, each.name)
    for kind in IN_ORDER:
        own = [each for each in obstacles.fixed if each.kind is kind]
        if left and not left & ~union(own):
            return _excluded_by(obstacles, kind, own, left)
        left &= ~union(own)
    largest = index.largest(resource, left)
    qualify = f"{count(left.bit_count(), 'node')} {either(left.bit_count(), 'qualifies', 'qualify')}"
    return PendingExplanation(
        "larger_than_any_node", f"No qualifying node has {amount_text(resource, pod.requests.get(resource, 0))}",
        f"{qualify} otherwise. The largest has {amount_text(resource, largest)}.",
        decided_by=resource, decided_kind=DecidingKind.RESOURCE,
    )  # fmt: skip


def _excluded_by(
    obstacles: Obstacles, kind: ObstacleKind, own: Sequence[Obstacle], left: NodeSet
) -> PendingExplanation:
    number = left.bit_count()
    whole = [each for each in own if not left & ~each.nodes]  # reasons that exclude all of these nodes alone
    name = names([each.name for each in (whole[:1] or own)])
    nodes = count(number, "node")
    have, qualify = either(number, "has", "have"), either(number, "qualifies", "qualify")
    if kind is ObstacleKind.SELECTOR:
        title = f"No GPU node has the label {name}" if len(whole[:1] or own) == 1 else f"No GPU node has all of {name}"
        hint = _label_hint(obstacles, whole[:1] or own)
        return PendingExplanation("matches_no_node", title, hint, name, DecidingKind.LABEL)
    if kind is ObstacleKind.AFFINITY:
        summary = f"{nodes} with these GPUs {have} other labels."
        return PendingExplanation(
            "matches_no_node", f"No GPU node matches the node affinity: {name}", summary, name, DecidingKind.AFFINITY
        )
    if kind is ObstacleKind.TAINT:
        title = f"The pod does not tolerate the taint {name}"
        return PendingExplanation(
            "untolerated_taint", title, f"{nodes} that otherwise {qualify} {have} it.", name, DecidingKind.TAINT
        )
    if kind is ObstacleKind.VOLUME:
        where = names([f"{each.name}: {each.detail}" for each in own])
        title = f"No qualifying node reaches the volume of claim {name}"
        return _about_pods(kind, title, f"{nodes} otherwise {qualify}. Volumes are in {where}.", name)
    if kind is ObstacleKind.VOLUME_LIMIT:
        title = f"No qualifying node may have as many volumes of {name}"
        return _about_pods(kind, title, f"{own[0].detail} {nodes} otherwise {qualify}.", name)
    if kind is ObstacleKind.SPREAD_LABEL:
        title = f"No qualifying node has the label of the topology spread: {name}"
        return _about_pods(kind, title, f"{nodes} otherwise {qualify}.", name)
    if kind is ObstacleKind.POD_AFFINITY:
        detail = own[0].detail or "No GPU pod of its affinity is on a node with the label of the topology."
        return _about_pods(kind, f"No qualifying node is near GPU pods of its affinity: {name}", detail, name)
    named = obstacles.index.named(left)
    title = f"{either(number, 'The only node that qualifies is', f'All {number} nodes that qualify are')} cordoned"
    where = f"They are {named}." if number > 1 else f"It is {named}."
    return PendingExplanation("cordoned", title, where, named, DecidingKind.NODE)


def _about_pods(kind: ObstacleKind, title: str, summary: str, name: str) -> PendingExplanation:
    title = fit("{}", title, longest=LONGEST_TITLE)
    decides = ABOUT_PODS.get(kind, DecidingKind.POD_RULE)
    return PendingExplanation(KEYS.get(kind, "pod_affinity"), title, clip(summary, LONGEST_SUMMARY), name, decides)


def _explain_other_pods(obstacles: Obstacles) -> PendingExplanation:
    """Explains nodes that have all resources free: the rule about other pods that excludes most of them."""
    room = obstacles.with_room
    rules = [each for each in obstacles.room if each.kind in RULES_OF_OTHERS]
    rule = max(rules, key=lambda each: (each.nodes & room).bit_count())
    number, total = (rule.nodes & room).bit_count(), room.bit_count()
    whose = f"{number} of {count(total, 'node')} with room" if total > 1 else "the only node with room"
    titles = {
        ObstacleKind.PORT: f"Host port {rule.name} is in use on {whose}",
        ObstacleKind.VOLUME_LIMIT: f"Volume limit of {rule.name} excludes {whose}",
        ObstacleKind.SPREAD: f"Spread over {rule.name} excludes {whose}",
        ObstacleKind.ANTI_AFFINITY: f"Its anti-affinity excludes {whose}: {rule.name}",
        ObstacleKind.EXCLUSION: f"The anti-affinity of {rule.name} excludes {whose}",
    }
    details = {
        ObstacleKind.PORT: "Only one pod on a node can have a host port.",
        ObstacleKind.VOLUME_LIMIT: rule.detail,
        ObstacleKind.SPREAD: rule.detail,
        ObstacleKind.ANTI_AFFINITY: "Its anti-affinity excludes nodes with these pods.",
        ObstacleKind.EXCLUSION: f"It excludes pods with {rule.detail}.",
    }
    return _about_pods(rule.kind, titles[rule.kind], details[rule.kind], rule.name)


def _label_hint(obstacles: Obstacles, own: Sequence[Obstacle]) -> str:
    """Returns the values that nodes have, and the nearest spelling."""
    by_text = {each.text: each for each in obstacles.pod.selector}
    wanted = [by_text[each.name] for each in own if each.name in by_text]
    if len(wanted) != 1:
        return "Each label exists, but no node has all of them."
    key, (value,) = wanted[0].key, wanted[0].values
    values = list(obstacles.index.values_of(key))
    if not values:
        return f"No node has the label {key}."
    if value in values:
        return "Only nodes without these GPUs have it."
    near = obstacles.index.nearest_value(key, value)
    hint = f" Nearest spelling: {near}." if near else ""
    return f"Nodes have {either(len(values), 'the value', 'the values')} {names(sorted(values))}.{hint}"


def _explain_not_offered(obstacles: Obstacles, resource: str) -> PendingExplanation:
    index = obstacles.index
    before = [node.name for node in index.nodes if node.expected.get(resource, 0)]
    if before:
        step = "Check the device plugin and the driver on these nodes."
        return PendingExplanation(
            "offered_by_no_node", f"No node offers {resource} now",
            f"{count(len(before), 'node')} offered it before: {names(before)}.", resource, DecidingKind.RESOURCE,
            changes=[Change(step, Actor.ADMIN, 0, len(before))],
        )  # fmt: skip
    others = sorted(
        {name for node in index.nodes for name, n in node.allocatable.items() if n and is_gpu_resource(name)}
    )
    summary = f"Nodes offer {names(others)}." if others else "No node offers GPUs."
    changes = other_resources(obstacles, resource)
    step = "Check the device plugin of nodes that should offer it."
    if resource.startswith(PREFIX):
        summary = "No ResourceSlice of a node has a device that matches the class and the selectors of the claim."
        step = "Check the DRA driver of nodes that should offer them, and the taints of their devices."
        changes = [Change("Change the class or the selectors of the claim.", Actor.OWNER)]
    if profile := profile_in(resource):
        step = f"Give a node the MIG profile {profile}, by its label {MIG_CONFIG}."
        products = sorted({product_of(label) for label in index.values_of(GPU_PRODUCT)})
        if products and not any(may_have_profile(profile, product) for product in products):
            step = f"Add nodes whose GPUs have the MIG profile {profile}."
            like = [f"{each} can offer {its}." for each in products if (its := profile_of_size(profile, each))]
            summary = clip(" ".join(["No product here has this profile.", *like[:1], summary]), LONGEST_SUMMARY)
    changes.append(Change(step, Actor.ADMIN))
    title = f"No node offers {resource}"
    return PendingExplanation("offered_by_no_node", title, summary, resource, DecidingKind.RESOURCE, changes)


def _too_large(obstacles: Obstacles, resource: str) -> PendingExplanation:
    index, asked = obstacles.index, obstacles.pod.requests[resource]
    most = index.largest(resource, index.every)
    return PendingExplanation(
        "larger_than_any_node",
        f"No node has {amount_text(resource, asked)}",
        f"The pod requests them on one node. The largest node has {amount_text(resource, most)}.",
        resource,
        DecidingKind.RESOURCE,
    )


def _explain_fragmented(obstacles: Obstacles) -> PendingExplanation:
    index, candidates = obstacles.index, obstacles.candidates
    resource = main_resource(obstacles)
    if not resource or candidates & index.with_free(resource, obstacles.pod.requests[resource]):
        return _explain_other_amounts(obstacles, resource)
    asked, noun = amount_text(resource, obstacles.pod.requests[resource]), _noun(resource)
    room, number = index.room(resource, candidates), candidates.bit_count()
    total = room.total
    qualify = f"{count(number, 'node')} {either(number, 'qualifies', 'qualify')}."
    if total < obstacles.pod.requests[resource]:
        none = either(number, f"It has no free {noun}.", f"None of them has a free {noun}.")
        free_now = (
            f"{amount_text(resource, total)} {either(total, 'is', 'are')} free there in total." if total else none
        )
        title = f"Too few free {noun}s: the pod requests {asked}"
        return PendingExplanation("no_room", title, f"{qualify} {free_now}", resource, DecidingKind.RESOURCE)
    most = f"{room.most} on one ({room.best[0].name})"
    return PendingExplanation(
        "fragmented",
        f"Free {noun}s are spread over nodes: none has {asked}",
        f"{qualify} {amount_text(resource, total)} are free on {room.having} of them, at most {most}.",
        resource,
        DecidingKind.RESOURCE,
    )


def _explain_other_amounts(obstacles: Obstacles, resource: str) -> PendingExplanation:
    """Explains nodes that have the GPUs free, but not the CPU or memory, or the room for one more pod."""
    index, pod = obstacles.index, obstacles.pod
    nodes = obstacles.candidates & (index.with_free(resource, pod.requests[resource]) if resource else index.every)
    name = max(
        (name for name in (CPU, MEMORY, PODS) if pod.requests.get(name)),
        key=lambda name: (nodes & ~index.with_free(name, pod.requests[name])).bit_count(),
    )
    short = nodes & ~index.with_free(name, pod.requests[name])
    most = max(0, index.room(name, short).most)
    number, lacking, amount = nodes.bit_count(), short.bit_count(), amount_text(name, pod.requests[name])
    noun = _noun(resource)
    whose = f"{count(number, 'node')} {either(number, 'has', 'have')} the {noun}s free" if resource else "Nodes qualify"
    title = f"No node with free {noun}s has {amount} free"
    have = f"{whose}, with at most {amount_text(name, most)} free."
    if name == PODS:
        title = f"No node with free {noun}s has room for one more pod"
        have = f"{whose}, but as many pods as {either(number, 'its kubelet allows', 'their kubelets allow')}."
    if lacking < number:
        others = number - lacking
        title = f"{lacking} of {number} nodes with free {noun}s {either(lacking, 'lacks', 'lack')} {amount}"
        have = f"The other {either(others, 'node lacks', f'{others} nodes lack')} something else that the pod requests."
    if name == PODS:
        return PendingExplanation("too_many_pods", title, have, "maxPods", DecidingKind.NODE)
    return PendingExplanation(f"no_{name}", title, have, name, DecidingKind.RESOURCE)


def _noun(resource: str) -> str:
    return "device" if resource.startswith(PREFIX) else "GPU"
