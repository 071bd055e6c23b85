import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from fleet.models import Node
from fleet.segments.label_conditions import labelled
from kube import selectors
from tests import make

pytestmark = pytest.mark.sqlite

KEYS = ["a", "a.b/c", "nvidia.com/gpu.product", "1", "0", "a.b", "A_b-c.d", "x" * 63]
VALUES = ["", "a", "b", "true", "1", "0", "1.0", "A-SHARED", "a.b_c-d"]
LABELS = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES))
REQUIREMENTS = st.one_of(
    st.builds("{}{}{}".format, st.sampled_from(KEYS), st.sampled_from(["=", "==", "!="]), st.sampled_from(VALUES)),
    st.builds(
        lambda key, how, values: f"{key} {how} ({','.join(values)})",
        st.sampled_from(KEYS),
        st.sampled_from(["in", "notin"]),
        st.lists(st.sampled_from(VALUES), min_size=1, max_size=3),
    ),
    st.builds("{}{}".format, st.sampled_from(["", "!"]), st.sampled_from(KEYS)),
)


class TestTheDatabaseReadsASelector(TestCase):
    @settings(max_examples=150)
    @given(
        labels=st.lists(LABELS, min_size=1, max_size=3),
        text=st.lists(REQUIREMENTS, max_size=3).map(",".join),
    )
    def test_as_the_rule_does(self, labels, text):
        cluster = make.a_cluster()
        for each in labels:
            make.a_node(cluster, gpus=0, labels=each)
        selector = selectors.parse(text)

        found = Node.objects.filter(labelled(selector))

        wanted = {node.pk for node in Node.objects.all() if selector.matches(node.labels)}
        assert {node.pk for node in found} == wanted


@pytest.mark.django_db
def test_a_selector_joins_other_conditions():
    cluster = make.a_cluster()
    make.a_node(cluster, "a", labels={"zone": "a"})
    make.a_node(cluster, "b", labels={"zone": "b"}, is_held=True)

    found = Node.objects.filter(labelled(selectors.parse("zone notin (a)")), is_held=True)

    assert [node.name for node in found] == ["b"]
