"""A cluster in a file is the same cluster afterwards."""

import time
from pathlib import Path

import pytest

from simulator.actors.store_cluster import StoreCluster
from simulator.bootstrap import add_roles
from simulator.clock import Clock
from simulator.fleets.planting import Planting
from simulator.fleets.small import small
from simulator.kinds import CONFIG_MAP, NAMESPACE, NODE, POD
from simulator.refusals import Refused
from simulator.state import Keeper, UnreadableState, load, save
from simulator.store import Store
from tests.patience import PATIENCE_S


def a_fleet() -> Store:
    store = Store(Clock())
    add_roles(store)
    Planting(StoreCluster(store), small(nodes=2), store.clock.now()).plant()
    return store


def objects(store: Store) -> dict:
    return {shelf: [kept.records[key].obj for key in kept.keys] for shelf, kept in store.shelves.items()}


def test_everything_is_as_it_was(tmp_path: Path):
    before, after = a_fleet(), Store(Clock())
    save(before, tmp_path / "fleet.state")

    load(after, tmp_path / "fleet.state")

    assert objects(after) == objects(before)
    assert after.get(NAMESPACE, "kube-system") == before.get(NAMESPACE, "kube-system")


def test_lists_come_in_the_same_order(tmp_path: Path):
    before, after = a_fleet(), Store(Clock())
    save(before, tmp_path / "fleet.state")

    load(after, tmp_path / "fleet.state")

    assert after.list(POD, limit=7)[0] == before.list(POD, limit=7)[0]


def test_no_watch_goes_on_where_it_was(tmp_path: Path):
    before, after = a_fleet(), Store(Clock())
    last = str(before.version)
    save(before, tmp_path / "fleet.state")
    before.create(CONFIG_MAP, {"metadata": {"name": "unsaved"}}, "default")

    load(after, tmp_path / "fleet.state")

    assert after.version > before.version
    for since in (last, str(before.version)):
        with pytest.raises(Refused, match="too old resource version"):
            after.cursor(NODE, since=since)
    assert after.cursor(NODE, since=str(after.version)).read() == []


def test_writes_go_on_with_newer_versions(tmp_path: Path):
    before, after = a_fleet(), Store(Clock())
    save(before, tmp_path / "fleet.state")
    load(after, tmp_path / "fleet.state")
    node = after.list(NODE)[0][0]

    changed = after.patch(NODE, node["metadata"]["name"], {"metadata": {"labels": {"a": "b"}}}, how="merge")

    assert int(changed["metadata"]["resourceVersion"]) == after.version


BROKEN = (b"", b"\n", b"{}\n", b'{"format":0,"version":1}\n', b'{"format":1,"version":1}\nx\n')


@pytest.mark.parametrize("content", BROKEN)
def test_a_file_that_is_none_is_named(tmp_path: Path, content: bytes):
    (tmp_path / "fleet.state").write_bytes(content)

    with pytest.raises(UnreadableState, match=r"fleet\.state"):
        load(Store(Clock()), tmp_path / "fleet.state")


def test_the_keeper_writes_a_last_time_at_the_end(tmp_path: Path):
    store, file = a_fleet(), tmp_path / "fleet.state"
    keeper = Keeper(store, file)
    keeper.start()
    store.create(CONFIG_MAP, {"metadata": {"name": "late"}}, "default")

    keeper.stop()

    again = Store(Clock())
    load(again, file)
    assert again.get(CONFIG_MAP, "late", "default")
    assert list(tmp_path.iterdir()) == [file]


def test_it_is_kept_from_the_beginning(tmp_path: Path):
    """Who is killed before the first pause is over comes back as the same cluster."""
    store = a_fleet()
    keeper = Keeper(store, tmp_path / "fleet.state", every_s=3600)

    keeper.start()
    wait_for(tmp_path / "fleet.state")

    after = Store(Clock())
    load(after, tmp_path / "fleet.state")
    assert after.get(NAMESPACE, "kube-system") == store.get(NAMESPACE, "kube-system")
    keeper.stop()


def wait_for(file: Path) -> None:
    until = time.monotonic() + PATIENCE_S
    while not file.exists() and time.monotonic() < until:
        time.sleep(0.01)
