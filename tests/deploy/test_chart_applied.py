"""The chart on a real kube-apiserver: under the restricted Pod Security Standard, upgraded, and with its account alone.

Helm and `QUARTERDECK_TEST_KUBECONFIG` are needed (CONTRIBUTING.md). That API server has no kubelet, so pods are asked
for by a dry run, which Pod Security answers.
"""

import json
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from demo.parts import Fleet
from demo.stack import PASSWORD
from demo.visitor import Visitor, wait_until
from tests.deploy.test_chart import CHART, EXTERNAL, FULL, TRIAL, helm, pods
from tests.deploy.test_policy import GIVEN, apply, kubectl, real
from tests.flows.cluster import Cluster
from tests.flows.plans import Plan, canary
from tests.flows.proxy import CONTEXT, Proxy
from tests.flows.recorded import RecordedStack
from tests.patience import PATIENCE_S

NAMESPACE, RELEASE = "quarterdeck", "quarterdeck"  # as docs/install.md has them
ACCOUNT = f"system:serviceaccount:{NAMESPACE}:{RELEASE}"
OPERATE = (*TRIAL, "--set=homeCluster.mode=operate")
UPGRADED, UPGRADED_IN = "upgraded", "quarterdeck-upgraded"
RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}
OF_OTHERS = {"ServiceMonitor", "PrometheusRule", "HTTPRoute"}  # their CRDs are not on this API server
ROOT = CHART.parents[1]

pytestmark = [pytest.mark.helm, pytest.mark.nightly, real]


def namespace(name: str, **labels: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def objects(*values: str, release: str = RELEASE) -> list[dict[str, Any]]:
    ended = helm("template", release, str(CHART), f"--namespace={NAMESPACE}", "--kube-version=1.34.2", *values)
    assert ended.returncode == 0, ended.stderr
    return [one for one in yaml.safe_load_all(ended.stdout) if one and one["kind"] not in OF_OTHERS]


@pytest.fixture(scope="module")
def home() -> Iterator[None]:
    """The chart of docs/install.md in mode operate, applied as a GitOps tool applies it."""
    apply(namespace(NAMESPACE, **RESTRICTED), *map(namespace, ("gpu-operator", "exporters", "fleet")))
    chart = objects(*OPERATE)
    apply(*chart)
    yield
    kubectl("delete", "-f", "-", "--ignore-not-found", text=yaml.safe_dump_all(chart))


def with_claims(objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Gives the pods of a StatefulSet the volumes that its controller would."""
    for one in objects:
        for claim in one.get("spec", {}).get("volumeClaimTemplates", []):
            volume = {"name": claim["metadata"]["name"], "persistentVolumeClaim": {"claimName": "claim"}}
            one["spec"]["template"]["spec"]["volumes"].append(volume)
    return objects


def refused_pod(spec: dict[str, Any]) -> str:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "tried", "namespace": NAMESPACE}, "spec": spec}
    ended = kubectl("create", "--dry-run=server", "-f", "-", text=json.dumps(pod))
    return ended.stderr if ended.returncode else ""


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("values", [OPERATE, EXTERNAL, FULL], ids=["trial", "external", "full"])
def test_every_pod_is_admitted_under_the_restricted_standard(values):
    found = dict(pods(with_claims(objects(*values))))

    assert len(found) >= 7
    assert {name: refused for name, spec in found.items() if (refused := refused_pod(spec))} == {}


@pytest.mark.usefixtures("home")
def test_pod_security_answers_there():
    """Otherwise every pod would be admitted."""
    (_, spec), *_ = pods(objects(*OPERATE))

    assert "violates PodSecurity" in refused_pod(spec | {"hostNetwork": True})


@pytest.mark.usefixtures("home")
def test_every_object_of_all_branches_is_accepted():
    ended = kubectl(
        "apply", "--server-side", "--dry-run=server", "--force-conflicts", "-f", "-",
        text=yaml.safe_dump_all(objects(*FULL, release="full")),
    )  # fmt: skip

    assert ended.returncode == 0, ended.stderr


@pytest.fixture
def older(tmp_path: Path) -> Path:
    """The first chart that this repository had, from its history."""
    commits = git("log", "--format=%H", "--reverse", "--", "deploy/chart/Chart.yaml").split()
    if git("rev-parse", "--is-shallow-repository").strip() == "true":
        pytest.skip("this clone has no history of the chart")
    archive = subprocess.run(
        ["git", "archive", commits[0], "deploy/chart"], cwd=ROOT, capture_output=True, check=True
    ).stdout
    subprocess.run(["tar", "-x", "-C", str(tmp_path)], input=archive, check=True)
    chart = tmp_path / "deploy" / "chart"
    packaged = helm("package", str(chart), "--version=0.0.1", f"--destination={tmp_path}")
    assert packaged.returncode == 0, packaged.stderr
    return tmp_path / "quarterdeck-0.0.1.tgz"


def git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def released(*words: str) -> None:
    ended = helm(*words, f"--namespace={UPGRADED_IN}", f"--kubeconfig={GIVEN}")
    assert ended.returncode == 0, ended.stderr


def there(kind: str, name: str) -> dict[str, Any]:
    ended = kubectl("get", kind, name, "-n", UPGRADED_IN, "-o", "json")
    assert ended.returncode == 0, ended.stderr
    return dict(json.loads(ended.stdout))


def test_an_older_chart_is_upgraded_and_rolled_back(older):
    """Selectors and Jobs cannot be changed, and the generated key survives both ways."""
    own = f"{UPGRADED}-quarterdeck"
    apply(namespace(UPGRADED_IN, **RESTRICTED), namespace("gpu-operator"))
    try:
        released("install", UPGRADED, str(older), *OPERATE)
        before = there("secret", own)["data"]
        released("upgrade", UPGRADED, str(CHART), *OPERATE)
        new = there("deployment", f"{own}-web")["metadata"]["labels"]["helm.sh/chart"]
        after = there("secret", own)["data"]
        released("rollback", UPGRADED, "1")
        old = there("deployment", f"{own}-web")["metadata"]["labels"]["helm.sh/chart"]

        assert (new, old) == ("quarterdeck-0.1.0", "quarterdeck-0.0.1")
        assert before == after == there("secret", own)["data"]
    finally:
        helm("uninstall", UPGRADED, f"--namespace={UPGRADED_IN}", f"--kubeconfig={GIVEN}")


def test_a_missing_namespace_is_named_before_anything_is_created():
    apply(namespace(UPGRADED_IN, **RESTRICTED))

    ended = helm(
        "upgrade", "--install", UPGRADED, str(CHART), *TRIAL, "--set=homeCluster.operatorNamespaces={nowhere}",
        f"--namespace={UPGRADED_IN}", f"--kubeconfig={GIVEN}",
    )  # fmt: skip

    assert "The namespace nowhere does not exist. Set homeCluster.operatorNamespaces" in ended.stderr
    assert kubectl("get", "deployments", "-n", UPGRADED_IN, "-o", "name").stdout == ""


def test_missing_secrets_and_keys_are_named_and_a_deleted_setup_job_is_made_again():
    apply(namespace(UPGRADED_IN, **RESTRICTED), namespace("gpu-operator"))
    given = ("--set=clusterSecrets={us-1}", "--set=database.existingSecret=later")
    try:
        ended = helm(
            "upgrade", "--install", UPGRADED, str(CHART), *EXTERNAL, *given, f"--namespace={UPGRADED_IN}",
            f"--kubeconfig={GIVEN}",
        )  # fmt: skip
        assert "clusterSecrets names the Secret us-1, which does not exist." in ended.stdout
        assert "database.existingSecret names the Secret later, which does not exist." in ended.stdout

        secret = {"apiVersion": "v1", "kind": "Secret", "stringData": {"secret-key": "x"}}
        apply(*({**secret, "metadata": {"name": name, "namespace": UPGRADED_IN}} for name in ("later", "us-1")))
        jobs = kubectl("get", "jobs", "-n", UPGRADED_IN, "-o", "name").stdout
        kubectl("delete", "jobs", "--all", "-n", UPGRADED_IN)
        ended = helm(
            "upgrade", UPGRADED, str(CHART), *EXTERNAL, *given, f"--namespace={UPGRADED_IN}", f"--kubeconfig={GIVEN}"
        )
        assert "database.existingSecret names the Secret later, which has no key password." in ended.stdout
        assert "us-1" not in ended.stdout
        assert kubectl("get", "jobs", "-n", UPGRADED_IN, "-o", "name").stdout == jobs != ""
    finally:
        released("uninstall", UPGRADED)
        kubectl("delete", "secret", "later", "us-1", "-n", UPGRADED_IN)


def test_an_upgrade_restarts_pods_after_a_change_of_their_secret():
    """Processes read these variables once, at their start."""
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "mine", "namespace": UPGRADED_IN}}
    apply(namespace(UPGRADED_IN, **RESTRICTED), secret | {"stringData": {"password": "a", "secret-key": "a"}})
    values = ("restarted", str(CHART), *EXTERNAL, "--set=homeCluster.enabled=false")

    def checksum() -> str:
        released("upgrade", "--install", *values)
        pod = there("deployment", "restarted-quarterdeck-web")["spec"]["template"]
        return str(pod["metadata"]["annotations"]["checksum/environment"])

    try:
        before, same = checksum(), checksum()
        apply(secret | {"stringData": {"password": "b", "secret-key": "a"}})

        assert before == same != checksum()
    finally:
        helm("uninstall", "restarted", f"--namespace={UPGRADED_IN}", f"--kubeconfig={GIVEN}")


@pytest.fixture(scope="module")
def account(home: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A kubeconfig with a token of the release's ServiceAccount, and nothing else."""
    ended = kubectl("create", "token", RELEASE, f"--namespace={NAMESPACE}", "--duration=2h")
    assert ended.returncode == 0, ended.stderr
    owners = yaml.safe_load(Path(GIVEN).read_text())
    context = next(one["context"] for one in owners["contexts"] if one["name"] == owners["current-context"])
    path = tmp_path_factory.mktemp("account") / "kubeconfig"
    user = {"name": "account", "user": {"token": ended.stdout.strip()}}
    contexts = [{"name": "account", "context": {"cluster": context["cluster"], "user": "account"}}]
    path.write_text(yaml.safe_dump(owners | {"users": [user], "contexts": contexts, "current-context": "account"}))
    path.chmod(0o600)
    return path


def as_account(account: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    command = ["kubectl", "--kubeconfig", str(account), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


class AccountStack(RecordedStack):
    """Quarterdeck with the token of the chart's ServiceAccount. The chart gave it its rights, and nobody else does."""

    account: Path

    def grant(self) -> None:
        """The chart has done it."""

    def way_in(self) -> tuple[Path, str]:
        self.proxy = Proxy(self.account, "account", self.folder)
        self.proxy.start()
        return self.proxy.kubeconfig, CONTEXT


@pytest.fixture(scope="module")
def stack(account: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AccountStack]:
    context = yaml.safe_load(Path(GIVEN).read_text())["current-context"]
    fleet = replace(Fleet(nodes=8, speed=40.0), kubeconfig=Path(GIVEN).absolute(), context=context)
    running = AccountStack(tmp_path_factory.mktemp("stack"), fleet)
    running.account = account
    with running:
        yield running


def test_its_account_alone_observes_and_promotes_a_canary(stack, account):
    """Its token passes RBAC and the ValidatingAdmissionPolicy of the chart with everything that a plan needs."""
    cluster = Cluster(stack.kubeconfig, stack.fleet.context)
    cluster.drop_lease()
    cluster.settle()
    with Visitor(stack.url, "operator") as operator, Visitor(stack.url, "approver") as approver:
        operator.sign_in(PASSWORD)
        approver.sign_in(PASSWORD)
        wait_until(lambda: len(operator.all("/api/v1/nodes")) >= 8, what="the nodes", timeout_s=PATIENCE_S)
        plan = Plan("a100", operator, approver, cluster, stack.proxy).draft(canary()).start().until_opening()
        plan.approve()
        plan.until_state("promoted")
    node = cluster.names("a100")[0]
    writes = [one for one in plan.requests() if one.is_write and one.is_forwarded]

    assert as_account(account, "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}").stdout == ACCOUNT
    assert [(one.method, one.path) for one in writes if one.code == 403] == []
    assert len(plan.released()) == 1
    assert stack.bugs() == []
    foreign = as_account(account, "label", "node", node, "zone=elsewhere", "--dry-run=server")
    assert "Quarterdeck may change only these labels" in foreign.stderr
    assert as_account(account, "auth", "can-i", "delete", "nodes").stdout.strip() == "no"
    cluster.close()
