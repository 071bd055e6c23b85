"""Label and field selectors, as Kubernetes' documentation on labels writes them."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator import fields, selectors
from simulator.kinds import EVENT, NODE, POD, Kind
from simulator.refusals import Refused

LABELS = {"environment": "production", "tier": "frontend", "gpus": "8"}
MATCHING = [
    "",
    "environment=production",
    "environment==production,tier!=backend",
    "environment in (production, qa)",
    "tier notin (backend,cache)",
    "absent notin (a)",
    "absent!=a",
    "tier",
    "!absent",
    "gpus>4,gpus<9",
    " environment = production , tier in (frontend) ",
    "nvidia.com/gpu.present!=true",
]
OTHERS = [
    "environment=qa",
    "environment in (qa)",
    "tier notin (frontend)",
    "absent",
    "!tier",
    "gpus>8",
    "tier>1",
    "tier=",
]
NONSENSE = ["a=b=c", "in (a)", "a in b", "a in (b", "-a=b", "a=-b", "=b", "a,,b", "a b", "!", "a>b", "x/y/z=1"]


@pytest.mark.parametrize("text", MATCHING)
def test_a_selector_that_matches(text: str) -> None:
    assert selectors.parse(text).matches(LABELS)


@pytest.mark.parametrize("text", OTHERS)
def test_a_selector_that_does_not(text: str) -> None:
    assert not selectors.parse(text).matches(LABELS)


@pytest.mark.parametrize("text", NONSENSE)
def test_nonsense_is_refused(text: str) -> None:
    with pytest.raises(selectors.SelectorError):
        selectors.parse(text)


values = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,5}[a-z0-9])?", fullmatch=True)
labels = st.dictionaries(values, values, max_size=4)


@given(labels, values, st.lists(values, min_size=1, max_size=3))
def test_in_and_notin_are_opposites(held: dict[str, str], key: str, wanted: list[str]) -> None:
    listed = ",".join(wanted)

    chosen = selectors.parse(f"{key} in ({listed})").matches(held)

    assert chosen is not selectors.parse(f"{key} notin ({listed})").matches(held)
    assert chosen is (held.get(key) in wanted)


@given(labels)
def test_the_labels_of_an_object_select_it(held: dict[str, str]) -> None:
    assert selectors.parse(",".join(f"{key}={value}" for key, value in held.items())).matches(held)


@given(st.text(max_size=20))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(selectors.SelectorError):
        assert selectors.parse(text).matches({}) in (True, False)


def test_match_expressions_are_requirements_too() -> None:
    expressions = [
        {"key": "tier", "operator": "In", "values": ["frontend"]},
        {"key": "absent", "operator": "DoesNotExist"},
    ]

    selector = selectors.from_label_selector({"matchLabels": {"gpus": "8"}, "matchExpressions": expressions})

    assert selector is not None
    assert selector.matches(LABELS)
    assert selectors.from_label_selector(None) is None


A_POD = {"metadata": {"name": "p", "namespace": "n"}, "spec": {"nodeName": "gpu-1"}, "status": {"phase": "Running"}}


@pytest.mark.parametrize(
    ("kind", "obj", "text", "expected"),
    [
        (POD, A_POD, "spec.nodeName=gpu-1,status.phase!=Failed", True),
        (POD, A_POD, "metadata.name=p,metadata.namespace=m", False),
        (POD, {"spec": {}}, "spec.nodeName=", True),
        (NODE, {"spec": {"unschedulable": True}}, "spec.unschedulable=true", True),
        (NODE, {"spec": {}}, "spec.unschedulable=false", True),
        (EVENT, {"involvedObject": {"name": "a=b,c"}}, r"involvedObject.name=a\=b\,c", True),
    ],
)
def test_fields_are_compared_as_text(kind: Kind, obj: dict[str, object], text: str, expected: bool) -> None:
    assert fields.parse(kind, text).matches(obj) is expected


@pytest.mark.parametrize("text", ["spec.replicas=1", "metadata.labels=a", "metadata.name"])
def test_a_field_that_is_not_offered_is_a_bad_request(text: str) -> None:
    with pytest.raises(Refused) as caught:
        fields.parse(POD, text)

    assert caught.value.status == 400
