"""Pods that use GPUs unseen by the operator, so that it does not evict them (gpu-operator #2570).

While one runs, the old driver's modules stay loaded.
"""

from collections.abc import Iterator

from gpu.evictions import CLIENT
from rollouts.checks import Check, each
from rollouts.preflight.facts import PodFacts, PreflightFacts
from wording.lists import names
from wording.numbers import either

RUNTIME_CLASS = "nvidia"  # and nvidia-cdi, nvidia-legacy
UNKNOWN = "only operators from 26.7.0 on look at claims, and which this is nobody knows"
FIX = (
    "Stop it before its node's turn, and start it again after. "
    f"Operators from 26.7.0 on stop a DaemonSet that has {CLIENT} in its nodeSelector by themselves."
)


def pin_the_driver(facts: PreflightFacts) -> Iterator[Check]:
    if facts.claims_unseen:
        unknown = "Pods there have ResourceClaims, and whether they claim GPUs (DRA) is not known."
        yield Check("claims-unseen", f"{unknown} {facts.claims_unseen}", "Let Quarterdeck read resourceclaims.")
    found = {pod: how for pod in facts.pods if (how := _how(facts, pod))}
    if found:
        number = len(found)
        those = f"{names(sorted(pod.name for pod in found))} {either(number, 'seems', 'seem')} to use GPUs"
        them = either(number, "it runs", "they run")
        sentence = (
            f"{those} unseen by the operator, which evicts no such pod: while {them}, the old driver stays loaded."
        )
        about = each(f"{pod.name} on {pod.node}: {how}" for pod, how in found.items())
        yield Check("pins-driver", sentence, FIX, is_grave=True, about=about)


def _how(facts: PreflightFacts, pod: PodFacts) -> str:
    """Returns how the pod uses GPUs unseen; empty if it does not, or is evicted or stopped anyway."""
    if pod.is_operand or facts.is_evicted(pod):
        return ""
    if pod.claims_gpus:
        since = "operators before 26.7.0 do not look at claims"
        return f"it claims them; {since}" if facts.evicts_claims is False else f"it claims them; {UNKNOWN}"
    if pod.visible_devices:
        return f"NVIDIA_VISIBLE_DEVICES is {pod.visible_devices}"
    if pod.runtime_class.startswith(RUNTIME_CLASS):
        return f"its runtimeClass is {pod.runtime_class}"
    if pod.is_tenant:
        return f"it requests {', '.join(pod.resources)}" if pod.resources else "its scheduler gave it a part of one"
    return ""
