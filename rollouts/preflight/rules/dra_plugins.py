"""Kubelet plugins of NVIDIA's DRA driver that keep running while the driver changes.

The driver manager stops the plugins that the operator runs (k8s-driver-manager #203). It stops a plugin of the DRA
driver's own chart by a label in the plugin's nodeSelector; `manager.env` names the label, as NVIDIA's guide to the DRA
driver asks, or `CLIENT` does from 26.7.0 on (docs/design/nvidia.md 2.4).
"""

from collections.abc import Iterator

from gpu.evictions import CLIENT, MANAGER_LABEL
from rollouts.checks import Check, listed
from rollouts.preflight.facts import DraPluginFacts, PreflightFacts
from wording.reports import EvidenceItem, fit

OF_THE_OPERATOR = "nvidia.com/gpu.deploy.dra-driver"
STEPS = (
    f"With an operator of 26.7.0 or later, add {CLIENT} to its nodeSelector.",
    f"Else set {MANAGER_LABEL} in manager.env of the driver to a label of its nodeSelector.",
    "That change restarts the driver pods of nodes that are not held.",
)


def outlive_the_driver(facts: PreflightFacts) -> Iterator[Check]:
    for plugin in facts.dra_plugins:
        if plugin.nodes and not _is_stopped(facts, plugin):
            yield Check(
                "dra-plugin-stays",
                title=fit("DaemonSet {} keeps running during the change", plugin.name),
                summary="The old driver may not unload while it runs.",
                evidence=(EvidenceItem("Cause", _reason(facts, plugin)), *listed("Nodes", plugin.nodes)),
                steps=STEPS,
                is_grave=True,
            )


def _is_stopped(facts: PreflightFacts, plugin: DraPluginFacts) -> bool:
    told = {OF_THE_OPERATOR, facts.manager_label, *([CLIENT] if facts.evicts_claims else [])}
    return bool(plugin.selected_by & told)


def _reason(facts: PreflightFacts, plugin: DraPluginFacts) -> str:
    if CLIENT in plugin.selected_by:
        return f"Only operators from 26.7.0 on use {CLIENT}" + (
            "." if facts.evicts_claims is False else ", and the operator's version is unknown."
        )
    if facts.manager_label:
        return f"The driver manager stops DaemonSets with {facts.manager_label} only."
    return "The driver manager has no label for it."
