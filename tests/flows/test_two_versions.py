"""During an upgrade, processes of two versions share a migrated database, and a promotion goes on."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from demo.parts import QUEUES
from demo.settings import ROOT
from demo.stack import PASSWORD
from demo.visitor import Visitor
from tests.flows.cluster import Cluster
from tests.flows.conftest import FLEET, an_empty_database
from tests.flows.plans import APPROVED, Plan, canary, the_others
from tests.flows.recorded import RecordedStack

pytestmark = pytest.mark.nightly
WORKERS = {*QUEUES, "beat"}


class TwoVersions(RecordedStack):
    """A stack in which these parts run the code of another folder. The newest code has made the database."""

    parts: set[str]
    code: Path

    def folder_of(self, name: str) -> Path:
        return self.code if name in self.parts else super().folder_of(name)


@pytest.fixture(scope="module")
def code_before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The code of the last release; without one, from before the newest migration. A variable names any other."""
    revision = os.environ.get("QUARTERDECK_VERSION_BEFORE") or git("describe", "--tags", "--abbrev=0") or parent()
    folder = tmp_path_factory.mktemp("before")
    archive = subprocess.run(["git", "archive", revision], cwd=ROOT, capture_output=True, check=True).stdout
    subprocess.run(["tar", "-x", "-C", folder], input=archive, check=True)
    return folder


def parent() -> str:
    newest = git("log", "-1", "--format=%H", "--diff-filter=A", "--", "*/migrations/0*.py")
    if not git("rev-parse", "--verify", "--quiet", f"{newest}^"):
        pytest.skip("This clone is too shallow to have the code from before the newest migration.")
    return f"{newest}^"


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()


@pytest.fixture(scope="module", params=[WORKERS, {"web"}], ids=["old workers, new web", "new workers, old web"])
def mixed(
    request: pytest.FixtureRequest, code_before: Path, tmp_path_factory: pytest.TempPathFactory, worker_id: str
) -> Iterator[TwoVersions]:
    folder, database = tmp_path_factory.mktemp("mixed"), an_empty_database(f"two_versions_{worker_id}")
    stack = TwoVersions(folder, FLEET, database_url=database)
    stack.parts, stack.code = set(request.param), code_before
    with stack:
        yield stack


def test_a_promotion_goes_on_while_versions_differ(mixed: TwoVersions):
    operator, approver, admin = (
        Visitor(mixed.url, role).sign_in(PASSWORD) for role in ("operator", "approver", "admin")
    )
    cluster = Cluster(mixed.kubeconfig, mixed.fleet.context)
    plan = Plan("a100", operator, approver, cluster, mixed.proxy)
    for row in admin.all("/api/v1/clusters"):
        admin.patch(f"/api/v1/clusters/{row['id']}", {"approval": "none", "reason": "Nobody's work is on it."})

    plan.draft(canary(), the_others(gate_options=APPROVED)).start().until_opening()
    plan.approve()
    plan.until(lambda shown: shown["stages"][1]["state"] == "opening", "the second stage")
    for name in sorted(mixed.parts):  # the rest of the upgrade
        mixed.parts.discard(name)
        mixed.restart(name)
    plan.approve(1)
    plan.until_state("promoted")

    assert set(cluster.loaded(plan.driver).values()) == {plan.to_version}
    assert plan.released() == plan.all_targets()
    assert mixed.bugs() == []
