"""Pods that use GPUs unseen by the operator, so that it does not evict them (gpu-operator #2570).

While one runs, the old driver's modules stay loaded.
"""

from collections.abc import Iterator

from gpu.evictions import CLIENT
from rollouts.checks import Check, each
from rollouts.preflight.facts import PodFacts, PreflightFacts
from wording.lists import one_or_count
from wording.reports import fit

RUNTIME_CLASS = "nvidia"  # and nvidia-cdi, nvidia-legacy
UNKNOWN = "only operators from 26.7.0 on evict such pods, and the operator's version is unknown"
STEPS = (
    "Stop the pods before the turn of their node, and start them again afterwards.",
    f"Operators from 26.7.0 on stop a DaemonSet with {CLIENT} in its nodeSelector.",
)


def pin_the_driver(facts: PreflightFacts) -> Iterator[Check]:
    if facts.claims_unseen:
        title, steps = "The ResourceClaims of pods are not seen", ("Let Quarterdeck read resourceclaims.",)
        yield Check("claims-unseen", title=title, summary=facts.claims_unseen, steps=steps)
    found = {pod: how for pod in facts.pods if (how := _unseen_use(facts, pod))}
    if found:
        title = fit("The operator does not evict {} with GPUs", one_or_count([pod.name for pod in found], "pod"))
        items = each((f"{pod.name} on {pod.node}", how) for pod, how in found.items())
        summary = "While such a pod runs, the old driver stays loaded."
        yield Check("pins-driver", title=title, summary=summary, evidence=items, steps=STEPS, is_grave=True)


def _unseen_use(facts: PreflightFacts, pod: PodFacts) -> str:
    """Returns how the pod uses GPUs unseen; empty if it does not, or is evicted or stopped anyway."""
    if pod.is_operand or facts.is_evicted(pod):
        return ""
    if pod.claims_gpus:
        since = "operators before 26.7.0 do not evict such pods"
        return f"it claims them; {since}" if facts.evicts_claims is False else f"it claims them; {UNKNOWN}"
    if pod.visible_devices:
        return f"NVIDIA_VISIBLE_DEVICES is {pod.visible_devices}"
    if pod.runtime_class.startswith(RUNTIME_CLASS):
        return f"its runtimeClass is {pod.runtime_class}"
    if pod.is_tenant:
        return f"it requests {', '.join(pod.resources)}" if pod.resources else "its scheduler gave it a part of one"
    return ""
