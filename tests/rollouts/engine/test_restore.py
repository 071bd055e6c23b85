"""Hazard Z10: a database comes back from a backup, by pg_dump and pg_restore of a real PostgreSQL."""

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connection

from demo.postgres import programs
from operations.models import WriterLease
from operations.writer_lease import Forfeit, take_writer_lease
from rollouts.models import Plan
from simulator.run import Simulation
from tests.rollouts.engine.ground import CANARY, Ground, a_ground
from tests.simulator.wire.conftest import start  # noqa: F401 (fixture)

pytestmark = pytest.mark.skipif(connection.vendor != "postgresql", reason="restores a dump of PostgreSQL")


@pytest.fixture
def ground(transactional_db: None, start: Callable[..., Simulation], monkeypatch) -> Iterator[Ground]:  # noqa: F811
    """A cluster whose rows are committed. Those kept from other tests can only be put into a transaction."""
    monkeypatch.setattr("tests.rollouts.engine.ground.PLANTED", {})
    monkeypatch.setattr("tests.rollouts.engine.ground.ARMED", {})
    simulation = start()
    made = a_ground(simulation)
    yield made
    made.connection.close()
    simulation.stop()


def postgres(program: str, *arguments: str | Path) -> None:
    given = connection.settings_dict
    reached = {"PGHOST": given["HOST"], "PGPORT": str(given["PORT"]), "PGUSER": given["USER"]}
    env = {**os.environ, **reached, "PGPASSWORD": given["PASSWORD"]}
    subprocess.run([programs() / program, *arguments], env=env, check=True, timeout=120)


def use_database(name: str) -> None:
    connection.close()
    connection.close_pool()
    connection.settings_dict["NAME"] = name


@contextmanager
def restored(dump: Path) -> Iterator[str]:
    """The product on a database from the dump. Yields the name of the database that it used before."""
    used = connection.settings_dict["NAME"]
    name = f"{used}_restored"
    postgres("createdb", name)
    try:
        postgres("pg_restore", "--no-owner", "--exit-on-error", f"--dbname={name}", dump)
        use_database(name)
        yield used
    finally:
        use_database(used)
        postgres("dropdb", "--force", name)


def said(command: str, **given: str) -> str:
    out = StringIO()
    call_command(command, stdout=out, **given)
    return out.getvalue()


def test_a_restored_dump_pauses_its_plans_and_refuses_the_database_that_wrote_since(ground: Ground, tmp_path):
    ground.armed()
    dump = tmp_path / "quarterdeck.dump"
    postgres("pg_dump", "--format=custom", f"--file={dump}", str(connection.settings_dict["NAME"]))
    ground.rounds(3)  # writes that the dump does not have
    assert CANARY not in ground.held()
    ground.writes()

    with restored(dump) as newer:
        assert "the hash chain is intact" in said("verify_audit")
        ground.plan = Plan.objects.get(pk=ground.plan.pk)
        ground.round()
        pause = ground.plan.commands.in_force().get()
        assert "old copy" in pause.reason
        assert ground.writes() == []

        accepted = said("accept_restore", reason="incident 4711")

        assert "1 plan paused." in accepted
        assert "north: this database writes from now on." in accepted
        assert ground.plan.commands.in_force().get() == pause
        epoch = WriterLease.objects.get().epoch
        name = connection.settings_dict["NAME"]
        use_database(newer)
        with pytest.raises(Forfeit, match="old copy"):
            take_writer_lease(ground.connection, ground.cluster, now=ground.clock())
        use_database(name)
        take_writer_lease(ground.connection, ground.cluster, now=ground.clock())
        assert WriterLease.objects.get().epoch == epoch + 1
