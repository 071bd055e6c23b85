"""Kubelet plugins of NVIDIA's DRA driver that keep running while the driver changes.

The driver manager stops the plugins that the operator runs (k8s-driver-manager #203). It stops a plugin of the DRA
driver's own chart by a label in the plugin's nodeSelector; `manager.env` names the label, as NVIDIA's guide to the DRA
driver asks, or `CLIENT` does from 26.7.0 on (docs/design/nvidia.md 2.4).
"""

from collections.abc import Iterator

from gpu.evictions import CLIENT, MANAGER_LABEL
from rollouts.checks import Check, each
from rollouts.preflight.facts import DraPluginFacts, PreflightFacts
from wording.numbers import count

OF_THE_OPERATOR = "nvidia.com/gpu.deploy.dra-driver"
FIX = (
    f"Give it {CLIENT} in its nodeSelector, where the operator is of 26.7.0 or later. Else name a label that its "
    f"nodeSelector has as {MANAGER_LABEL} in manager.env of the driver: that changes the driver pods’ template, and "
    "the operator rolls it out to every node that is not held."
)


def outlive_the_driver(facts: PreflightFacts) -> Iterator[Check]:
    for plugin in facts.dra_plugins:
        if plugin.nodes and not _is_stopped(facts, plugin):
            sentence = (
                f"DaemonSet {plugin.name} is not stopped while the driver of {count(len(plugin.nodes), 'node')} is "
                f"changed: {_reason(facts, plugin)}. While it runs the old driver may not unload, and it may go on "
                "with what is gone."
            )
            yield Check("dra-plugin-stays", sentence, FIX, is_grave=True, about=each(plugin.nodes))


def _is_stopped(facts: PreflightFacts, plugin: DraPluginFacts) -> bool:
    told = {OF_THE_OPERATOR, facts.manager_label, *([CLIENT] if facts.evicts_claims else [])}
    return bool(plugin.selected_by & told)


def _reason(facts: PreflightFacts, plugin: DraPluginFacts) -> str:
    if CLIENT in plugin.selected_by:
        return f"only operators from 26.7.0 on heed {CLIENT}" + (
            "" if facts.evicts_claims is False else ", and which this is nobody knows"
        )
    if facts.manager_label:
        return f"the driver manager stops what is selected by {facts.manager_label}, which it is not"
    return "the driver manager is not told of it"
