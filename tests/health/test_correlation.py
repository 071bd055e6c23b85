from hypothesis import given
from hypothesis import strategies as st

from health.correlation import EXPLAINED_BY, Found, causes
from health.judging.sources import SOURCES
from health.rules import RULES
from health.rules.gpus import GPU_RULES

TABLE = {"exporter": ("lost", "operand"), "operand": ("operator",), "allocatable": ("operand",)}
FOUND = st.builds(
    Found,
    key=st.integers(1, 12),
    rule=st.sampled_from(("exporter", "lost", "operand", "operator", "allocatable", "other")),
    subject=st.sampled_from(("x", "GPU 3 of gpu-001", "GPU 5 of gpu-001")),
    node=st.sampled_from((None, 1, 2)),
    rank=st.integers(0, 2),
)


def found(key, rule, node=1, rank=1):
    return Found(key, rule, "x", node, rank)


def test_what_another_explains_is_listed_under_it():
    assert causes([found(1, "exporter"), found(2, "lost")], TABLE) == {1: 2}


def test_a_gpu_explains_what_is_wrong_with_it_and_its_node_and_no_other_gpu():
    lost = Found(1, "lost", "GPU 3 of gpu-001", 7, 0)
    silent = [Found(key, "exporter", f"GPU {index} of gpu-001", 7, 0) for key, index in ((2, 3), (3, 5))]
    of_node = Found(4, "exporter", "node gpu-001", 7, 1)

    assert causes([lost, *silent, of_node], TABLE) == {2: 1, 4: 1}


def test_the_likeliest_cause_is_taken():
    assert causes([found(1, "exporter"), found(3, "operand"), found(2, "lost")], TABLE) == {1: 2}


def test_what_is_explained_itself_explains_for_its_own_cause():
    rows = [found(1, "exporter"), found(2, "operand"), found(3, "operator", node=None)]

    assert causes(rows, TABLE) == {1: 3, 2: 3}


def test_another_node_explains_nothing():
    assert causes([found(1, "exporter", node=1), found(2, "lost", node=2)], TABLE) == {}


def test_nothing_hides_what_is_worse():
    assert causes([found(1, "exporter", rank=0), found(2, "lost", rank=1)], TABLE) == {}


@given(st.lists(FOUND, unique_by=lambda one: one.key))
def test_every_cause_stands_on_its_own_and_is_no_milder(rows):
    by_key = {one.key: one for one in rows}

    explained = causes(rows, TABLE)

    for key, cause in explained.items():
        assert cause in by_key
        assert cause not in explained
        assert by_key[cause].rank <= by_key[key].rank
        assert by_key[cause].node in (by_key[key].node, None)


def test_the_table_names_rules_that_there_are_and_runs_in_no_circle():
    keys = {rule.key for rule in (*RULES, *GPU_RULES)} | set(SOURCES)

    def above(rule, seen=()):
        assert rule not in seen, f"{rule} explains itself"
        for cause in EXPLAINED_BY.get(rule, ()):
            above(cause, (*seen, rule))

    for rule, explaining in EXPLAINED_BY.items():
        assert {rule, *explaining} <= keys
        above(rule)
