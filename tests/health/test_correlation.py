from dataclasses import replace
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from health.correlation import EXPLAINED_BY, Found, causes
from health.evaluation.finding_sources import SOURCES
from health.rules import RULES
from health.rules.gpus import GPU_RULES
from tests.make import NOON

TABLE = {"exporter": ("lost", "operand"), "operand": ("operator",), "allocatable": ("operand",)}
LATER = NOON + timedelta(minutes=5)
FOUND = st.builds(
    Found,
    key=st.integers(1, 12),
    rule=st.sampled_from(("exporter", "lost", "operand", "operator", "allocatable", "other")),
    gpu=st.sampled_from(("", "GPU-3", "GPU-5")),
    node=st.sampled_from((None, 1, 2)),
    rank=st.integers(0, 2),
    since=st.sampled_from((NOON, LATER)),
    muted_at=st.sampled_from((None, NOON, LATER)),
    gpus=st.integers(0, 2),
)


def found(key, rule, node=1, rank=1, **given):
    return Found(key, rule, "", node, rank, **{"since": NOON} | given)


def of_gpu(key, rule, index, rank=0, **given):
    return Found(key, rule, f"GPU-{index}", 7, rank, **{"since": NOON} | given)


def test_what_another_explains_is_listed_under_it():
    assert causes([found(1, "exporter"), found(2, "lost")], TABLE) == {1: 2}


def test_a_gpu_explains_what_is_wrong_with_it_and_its_node_and_no_other_gpu():
    lost = of_gpu(1, "lost", 3)
    silent = [of_gpu(2, "exporter", 3), of_gpu(3, "exporter", 5)]
    of_node = found(4, "exporter", node=7)

    assert causes([lost, *silent, of_node], TABLE) == {2: 1, 4: 1}


def test_an_operator_that_is_down_explains_upgrades_that_do_not_end():
    stuck, failing = found(1, "upgrade-stuck", node=7), found(2, "pods-failing", node=7)
    down = found(3, "operator-down", node=None)

    assert causes([stuck, failing]) == {2: 1}
    assert causes([stuck, failing, down]) == {1: 3, 2: 3}


def test_a_cluster_that_nobody_watches_is_not_seen_for_that():
    unseen, unwatched = found(1, "cluster-not-seen", node=None), found(2, "cluster-unwatched", node=None, rank=0)

    assert causes([unseen, unwatched]) == {1: 2}
    assert causes([unseen]) == {}


def test_gpus_explain_what_their_node_lacks_where_they_are_enough():
    missing = found(1, "exporter", node=7, gpus=2)
    lost = of_gpu(2, "lost", 3)

    assert causes([missing, lost], TABLE) == {}
    assert causes([missing, lost, replace(lost, key=3, gpu=f"{lost.gpu}, slice 7")], TABLE) == {}
    assert causes([missing, lost, of_gpu(3, "operand", 5)], TABLE) == {1: 2}
    assert causes([missing, lost, of_gpu(3, "operand", 5, rank=2)], TABLE) == {}
    assert causes([missing, found(4, "lost", node=7)], TABLE) == {1: 4}


def test_a_gpu_explains_nothing_that_is_about_none():
    assert causes([found(1, "exporter", node=7, gpus=0), of_gpu(2, "lost", 3)], TABLE) == {}


def test_what_is_muted_explains_what_had_begun_and_nothing_later():
    muted = found(1, "lost", muted_at=LATER)
    before, after = found(2, "exporter"), found(3, "exporter", since=LATER + timedelta(seconds=1))

    assert causes([muted, before, after], TABLE) == {2: 1}
    assert causes([muted, after, found(4, "operand", since=after.since)], TABLE) == {3: 4}


def test_what_began_after_the_first_cause_was_muted_is_not_listed_under_it():
    rows = [found(1, "exporter", since=LATER), found(2, "operand"), found(3, "operator", muted_at=NOON)]

    assert causes(rows, TABLE) == {2: 3}


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
        assert by_key[cause].muted_at is None or by_key[key].since <= by_key[cause].muted_at


def test_the_table_names_rules_that_there_are_and_runs_in_no_circle():
    keys = {rule.key for rule in (*RULES, *GPU_RULES)} | set(SOURCES)

    def above(rule, seen=()):
        assert rule not in seen, f"{rule} explains itself"
        for cause in EXPLAINED_BY.get(rule, ()):
            above(cause, (*seen, rule))

    for rule, explaining in EXPLAINED_BY.items():
        assert {rule, *explaining} <= keys
        above(rule)
