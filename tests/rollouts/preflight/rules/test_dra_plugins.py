"""Kubelet plugins of the DRA driver that nobody stops while the driver is changed."""

import pytest

from gpu.evictions import CLIENT
from rollouts.preflight.facts import DraPluginFacts
from rollouts.preflight.rules.dra_plugins import OF_THE_OPERATOR, outlive_the_driver
from tests.rollouts.make import values_of
from tests.rollouts.preflight.make import facts

LABEL = "nvidia.com/dra-kubelet-plugin"


def said(*selected_by: str, nodes: tuple[str, ...] = ("node-1", "node-2"), **given) -> list[str]:
    plugin = DraPluginFacts("dra/plugin", frozenset(selected_by), nodes)
    checks = list(outlive_the_driver(facts(dra_plugins=(plugin,), **given)))
    assert all(check.is_grave and values_of(check)["Nodes"] == ", ".join(nodes) for check in checks)
    return [f"{check.title}. {values_of(check)['Cause']}" for check in checks]


def test_one_that_the_driver_manager_is_not_told_of_is_named_with_its_nodes():
    (sentence,) = said(LABEL)

    assert sentence == "DaemonSet dra/plugin keeps running during the change. The driver manager has no label for it."


@pytest.mark.parametrize(
    ("selected_by", "given"),
    [
        ((LABEL,), {"manager_label": LABEL}),
        ((OF_THE_OPERATOR,), {}),
        ((CLIENT,), {"evicts_claims": True}),
        ((CLIENT, LABEL), {"evicts_claims": False, "manager_label": LABEL}),
    ],
)
def test_one_that_is_stopped_is_nothing_to_warn_of(selected_by, given):
    assert said(*selected_by, **given) == []


def test_one_that_runs_on_none_of_the_nodes_is_nothing_to_warn_of():
    assert said(nodes=()) == []


@pytest.mark.parametrize(
    ("selected_by", "given", "reason"),
    [
        ((), {}, "has no label for it"),
        ((LABEL,), {"manager_label": "other/label"}, "stops DaemonSets with other/label only"),
        ((CLIENT,), {"evicts_claims": False}, f"Only operators from 26.7.0 on use {CLIENT}."),
        (
            (CLIENT,),
            {"evicts_claims": None},
            f"Only operators from 26.7.0 on use {CLIENT}, and the operator's version is unknown",
        ),
    ],
)
def test_it_says_why_nobody_stops_it(selected_by, given, reason):
    (sentence,) = said(*selected_by, **given)

    assert reason in sentence
