"""The longest transaction that writes, as the benches report it."""

import time

import pytest
from django.db import transaction

from benchmarks.figures import Figures
from benchmarks.writes import LONGEST_MS, report_longest_write, watch_writes
from tests import make

pytestmark = pytest.mark.django_db(transaction=True)
PAUSE_S = 0.3


def test_a_pause_within_a_transaction_that_writes_fails_the_bench(capsys):
    figures = Figures("crash", {})

    with watch_writes() as writes, transaction.atomic():
        make.a_cluster()
        time.sleep(PAUSE_S)
    report_longest_write(figures, writes.longest_ms)

    assert writes.longest_ms > LONGEST_MS
    assert writes.longest_sql.startswith("INSERT")
    with pytest.raises(SystemExit, match="longest_write_ms"):
        figures.end()


def test_a_pause_between_transactions_or_in_one_that_only_reads_does_not(capsys):
    cluster = make.a_cluster()

    with watch_writes() as writes:
        cluster.save()
        time.sleep(PAUSE_S)
        with transaction.atomic():
            cluster.refresh_from_db()
            time.sleep(PAUSE_S)
        cluster.save()

    assert 0 < writes.longest_ms < LONGEST_MS
    assert writes.number == 2


def test_the_rows_of_the_largest_transaction_are_counted():
    cluster = make.a_cluster()

    with watch_writes() as writes:
        make.some_nodes([make.unsaved_node(cluster, gpus=0) for _ in range(7)])
        cluster.nodes.update(is_ready=False)
        with transaction.atomic():
            cluster.nodes.update(is_ready=True)
            cluster.save()

    assert writes.most_rows == 8
