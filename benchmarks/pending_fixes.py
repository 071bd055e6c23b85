"""The changes that an explanation proposes, read from their sentences and applied to an API server's objects."""

import re
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from benchmarks.pending_cases import GIB, GPU, MIB, MIG
from benchmarks.pending_rules import REACHED_IN
from capacity.wait_reasons.requirements import NodeTaint

Object = dict[str, Any]
TWO = "Two changes are needed. "
AMOUNTS: tuple[tuple[str, str, float], ...] = (
    (r"([\d.]+) CPUs?", "cpu", 1000),
    (r"([\d.]+) GiB of memory", "memory", GIB),
    (r"(\d+) MiB of memory", "memory", MIB),
    (r"(\d+) slices? \S+", MIG, 1),
    (r"(\d+) GPUs?", GPU, 1),
)


class UnknownChange(Exception):
    """The sentence names no act that the bench can apply."""


@dataclass
class Fix:
    """What a change does: another pod, and patches of nodes."""

    pod: Object
    cluster: Mapping[str, Object]  # the nodes by name
    nodes: dict[str, Object] = field(default_factory=dict)  # merge patches of `spec` by name
    freed: dict[str, int] = field(default_factory=dict)  # GPUs to move away, by node
    raised: set[str] = field(default_factory=set)  # nodes that take more pods
    is_later: bool = False  # other pods end first
    relaxed: str = ""  # namespace/name of a pod on a node; its kind loses its anti-affinity


def read_fix(text: str, pod: Object, nodes: Mapping[str, Object]) -> Fix:
    """Returns what a sentence proposes for a pod as it was created.

    :raises UnknownChange: for an advice without an act
    """
    fix = Fix(deepcopy(pod), nodes)
    for sentence in _sentences(text):
        for pattern, apply in ACTS:
            if found := re.fullmatch(pattern, sentence):
                apply(fix, found)
                break
        else:
            raise UnknownChange(sentence)
    return fix


def _sentences(text: str) -> Iterator[str]:
    text = text.removeprefix(TWO)
    # "Repair a. Kubernetes sets the taint b." is one change.
    yield from re.split(r"(?<=\.) (?!Kubernetes sets)", text)


def _remove_label(fix: Fix, found: re.Match[str]) -> None:
    del fix.pod["spec"]["nodeSelector"][found[1].partition("=")[0]]


def _drop_affinity(fix: Fix, _: re.Match[str]) -> None:
    del fix.pod["spec"]["affinity"]["nodeAffinity"]


def _tolerate(fix: Fix, found: re.Match[str]) -> None:
    left, _, effect = found[1].rpartition(":")
    key, _, value = left.partition("=")
    fix.pod["spec"]["tolerations"].append({"key": key, "operator": "Equal", "value": value, "effect": effect})


def _uncordon(fix: Fix, found: re.Match[str]) -> None:
    for name in re.findall(r"node-\d+", found[1]):
        fix.nodes.setdefault(name, {})["unschedulable"] = False


def _raise_pods(fix: Fix, found: re.Match[str]) -> None:
    fix.raised.update(re.findall(r"node-\d+", found[1]))


def _repair(fix: Fix, found: re.Match[str]) -> None:
    for name in re.findall(r"node-\d+", found[1]):
        kept = [
            each
            for each in fix.cluster[name]["spec"]["taints"]
            if NodeTaint(each["key"], each.get("value", ""), each["effect"]).text != found[2]
        ]
        fix.nodes.setdefault(name, {})["taints"] = kept


def _request_less(fix: Fix, found: re.Match[str]) -> None:
    resource, amount = _amount(found[1])
    resources = fix.pod["spec"]["containers"][0]["resources"]
    for amounts in resources.values():
        amounts[resource] = f"{amount}m" if resource == "cpu" else str(amount)


def _request_other(fix: Fix, found: re.Match[str]) -> None:
    for amounts in fix.pod["spec"]["containers"][0]["resources"].values():
        amounts[found[1]] = amounts.pop(found[2])


def _correct_label(fix: Fix, found: re.Match[str]) -> None:
    fix.pod["spec"]["nodeSelector"][found[1]] = found[2]


def _move(fix: Fix, found: re.Match[str]) -> None:
    fix.freed[found[2]] = _amount(found[1])[1]


def _remove_port(fix: Fix, found: re.Match[str]) -> None:
    container = fix.pod["spec"]["containers"][0]
    container["ports"] = [each for each in container["ports"] if _port_text(each) != found[1]]


def _port_text(port: Object) -> str:
    address = f"{port['hostIP']}:" if "hostIP" in port else ""
    return f"{address}{port['hostPort']}/{port.get('protocol', 'TCP')}"


def _relax_spread(fix: Fix, found: re.Match[str]) -> None:
    for each in fix.pod["spec"]["topologySpreadConstraints"]:
        if each["topologyKey"] == found[1]:
            each["whenUnsatisfiable"] = "ScheduleAnyway"
            each.pop("minDomains", None)  # which the API server refuses there


def _drop_pod_affinity(fix: Fix, found: re.Match[str]) -> None:
    del fix.pod["spec"]["affinity"]["podAffinity" if found[1] == "affinity" else "podAntiAffinity"]


def _drop_volume(fix: Fix, found: re.Match[str]) -> None:
    _drop_claim(fix, found[1])


def _drop_claim(fix: Fix, claim: str) -> None:
    volumes = fix.pod["spec"]["volumes"]
    fix.pod["spec"]["volumes"] = [each for each in volumes if each["persistentVolumeClaim"]["claimName"] != claim]


def _drop_volumes_of(fix: Fix, found: re.Match[str]) -> None:
    for claim, its in REACHED_IN.items():
        if its.get("driver") == found[1]:
            _drop_claim(fix, claim)


def _relax_other(fix: Fix, found: re.Match[str]) -> None:
    fix.relaxed = found[1]


def _wait(fix: Fix, _: re.Match[str]) -> None:
    fix.is_later = True


def _amount(text: str) -> tuple[str, int]:
    for pattern, resource, scale in AMOUNTS:
        if found := re.fullmatch(pattern, text):
            return resource, round(float(found[1]) * scale)
    raise UnknownChange(text)


ACTS: tuple[tuple[str, Callable[[Fix, re.Match[str]], None]], ...] = (
    (r"Remove (\S+) from the node selector\.", _remove_label),
    (r"Change the node affinity \(.*\)\.", _drop_affinity),
    (r"Tolerate the taint (\S+) in the pod template\.", _tolerate),
    (r"Uncordon (.+)\.", _uncordon),
    (r"Raise maxPods of the kubelet on (.+)\.", _raise_pods),
    (r"Repair (.+)\. Kubernetes sets the taint (\S+)\.", _repair),
    (r"Request at most (.+) per pod\.", _request_less),
    (r"Request .+ \((\S+)\) in place of (\S+)\.", _request_other),
    (r"Correct the label to (\S+)=(\S+)\.", _correct_label),
    (r"Move pods with (.+) from (\S+) to other nodes: .*\.", _move),
    (r"Remove the host port (\S+) from the pod template\.", _remove_port),
    (r"Set whenUnsatisfiable of the spread over (\S+) to ScheduleAnyway\.", _relax_spread),
    (r"Use a claim whose volume these nodes reach, in place of (\S+)\.", _drop_volume),
    (r"Use fewer volumes of (\S+) in the pod template\.", _drop_volumes_of),
    (r"Make the pod (affinity|anti-affinity) \(.*\) preferred, not required\.", _drop_pod_affinity),
    (r"Make the anti-affinity of (\S+) preferred, not required: it excludes this pod\.", _relax_other),
    (r"Wait until other pods end\.", _wait),
)
