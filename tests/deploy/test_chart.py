"""The Helm chart, rendered by Helm: security of its pods, rights, commands, and what it says about wrong values."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from config.settings.base import SETTING_VARIABLES
from config.version import VERSION

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
CHART = DEPLOY / "chart"
PROCESSES = ("web", "observe", "rollouts", "default", "beat")
EXTERNAL = (
    "--set=host=qd.example.com,database.host=pg,database.existingSecret=mine,valkey.host=valkey,secretKey.existingSecret=mine",
)
TRIAL = ("--set=host=qd.example.com,trial.enabled=true",)
FULL = (f"--values={Path(__file__).with_name('full-values.yaml')}",)

pytestmark = [pytest.mark.helm, pytest.mark.nightly]


def helm(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(["helm", *words], capture_output=True, text=True, check=False)


def template(*values: str, namespace: str = "gpu-fleet") -> "subprocess.CompletedProcess[str]":
    return helm("template", "qd", str(CHART), f"--namespace={namespace}", "--kube-version=1.34.2", *values)


def rendered(*values: str) -> list[dict[str, Any]]:
    ended = template(*values)
    assert ended.returncode == 0, ended.stderr
    return [one for one in yaml.safe_load_all(ended.stdout) if one]


def pods(objects: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    for one in objects:
        if one["kind"] == "Pod":
            yield one["metadata"]["name"], one["spec"]
        elif "template" in one.get("spec", {}):
            yield one["metadata"]["name"], one["spec"]["template"]["spec"]


def containers(pod: dict[str, Any]) -> list[dict[str, Any]]:
    return pod.get("initContainers", []) + pod["containers"]


@pytest.mark.parametrize("values", [EXTERNAL, TRIAL, FULL], ids=["external", "trial", "full"])
def test_lint_finds_nothing(values):
    ended = helm("lint", "--strict", str(CHART), *values)

    assert ended.returncode == 0, ended.stdout
    assert "WARNING" not in ended.stdout


@pytest.mark.parametrize("values", [EXTERNAL, TRIAL, FULL], ids=["external", "trial", "full"])
def test_every_pod_meets_the_restricted_profile_and_has_a_read_only_root(values):
    """kubernetes.io/docs/concepts/security/pod-security-standards"""
    found = dict(pods(rendered(*values)))

    assert len(found) >= 7
    for name, pod in found.items():
        assert pod["securityContext"]["runAsNonRoot"], name
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, name
        for container in containers(pod):
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }, name
            assert container["resources"]["requests"]["memory"], name
            assert container["resources"]["limits"]["memory"], name


def test_only_processes_that_call_the_api_server_have_a_token():
    with_token = {name for name, pod in pods(rendered(*TRIAL)) if pod.get("automountServiceAccountToken", True)}

    assert {name.removeprefix("qd-quarterdeck-").split("-")[0] for name in with_token} == {
        "observe", "rollouts", "default", "setup",
    }  # fmt: skip


def test_without_a_home_cluster_no_pod_has_a_token_and_there_are_no_rights():
    objects = rendered(*TRIAL, "--set=homeCluster.enabled=false")

    assert all(pod["automountServiceAccountToken"] is False for _, pod in pods(objects))
    assert not {"ServiceAccount", "ClusterRole", "Role"} & {one["kind"] for one in objects}


@pytest.mark.parametrize("mode", ["observe-only", "follow", "operate"])
def test_the_rights_are_those_of_the_manifests(mode):
    """Each role with its rules: the release's namespace replaces quarterdeck, and its names replace ours."""
    manifest = "quarterdeck.yaml" if mode == "operate" else "observe-only.yaml"
    shipped = roles(yaml.safe_load_all((DEPLOY / "rbac" / manifest).read_text()))

    in_chart = roles(rendered(*TRIAL, f"--set=homeCluster.mode={mode}"))

    assert in_chart == {
        (kind, "gpu-fleet" if namespace == "quarterdeck" else namespace): rules
        for (kind, namespace), rules in shipped.items()
    }


def roles(objects: Any) -> dict[tuple[str, str], Any]:
    return {(one["kind"], one["metadata"].get("namespace", "")): one["rules"] for one in objects if one.get("rules")}


def test_the_admission_policy_is_the_shipped_one_for_the_account_of_the_release():
    shipped = [one["spec"] for one in yaml.safe_load_all((DEPLOY / "rbac" / "policy.yaml").read_text())]
    text = json.dumps(shipped).replace("quarterdeck:quarterdeck", "gpu-fleet:qd-quarterdeck")
    text = text.replace('"policyName": "quarterdeck-', '"policyName": "qd-quarterdeck-')

    operating = policies("--set=homeCluster.mode=operate")

    assert sorted(operating, key=json.dumps) == sorted(json.loads(text), key=json.dumps)
    assert policies() == []  # observe-only: RBAC allows no write
    assert policies("--set=homeCluster.mode=operate,homeCluster.admissionPolicy=false") == []


def policies(*values: str) -> list[Any]:
    return [one["spec"] for one in rendered(*TRIAL, *values) if one["kind"].startswith("ValidatingAdmissionPolicy")]


def test_every_role_is_bound_to_the_account_of_the_release():
    objects = rendered(*TRIAL, "--set=homeCluster.mode=operate,homeCluster.operatorNamespaces={a,b}")
    given = {(one["kind"], one["metadata"].get("namespace", "")) for one in objects if one.get("rules")}
    bindings = [one for one in objects if one.get("roleRef")]

    bound = {(one["roleRef"]["kind"], one["metadata"].get("namespace", "")) for one in bindings}

    assert bound == given
    assert {namespace for _, namespace in given} == {"", "gpu-fleet", "kube-system", "a", "b"}
    account = {"kind": "ServiceAccount", "name": "qd-quarterdeck", "namespace": "gpu-fleet"}
    assert all(one["subjects"] == [account] for one in bindings)


def test_processes_start_as_in_compose():
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    image = (DEPLOY / "Dockerfile").read_text().rpartition("\nCMD ")[2]

    started = {name.removeprefix("qd-quarterdeck-"): pod for name, pod in pods(rendered(*TRIAL))}

    for name in PROCESSES:
        expected = services[name].get("command") or json.loads(image)
        assert started[name]["containers"][0]["command"] == expected


def test_pods_wait_for_the_setup_job_whose_name_changes_with_its_pod():
    """A Job cannot be changed: an upgrade makes another one."""
    before, same, after = (rendered(*EXTERNAL, f"--set=image.tag={tag}") for tag in ("1.0.1", "1.0.1", "1.0.2"))

    names = [
        next(one["metadata"]["name"] for one in objects if one["kind"] == "Job") for objects in (before, same, after)
    ]

    assert names[0] == names[1] != names[2]
    for name, pod in pods(before):
        if name.removeprefix("qd-quarterdeck-") in PROCESSES:
            (waits,) = pod["initContainers"]
            assert waits["command"][-1] == "wait_for_migrations"


def test_a_worker_ends_only_after_the_new_one_had_time_to_start():
    """It has no port that a probe could ask. Web has one."""
    waits = {
        one["metadata"]["name"].removeprefix("qd-quarterdeck-"): one["spec"].get("minReadySeconds", 0)
        for one in rendered(*EXTERNAL)
        if one["kind"] == "Deployment"
    }

    assert waits == {"web": 0, "observe": 30, "rollouts": 30, "default": 30, "beat": 30}


def test_a_digest_names_the_image_of_every_container_and_not_the_tag():
    digest = f"sha256:{'ab' * 32}"
    given = ("--set=image.registry=registry.example.com", "--set=image.tag=1.0.1", f"--set=image.digest={digest}")

    images = {container["image"] for _, pod in pods(rendered(*EXTERNAL, *given)) for container in containers(pod)}

    assert images == {f"registry.example.com/quarterdeck@{digest}"}


def test_alerts_and_dashboards_are_the_plain_files():
    plain = (CHART / "monitoring" / "alerts.yaml").read_text()
    address = "https://docs.example.com/operations.html"

    objects = rendered(*FULL)
    (rule,) = [one["spec"] for one in objects if one["kind"] == "PrometheusRule"]
    (dashboards,) = [one["data"] for one in objects if one["metadata"]["name"] == "qd-quarterdeck-dashboards"]

    assert rule == yaml.safe_load(plain.replace("docs/operations.md", address))
    files = sorted((CHART / "monitoring" / "dashboards").glob("*.json"))
    assert dashboards == {f"quarterdeck-{path.name}": path.read_text() for path in files}


def test_every_variable_is_one_that_settings_read():
    others = {"POD_IP", "PGPASSWORD", "VALKEY_PASSWORD", "SSL_CERT_FILE", "HTTPS_PROXY", "POSTGRES_USER", "POSTGRES_DB"}
    others |= {"POSTGRES_PASSWORD", "PGDATA", "EXTRA"}

    for values in (TRIAL, FULL):
        names = {
            env["name"] for _, pod in pods(rendered(*values)) for one in containers(pod) for env in one.get("env", [])
        }
        assert names - others <= SETTING_VARIABLES


def test_a_password_is_read_from_a_secret_and_written_nowhere():
    objects = rendered(*FULL)

    assert not [one for one in objects if one["kind"] == "Secret"]
    web = next(pod for name, pod in pods(objects) if name.endswith("-web"))
    values = {env["name"]: env.get("value", "from a Secret") for env in web["containers"][0]["env"]}
    assert values["PGPASSWORD"] == values["VALKEY_PASSWORD"] == values["QUARTERDECK_SECRET_KEY"] == "from a Secret"
    assert values["DATABASE_URL"] == (
        "postgres://quarterdeck@pg.example.com:5432/quarterdeck?sslmode=verify-full&sslrootcert=/etc/quarterdeck/ca/ca.crt"
    )
    assert values["REDIS_URL"] == "rediss://:$(VALKEY_PASSWORD)@valkey.example.com:6379/0"


def test_probes_and_prometheus_may_use_the_address_of_a_pod():
    web = next(pod for name, pod in pods(rendered(*TRIAL)) if name.endswith("-web"))
    names = [env["name"] for env in web["containers"][0]["env"]]
    hosts = next(env["value"] for env in web["containers"][0]["env"] if env["name"] == "QUARTERDECK_ALLOWED_HOSTS")

    assert names.index("POD_IP") < names.index("QUARTERDECK_ALLOWED_HOSTS")
    assert hosts == "qd.example.com,qd-quarterdeck-web,$(POD_IP),[$(POD_IP)]"


@pytest.mark.parametrize("values", [TRIAL, FULL], ids=["trial", "full"])
def test_the_variables_are_a_complete_configuration_for_production(values):
    """Resolved as a kubelet does: Secrets are read, and $(NAME) stands for an earlier variable."""
    web = next(pod for name, pod in pods(rendered(*values)) if name.endswith("-web"))
    given = {"DJANGO_SETTINGS_MODULE": "config.settings.prod"}  # of the image
    for one in web["containers"][0]["env"]:
        value = one.get("value", "10.0.0.7" if one["name"] == "POD_IP" else "of-a-Secret-" * 6)
        given[one["name"]] = re.sub(r"\$\((\w+)\)", lambda found: given[found[1]], value)
    given["QUARTERDECK_SMTP_URL"] = "smtp+tls://user:secret@mail.example.com:587"
    given["QUARTERDECK_TOKEN_PEPPERS"] = "b:" + "of-a-Secret-" * 6

    command = [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"]
    ended = subprocess.run(command, cwd=DEPLOY.parent, env=given, capture_output=True, text=True, check=False)

    assert ended.returncode == 0, ended.stderr
    assert given["QUARTERDECK_ALLOWED_HOSTS"].endswith(",qd-quarterdeck-web,10.0.0.7,[10.0.0.7]")


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("databse.host=x", "additional properties 'databse' not allowed"),
        ("web.replicas=3", "at '/web': additional properties 'replicas' not allowed"),
        ("settings.QUARTERDECK_LOGLEVEL=INFO", "additional properties 'QUARTERDECK_LOGLEVEL' not allowed"),
        ("homeCluster.mode=watch", "value must be one of 'observe-only', 'follow', 'operate'"),
        ("host=https://qd.example.com", "at '/host'"),
        ("database.port=70000", "at '/database/port'"),
        ("image.digest=ab12", "at '/image/digest'"),
    ],
)
def test_a_wrong_value_is_refused(value, sentence):
    ended = template(*EXTERNAL, f"--set={value}")

    assert ended.returncode != 0
    assert sentence in ended.stderr


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("host=", "Set host to the name that people type"),
        ("database.host=", "Set database.host, or database.urlKey, or trial.enabled"),
        ("database.existingSecret=", "Set database.existingSecret"),
        ("valkey.host=", "Set valkey.host, or valkey.urlKey, or trial.enabled"),
        ("metrics.serviceMonitor.enabled=true", "Set metrics.serviceMonitor.tokenSecret"),
        ("serviceAccount.create=false", "Set serviceAccount.name"),
    ],
)
def test_a_missing_value_is_named(value, sentence):
    ended = template(*EXTERNAL, f"--set={value}")

    assert ended.returncode != 0
    assert sentence in ended.stderr


def test_the_schema_describes_every_value_and_no_other():
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())

    assert set(described(schema, schema)) - {("global",), ("global", "imageRegistry")} - settings(schema) == set(
        paths(values)
    )


def settings(schema: dict[str, Any]) -> set[tuple[str, str]]:
    return {("settings", name) for name in schema["properties"]["settings"]["properties"]}


def described(schema: dict[str, Any], part: dict[str, Any], at: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    part = schema["$defs"][part["$ref"].rpartition("/")[2]] if "$ref" in part else part
    if part.get("type") == "object" and "properties" in part:
        assert at == ("global",) or part["additionalProperties"] is False, at
    for name, below in part.get("properties", {}).items():
        yield (*at, name)
        yield from described(schema, below, (*at, name))


def paths(values: dict[str, Any], at: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, value in values.items():
        yield (*at, name)
        if isinstance(value, dict) and name not in {"resources", "labels"}:
            yield from paths(value, (*at, name))


def test_the_version_is_that_of_the_product():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())

    assert chart["version"] == chart["appVersion"] == VERSION
