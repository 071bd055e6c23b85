"""Kubelet plugins of the DRA driver that nobody stops while the driver is changed."""

import pytest

from gpu.evictions import CLIENT
from rollouts.preflight.facts import DraPluginFacts
from rollouts.preflight.rules.dra_plugins import OF_THE_OPERATOR, outlive_the_driver
from tests.rollouts.preflight.make import facts

LABEL = "nvidia.com/dra-kubelet-plugin"


def said(*selected_by: str, nodes: tuple[str, ...] = ("node-1", "node-2"), **given) -> list[str]:
    plugin = DraPluginFacts("dra/plugin", frozenset(selected_by), nodes)
    checks = list(outlive_the_driver(facts(dra_plugins=(plugin,), **given)))
    assert all(check.is_grave and check.about == nodes for check in checks)
    return [check.sentence for check in checks]


def test_one_that_the_driver_manager_is_not_told_of_is_named_with_its_nodes():
    (sentence,) = said(LABEL)

    assert sentence == (
        "DaemonSet dra/plugin is not stopped while the driver of 2 nodes is changed: the driver manager is not told of "
        "it. While it runs the old driver may not unload, and it may go on with what is gone."
    )


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
        ((), {}, "is not told of it"),
        ((LABEL,), {"manager_label": "other/label"}, "stops what is selected by other/label, which it is not"),
        ((CLIENT,), {"evicts_claims": False}, f"only operators from 26.7.0 on heed {CLIENT}. While"),
        ((CLIENT,), {"evicts_claims": None}, f"only operators from 26.7.0 on heed {CLIENT}, and which this is nobody"),
    ],
)
def test_it_says_why_nobody_stops_it(selected_by, given, reason):
    (sentence,) = said(*selected_by, **given)

    assert reason in sentence
