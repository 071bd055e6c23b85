"""Many selectors at once, without a query each, pick what the database picks for one."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from fleet.pools.files import compare, parse_pool_file
from fleet.pools.membership import Labels, claimed
from kube import selectors
from tests import make
from tests.make import NOON

pytestmark = pytest.mark.sqlite

KEYS, VALUES = ["nvidia.com/gpu.product", "zone", "a"], ["", "b", "c"]
NODES = st.lists(st.tuples(st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES)), st.booleans()), max_size=5)
REQUIREMENTS = st.one_of(
    st.builds("{}{}{}".format, st.sampled_from(KEYS), st.sampled_from(["=", "!="]), st.sampled_from(VALUES)),
    st.builds("{}{}".format, st.sampled_from(["", "!"]), st.sampled_from(KEYS)),
    st.builds(
        "{} {} ({})".format, st.sampled_from(KEYS), st.sampled_from(["in", "notin"]), st.sampled_from(["b", "b,c"])
    ),
)


class TestManyAtOnce(TestCase):
    @settings(deadline=None, max_examples=60)
    @given(nodes=NODES, requirements=st.lists(REQUIREMENTS, max_size=3), members=st.sets(st.integers(0, 4)))
    def test_as_the_database_picks(self, nodes, requirements, members):
        cluster = make.a_cluster()
        pool = make.a_pool(cluster)
        rows = [
            make.a_node(cluster, labels=labels, driver_unknown_since=NOON if is_silent else None, gpus=0)
            for labels, is_silent in nodes
        ]
        before = {row.pk for at, row in enumerate(rows) if at in members}
        pool.nodes.add(*before)
        text = ",".join(requirements)

        assert Labels(cluster).claimed(selectors.parse(text), before=before) == claimed(cluster, text, pool=pool)


class TestAFileOfManyPools(TestCase):
    def cost(self, number: int) -> int:
        cluster = make.a_cluster()
        make.a_node(cluster)
        text = "pools:\n" + "".join(f"- {{name: p{at}, selector: a=b}}\n" for at in range(number))
        with CaptureQueriesContext(connection) as queries:
            assert len(compare(cluster, parse_pool_file(text).entries).changes) == number
        return len(queries)

    def test_what_a_look_costs_does_not_grow_with_its_pools(self):
        assert self.cost(1) == self.cost(100) == 4
