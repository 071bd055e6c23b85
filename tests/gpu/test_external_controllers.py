"""Z17, Z18: who else takes a changing node for broken or idle, and what there was before us."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu.external_controllers import (
    AUTOSCALER,
    EXTERNAL_CONTROLLERS,
    KARPENTER,
    NVSENTINEL,
    Metadata,
    as_before,
    before,
    earlier_values,
    excluded,
    external_controllers_of,
)

OPT_OUT = "k8saas.nvidia.com/ManagedByNVSentinel"
LEAVE = "karpenter.sh/do-not-disrupt"
BY, BACK = "quarterdeck.io/opted-out-by", "quarterdeck.io/put-back"
WATCHED = {"nvsentinel.dgxc.nvidia.com/driver.installed": "true"}
NODES = st.builds(
    Metadata,
    labels=st.dictionaries(st.sampled_from([OPT_OUT, "a"]), st.sampled_from(["", "true", "false"])),
    annotations=st.dictionaries(
        st.sampled_from([LEAVE, AUTOSCALER.name, "b"]), st.one_of(st.sampled_from(["true", "false"]), st.text())
    ),
)


def written(seen: Metadata, change: Metadata) -> Metadata:
    """The node once the change is there."""

    def there(has, given):
        return {key: value for key, value in ({**has, **given}).items() if value is not None}

    return Metadata(there(seen.labels, change.labels), there(seen.annotations, change.annotations))


def off(seen: Metadata, owner: str = "plan-7") -> Metadata:
    return written(seen, excluded(seen, before(seen, EXTERNAL_CONTROLLERS.values()), owner))


@pytest.mark.parametrize(
    ("labels", "annotations", "taints", "runs", "expected"),
    [
        ({}, {}, (), False, []),
        (WATCHED, {}, (), False, [NVSENTINEL]),
        ({OPT_OUT: "true"}, {}, (), False, [NVSENTINEL]),
        ({"karpenter.sh/nodepool": "gpu"}, {}, (), True, [KARPENTER]),
        ({}, {}, (), True, [AUTOSCALER]),
        ({}, {}, ("DeletionCandidateOfClusterAutoscaler",), False, [AUTOSCALER]),
        ({}, {AUTOSCALER.name: "false"}, (), False, [AUTOSCALER]),
        (WATCHED | {"karpenter.sh/nodepool": "gpu"}, {}, (), False, [NVSENTINEL, KARPENTER]),
    ],
)
def test_a_controller_is_known_by_what_it_leaves_on_a_node(labels, annotations, taints, runs, expected):
    assert external_controllers_of(Metadata(labels, annotations), taints, autoscaler_runs=runs) == expected


def test_what_leaves_the_node_alone_already_is_not_ours():
    seen = Metadata({OPT_OUT: "false"}, {LEAVE: "true"})

    assert before(seen, [NVSENTINEL, KARPENTER]) == {}
    assert excluded(seen, {}, "plan-7") == Metadata()


def test_beside_our_value_stands_whose_it_is_and_the_patch_that_puts_it_back():
    """Z33."""
    node = written(Metadata(WATCHED, {LEAVE: "false"}), excluded(
        Metadata(WATCHED, {LEAVE: "false"}), {"nvsentinel": None, "karpenter": "false"}, "plan-7"
    ))  # fmt: skip

    assert node.labels[OPT_OUT] == "false"
    assert node.annotations[LEAVE] == "true"
    assert node.annotations[BY] == "plan-7"
    assert json.loads(node.annotations[BACK]) == {
        "metadata": {"labels": {OPT_OUT: None}, "annotations": {LEAVE: "false", BY: None, BACK: None}}
    }


@given(NODES)
def test_put_back_a_node_is_exactly_as_it_was(seen: Metadata):
    assert written(off(seen), as_before(off(seen), {})) == seen


@given(NODES)
def test_the_patch_on_the_node_alone_puts_it_back(seen: Metadata):
    """As `kubectl patch --type=merge` would."""
    node = off(seen)
    patch = json.loads(node.annotations.get(BACK, "{}")).get("metadata", {})

    assert written(node, Metadata(patch.get("labels", {}), patch.get("annotations", {}))) == seen


@given(NODES, st.sampled_from([OPT_OUT]), st.sampled_from(["true", "other"]))
def test_what_somebody_has_changed_since_is_left(seen: Metadata, key: str, value: str):
    node = written(off(seen), Metadata({key: value}))

    assert written(node, as_before(node, {})).labels[key] == value


@given(NODES)
def test_written_twice_it_is_written_once(seen: Metadata):
    node = off(seen)

    assert excluded(node, before(node, EXTERNAL_CONTROLLERS.values()), "plan-7") == Metadata()


@given(NODES)
def test_what_a_plan_that_is_over_has_left_is_taken_over_with_what_was_before_it(seen: Metadata):
    node = off(off(seen, "plan-3"), "plan-7")

    assert node.annotations.get(BY) in {None, "plan-7"}
    assert written(node, as_before(node, {})) == seen


def test_what_our_rows_say_was_there_counts_before_what_others_can_write():
    node = off(Metadata(WATCHED))
    forged = {"metadata": {"labels": {OPT_OUT: "maybe"}}}
    node = written(node, Metadata({}, {BACK: json.dumps(forged)}))

    assert written(node, as_before(node, {"nvsentinel": None})).labels == WATCHED


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '{"metadata": 3}', '{"metadata": {"labels": []}}', "[" * 4000, '"' + "x" * 10_000 + '"',
     '{"metadata": {"labels": {"' + OPT_OUT + '": {"a": 1}}}}',
     '{"metadata": {"labels": {"' + OPT_OUT + '": "\\ud800"}}}'],
)  # fmt: skip
def test_a_text_that_is_no_patch_of_ours_says_nothing(text: str):
    assert earlier_values(Metadata({}, {BY: "plan-7", BACK: text})) == {}


@given(st.text(max_size=500))
def test_no_text_breaks_the_reading(text: str):
    earlier_values(Metadata({}, {BY: "plan-7", BACK: text}))


def test_a_patch_without_an_owner_is_not_ours():
    assert earlier_values(Metadata({}, {BACK: '{"metadata":{"labels":{"' + OPT_OUT + '":null}}}'})) == {}


def test_only_labels_of_controllers_are_read_from_it():
    patch = {"metadata": {"labels": {"kubernetes.io/hostname": None, OPT_OUT: "true"}}}

    assert earlier_values(Metadata({}, {BY: "plan-7", BACK: json.dumps(patch)})) == {"nvsentinel": "true"}


@pytest.mark.parametrize("value", ["x" * 254, "täglich", "a\x00b", "a\nb"])
def test_a_value_that_could_not_be_put_back_is_left_alone(value: str):
    assert before(Metadata({}, {LEAVE: value}), [KARPENTER]) == {}


def test_a_node_that_nvsentinel_neither_acts_on_nor_watches_needs_no_other_exclusion():
    """lifecycle R12: its second label is read, and never written."""
    labels = {**WATCHED, "nvsentinel.dgxc.nvidia.com/managed": "false"}

    assert external_controllers_of(Metadata(labels)) == []
    assert NVSENTINEL in external_controllers_of(Metadata({**labels, "nvsentinel.dgxc.nvidia.com/managed": "true"}))
