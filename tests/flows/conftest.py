"""The real stack, started once per worker process; the flows see it as any outsider does, over HTTP."""

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
import yaml

from demo.parts import Fleet
from demo.stack import PASSWORD
from demo.visitor import Visitor, wait_until
from tests.flows.cluster import PATIENCE_S, Cluster
from tests.flows.plans import BAD, MISSING, Plan
from tests.flows.proxy import Proxy
from tests.flows.recorded import RecordedStack

FLOWS = Path(__file__).parent
FAULTS = (f"bad_driver:version={BAD},how=workloads", f"bad_image:image=driver:{MISSING}")
FLEET = Fleet(nodes=8, speed=40.0, faults=FAULTS, authorization="rbac")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder is a flow."""
    for item in items:
        if FLOWS in item.path.parents:
            item.add_marker(pytest.mark.flow)


@pytest.fixture(scope="session")
def fleet() -> Fleet:
    """The simulator's, unless the environment names an API server to play the actors against."""
    if given := os.environ.get("QUARTERDECK_TEST_KUBECONFIG"):
        context = yaml.safe_load(Path(given).read_text())["current-context"]
        return replace(FLEET, kubeconfig=Path(given).absolute(), context=context)
    return FLEET


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory, fleet: Fleet, database_url: str) -> Iterator[RecordedStack]:
    """Every process, on free ports. Put back what you break: the next flow has the same one."""
    with RecordedStack(tmp_path_factory.mktemp("stack"), fleet, database_url=database_url) as running:
        yield running


@pytest.fixture(scope="session")
def database_url(worker_id: str) -> str:
    """A database of this worker's own where the run is on PostgreSQL; else empty, for the stack's own SQLite."""
    return an_empty_database(f"flows_{worker_id}")


def an_empty_database(name: str) -> str:
    """Returns its URL; empty where the run is not on PostgreSQL."""
    server = os.environ.get("DATABASE_URL", "")
    if not server.startswith("postgres"):
        return ""
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name}")  # type: ignore[call-overload]
        connection.execute(f"CREATE DATABASE {name}")  # type: ignore[call-overload]
    return f"{server.rpartition('/')[0]}/{name}"


@pytest.fixture(scope="session")
def people(stack: RecordedStack) -> Iterator[Callable[[str], Visitor]]:
    """One session per role for all flows of this process: too many sign-ins in a minute are refused."""
    signed_in: dict[str, Visitor] = {}

    def person(role: str) -> Visitor:
        if role not in signed_in:
            signed_in[role] = Visitor(stack.url, role).sign_in(PASSWORD)
        return signed_in[role]

    yield person
    for visitor in signed_in.values():
        visitor.http.close()


@pytest.fixture(scope="session")
def proxy(stack: RecordedStack) -> Proxy:
    """Where Quarterdeck's requests pass by."""
    return stack.proxy


@pytest.fixture(scope="session")
def gpu_cluster(stack: RecordedStack) -> Iterator[Cluster]:
    """The cluster, past Quarterdeck. The one of an earlier run here drives it no more, whatever its Lease says."""
    cluster = Cluster(stack.kubeconfig, stack.fleet.context)
    cluster.drop_lease()
    cluster.settle()
    yield cluster
    cluster.close()


@pytest.fixture(scope="session")
def stages_without_approval(people: Callable[[str], Visitor]) -> None:
    """The flows' cluster lets a stage go without an approval that names none."""
    admin = people("admin")
    for cluster in admin.all("/api/v1/clusters"):
        path = f"/api/v1/clusters/{cluster['id']}"
        admin.patch(path, {"approval": "none", "reason": "Nobody's work is on it."})


@pytest.fixture
def plan_for(
    stack: RecordedStack, operator: Visitor, approver: Visitor, gpu_cluster: Cluster, stages_without_approval: None
) -> Iterator[Callable[[str], Plan]]:
    """Makes plans; what a flow leaves of them is given up and tidied, so that the next one finds a fleet in order."""
    made: list[Plan] = []
    known = stack.bugs()

    def plan(driver: str = "a100") -> Plan:
        made.append(Plan(driver, operator, approver, gpu_cluster, stack.proxy))
        return made[-1]

    yield plan
    for one in made:
        one.end()
    gpu_cluster.settle()
    # What is still seen as cordoned would be left out of the next plan.
    wait_until(lambda: not cordoned(operator), what="a fleet that is seen uncordoned", timeout_s=PATIENCE_S)
    assert stack.bugs() == known


def cordoned(viewer: Visitor) -> list[str]:
    """The nodes that Quarterdeck sees cordoned."""
    return [node["name"] for node in viewer.all("/api/v1/nodes", is_unschedulable="true")]


@pytest.fixture
def viewer(people: Callable[[str], Visitor]) -> Visitor:
    return people("viewer")


@pytest.fixture
def operator(people: Callable[[str], Visitor]) -> Visitor:
    return people("operator")


@pytest.fixture
def approver(people: Callable[[str], Visitor]) -> Visitor:
    return people("approver")


@pytest.fixture
def admin(people: Callable[[str], Visitor]) -> Visitor:
    return people("admin")
