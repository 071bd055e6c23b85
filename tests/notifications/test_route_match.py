from dataclasses import dataclass, field

import pytest

from notifications.route_match import EventProperties, first_match, matches

HERE = EventProperties("eu-1", "critical", "gpu-xid", ("h200", "all"), ("training", "mixed"))


@dataclass
class ARoute:
    places: list[str] = field(default_factory=list)
    severities: list[str] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    workload_classes: list[str] = field(default_factory=list)


@pytest.mark.parametrize(
    ("given", "is_match"),
    [
        ({}, True),
        ({"places": ["eu-1"]}, True),
        ({"places": ["us-1", "eu-1/h200"]}, True),
        ({"places": ["eu-1/b200"]}, False),
        ({"places": ["eu-1/gone"]}, False),
        ({"severities": ["critical", "warning"]}, True),
        ({"severities": ["note"]}, False),
        ({"kinds": ["gpu-xid"]}, True),
        ({"kinds": ["plan"]}, False),
        ({"workload_classes": ["training"]}, True),
        ({"workload_classes": ["inference"]}, False),
        ({"places": ["eu-1"], "severities": ["warning"]}, False),
    ],
)
def test_every_list_that_is_not_empty_must_match(given, is_match):
    assert matches(ARoute(**given), HERE) is is_match


def test_the_first_that_matches_decides():
    none, first, second = ARoute(severities=["note"]), ARoute(places=["eu-1"]), ARoute()

    assert first_match([none, first, second], HERE) is first


def test_a_workload_class_does_not_match_a_node_without_a_pool():
    assert not matches(ARoute(workload_classes=["training"]), EventProperties("eu-1", "note", "x"))
