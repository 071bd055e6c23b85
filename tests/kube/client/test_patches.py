from hypothesis import given
from hypothesis import strategies as st

from kube.client.patches import field_patch, metadata_patch, node_patch, pointer
from tests.fleet.documents import a_driver_seen, a_node_seen

HOLD = "nvidia.com/gpu-driver-upgrade.skip"
SAME_NODE = {"op": "test", "path": "/metadata/uid", "value": "uid-of-gpu-001"}
UNCHANGED = {"op": "test", "path": "/metadata/resourceVersion", "value": "7"}


def test_a_label_key_keeps_its_slash_in_a_pointer():
    assert pointer("metadata", "labels", HOLD) == "/metadata/labels/nvidia.com~1gpu-driver-upgrade.skip"


@given(st.lists(st.text(), min_size=1))
def test_a_pointer_can_be_read_back(parts):
    written = pointer(*parts)

    read = [part.replace("~1", "/").replace("~0", "~") for part in written[1:].split("/")]
    assert read == parts


def test_a_new_label_is_added_only_while_nobody_else_changed_the_node():
    patch = metadata_patch(a_node_seen(), labels={HOLD: "true"})

    assert patch == [SAME_NODE, UNCHANGED, {"op": "add", "path": pointer("metadata", "labels", HOLD), "value": "true"}]


def test_a_label_is_taken_away_only_while_it_has_the_value_we_saw():
    place = pointer("metadata", "labels", HOLD)

    patch = metadata_patch(a_node_seen(labels={HOLD: "true"}), labels={HOLD: None})

    assert patch == [SAME_NODE, {"op": "test", "path": place, "value": "true"}, {"op": "remove", "path": place}]


def test_a_node_without_annotations_gets_its_first():
    patch = metadata_patch(a_node_seen(annotations=None), annotations={"quarterdeck.io/held-by": "plan-1"})

    added = {"op": "add", "path": "/metadata/annotations", "value": {"quarterdeck.io/held-by": "plan-1"}}
    assert patch == [SAME_NODE, UNCHANGED, added]


def test_what_is_so_already_needs_no_patch():
    node = a_node_seen(labels={HOLD: "true"}, annotations=None)

    assert metadata_patch(node, labels={HOLD: "true", "gone": None}, annotations={"gone": None}) == []


def test_a_field_is_changed_from_exactly_the_value_we_saw():
    patch = field_patch(a_driver_seen(), ("spec", "version"), old="580.95.05", new="580.126.20")

    assert patch[1:] == [
        {"op": "test", "path": "/spec/version", "value": "580.95.05"},
        {"op": "replace", "path": "/spec/version", "value": "580.126.20"},
    ]


def test_a_node_is_cordoned_only_while_nobody_else_changed_it():
    """Together with its label, or not at all."""
    place = pointer("metadata", "labels", HOLD)
    node = a_node_seen(labels={HOLD: "true"})

    patch = node_patch(node, labels={HOLD: None}, is_unschedulable=True)

    assert patch == [
        SAME_NODE,
        {"op": "test", "path": place, "value": "true"},
        {"op": "remove", "path": place},
        UNCHANGED,
        {"op": "add", "path": "/spec/unschedulable", "value": True},
    ]


def test_a_node_is_uncordoned_only_while_nobody_else_changed_it():
    node = a_node_seen(spec={"unschedulable": True})

    assert node_patch(node, is_unschedulable=False) == [
        SAME_NODE,
        UNCHANGED,
        {"op": "remove", "path": "/spec/unschedulable"},
    ]


def test_a_node_that_is_as_wanted_needs_no_patch():
    assert node_patch(a_node_seen(spec={"unschedulable": True}), is_unschedulable=True) == []
    assert node_patch(a_node_seen(), is_unschedulable=False) == []
    assert node_patch(a_node_seen(spec={"unschedulable": True}), is_unschedulable=None) == []
