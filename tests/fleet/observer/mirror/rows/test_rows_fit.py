"""Whatever an API server sends of any kind: its row can be made, and every database takes it."""

from datetime import datetime
from functools import cache
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import inspect

from fleet.observer.mirror.diff import fingerprint
from fleet.observer.mirror.kinds import KINDS, Kind
from fleet.observer.mirror.validation import why_invalid
from fleet.observer.mirror.watch_scope import MIG, SHARING, WatchScope
from fleet.observer.persistence.upsert import columns_of
from kube.client.decoder import decode_list

NAMED = "hostile"
EVERYTHING = WatchScope({NAMED}, {NAMED}, NAMED, {SHARING: NAMED, MIG: NAMED}, is_mirrored=lambda _: True)
META = {"name": NAMED, "namespace": NAMED, "uid": "uid-of-hostile", "resourceVersion": "7"}
META |= {"labels": {"app": "nvidia-dcgm"}, "creationTimestamp": "2026-11-21T08:00:00Z"}
OWNER = {"kind": "DaemonSet", "name": "d" * 300, "uid": "u" * 100, "controller": True}
TEXT = st.sampled_from(
    ["", "True", "Node", NAMED, "nvidia.com/gpu", "amd.com/gpu", "8", "50%", "a\0b", "<b>", "x" * 5000]
) | st.text(max_size=4)
KEY = st.sampled_from(["nvidia.com/gpu", "nvidia.com/mig-1g.10gb", "app", "a\0b", "y" * 5000])
USUAL = {"spec", "template", "containers", "resources", "limits"}  # else hardly any workload would want a GPU
NUMBER = st.sampled_from([0, 1, -1, 8, 2**31, -(2**31) - 1, 2**63, 2**70])
TIME = st.sampled_from(["2026-11-21T08:00:00Z", "2026-11-21T08:00:00.123456Z", "0001-01-01T00:00:00Z"])
ANYTHING = st.recursive(
    st.none() | st.booleans() | NUMBER | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)


def like(kind: Any, *, at_least: int = 0) -> st.SearchStrategy[Any]:
    """What a value of this type looks like on the wire. `at_least` one: neither null nor empty."""
    match kind:
        case inspect.UnionType():
            types = [one for one in kind.types if not at_least or not isinstance(one, inspect.NoneType)]
            return st.one_of(*(like(one, at_least=at_least) for one in types))
        case inspect.StructType():
            return parts(kind)
        case inspect.ListType():
            return st.lists(like(kind.item_type), min_size=at_least, max_size=2)
        case inspect.DictType():
            return st.dictionaries(KEY, like(kind.value_type), min_size=at_least, max_size=2)
        case inspect.NoneType():
            return st.none()
        case inspect.BoolType():
            return st.booleans()
        case inspect.IntType() | inspect.FloatType():
            return NUMBER
        case inspect.DateTimeType():
            return TIME
        case inspect.StrType():
            return TEXT
    return ANYTHING


def parts(shape: inspect.StructType, **more: Any) -> st.SearchStrategy[dict[str, Any]]:
    fields = {field.encode_name: field.type for field in shape.fields if field.encode_name not in more}
    usual = {name: like(fields.pop(name), at_least=1) for name in USUAL & fields.keys()}
    return st.fixed_dictionaries(usual | more, optional={name: like(kind) for name, kind in fields.items()})


@cache
def documents_of(kind: Kind) -> st.SearchStrategy[dict[str, Any]]:
    """Whole objects with an identity and an owner; everything else of them may be missing, empty or absurd."""
    shape = inspect.type_info(kind.resource.struct)
    assert isinstance(shape, inspect.StructType)
    metadata = st.sampled_from([META, META | {"ownerReferences": [OWNER], "generation": 2**70}])
    return parts(shape, metadata=metadata)


def a_list(*items: object) -> bytes:
    return msgspec.json.encode({"metadata": {"resourceVersion": "1"}, "items": list(items)})


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_every_row_fits_its_columns(name, data):
    kind = KINDS[name]
    document = data.draw(documents_of(kind))

    for seen in decode_list(a_list(document), kind.resource.struct).items:
        row = kind.row(seen, EVERYTHING)
        if row is not None:
            assert why_invalid(kind.model, row) == ""
            assert set(row) <= {*columns_of(kind.model), "created_at"}
            fingerprint(row)


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=30)
@given(rubbish=st.lists(ANYTHING, max_size=3))
def test_rubbish_in_a_list_costs_only_itself(name, rubbish):
    kind = KINDS[name]
    good = {"metadata": META}

    found = decode_list(a_list(*rubbish, good), kind.resource.struct)

    assert [seen.uid for seen in found.items][-1] == META["uid"]
    assert len(found.items) + len(found.unread) == len(rubbish) + 1


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("rest", [{}, {"spec": {}, "status": {}}])
def test_an_object_that_says_nothing_has_a_row_or_none(name, rest):
    kind = KINDS[name]

    (seen,) = decode_list(a_list({"metadata": META} | rest), kind.resource.struct).items
    row = kind.row(seen, EVERYTHING)

    assert row is None or why_invalid(kind.model, row) == ""
    assert not [column for column, value in (row or {}).items() if isinstance(value, datetime) and not value.tzinfo]
