"""Commands against the live server: what they print, what they change, and their exit codes."""

import json
import os
import re
import shlex
import socket
from datetime import timedelta

import pytest
import yaml
from django.utils import timezone

from cli import node_operations, waits
from cli.device_login import token_from_browser
from cli.failures import ExitCode, Failure
from cli.node_operations import NAMED
from cli.tables import COLUMNS, Format, Kind, show
from fleet.models import Node
from health.models import Finding, Mute
from operations.impact import LISTS
from operations.models import Operation, OperationNode
from people.models import DeviceAuthorization
from people.roster.device_authorizations import confirm, deny
from rollouts.lifecycle import PlanState
from rollouts.models import Command, Plan
from tests.capacity.usage.test_usage_report import some_usage
from tests.config.rest_schema import rest_paths, rest_schema
from tests.make import (
    NOON,
    a_case,
    a_draft,
    a_finding,
    a_fleet,
    a_pending_pod,
    a_plan,
    a_pod,
    a_user,
    an_operation,
)
from tests.rollouts.bad_input import a_document
from tests.rooms import ROOT


@pytest.fixture
def ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """While a command waits, the workers bring everything to its end."""

    def work(_: float) -> None:
        Plan.objects.filter(state="draft").exclude(waiting_for="").update(state="promoted")
        Operation.objects.update(state="finished")
        OperationNode.objects.update(state="done")

    monkeypatch.setattr(waits.time, "sleep", work)


def halted_plan(name: str) -> Plan:
    plan = a_plan(a_fleet(name))
    Plan.objects.filter(pk=plan.pk).update(state=PlanState.HALTED, write_intended_at=NOON)
    return plan


def test_every_example_of_the_documents_runs(signed_in, run, live_server, monkeypatch, tmp_path, ends_at_once):
    fleet = a_fleet("prod", nodes=40)
    a_pending_pod(fleet, "train-0")
    a_case(fleet.nodes.last())
    plans = {
        "start": a_draft(a_fleet("a")),
        "halt": a_plan(a_fleet("b")),
        "resume": halted_plan("c"),
        "rollback": halted_plan("d"),
    }
    shown, finding = a_plan(a_fleet("e")), a_finding(fleet, severity="critical")
    signed_in()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "october.yaml").write_text(yaml.safe_dump(a_document(a_fleet("f"))))
    secret = tmp_path / "token"
    secret.touch(mode=0o600)
    secret.write_text(os.environ["QUARTERDECK_TOKEN"])
    documents = "\n".join(path.read_text() for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))])
    examples = re.findall(r"^ +((?:kubectl |bin/)?quarterdeck .*)$", documents, re.MULTILINE)

    ended = {}
    for example in examples:
        example = example.removeprefix("kubectl ").removeprefix("bin/")
        verb = example.split()[2]
        ids = {"7": plans.get(verb, shown).pk, "12": finding.pk, "https://quarterdeck.example.com": live_server.url}
        ended[example] = run(*(str(ids.get(word, word)) for word in shlex.split(example)[1:]))

    assert len(examples) > 15
    assert {example: end.err for example, end in ended.items() if end.code} == {}


@pytest.mark.parametrize("kind", Kind)
def test_every_column_is_a_field_of_the_answer(kind):
    answer = rest_paths()[f"/api/v1/{kind}"]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    row = _component(answer)["properties"]["results"]["items"]
    for column in COLUMNS[kind].values():
        place = row
        for part in column.split(".") if isinstance(column, str) else ():
            place = _component(place)["properties"][part]


def _component(place: dict) -> dict:
    """Returns the component that a place of the schema refers to, alone or with words of its own."""
    (reference,) = place.get("allOf", [place])
    return rest_schema()["components"]["schemas"][reference["$ref"].rpartition("/")[2]]


def test_a_gpu_of_unknown_use_is_shown_as_unknown(capsys):
    where = {"id": 1, "name": "prod"}
    gpu = {"cluster": where, "node": where, "index": 0, "product": "H100", "uuid": "GPU-1", "allocations": None}

    show(Kind.GPUS, [gpu], Format.TABLE)

    assert capsys.readouterr().out.splitlines()[1].split()[-2:] == ["GPU-1", "unknown"]


def test_a_list_is_a_table_json_or_yaml(signed_in):
    a_fleet("prod", nodes=3)
    run = signed_in("viewer")

    table, as_json, as_yaml = (run("get", "nodes", "-o", form) for form in ("table", "json", "yaml"))

    lines = table.out.splitlines()
    assert lines[0].split()[:3] == ["NAME", "CLUSTER", "STATE"]
    assert [line.split()[:3] for line in lines[1:]] == [[f"gpu-{number}", "prod", "ready"] for number in range(3)]
    assert [row["name"] for row in json.loads(as_json.out)] == ["gpu-0", "gpu-1", "gpu-2"]
    assert yaml.safe_load(as_yaml.out) == json.loads(as_json.out)


def test_a_list_of_several_pages_is_complete(signed_in, monkeypatch):
    a_fleet("prod", nodes=5)
    monkeypatch.setattr("cli.server.PAGE", 2)
    run = signed_in("viewer")

    assert len(json.loads(run("get", "nodes", "-o", "json").out)) == 5
    assert len(json.loads(run("get", "nodes", "-o", "json", "--limit", "3").out)) == 3


def test_a_stale_cluster_is_named(signed_in):
    fleet = a_fleet("prod")
    fleet.bookmarks.update(last_seen_at=NOON - timedelta(hours=1))

    assert "Not live: prod was last seen at 2026-11-21T11:00:00Z." in signed_in("viewer")("get", "nodes").err


def test_a_table_has_no_control_characters(signed_in):
    a_finding(a_fleet("prod"), title="\x1b[2J\x9bGone\nnext")

    out = signed_in("viewer")("get", "findings").out

    assert "[2J Gone next" in out
    assert out.count("\n") == 2
    assert out.replace("\n", "").isprintable()


def test_why_names_the_reason(signed_in):
    a_pending_pod(a_fleet("prod"), "train-0", gpus=64)
    plan = halted_plan("b")
    run = signed_in("viewer")

    pod, halted = run("why", "pod", "team-a/train-0"), run("why", "plan", str(plan.pk))

    assert (pod.code, halted.code) == (0, 0)
    assert "team-a/train-0 in prod: pending" in pod.out
    assert "Nodes as of 2026-11-21T12:00" in pod.out
    assert "It was halted." in halted.out
    assert run("why", "pod", "team-a/other").code == 1


def test_a_halt_is_recorded_once_for_a_key(signed_in):
    plan = a_plan()
    run = signed_in()
    command = ("plan", "halt", str(plan.pk), "--reason", "ECC errors", "--key", "k1")

    ended = [run(*command).code for _ in range(2)]

    assert ended == [0, 0]
    assert Command.objects.get(plan=plan, verb="halt").reason == "ECC errors"


def test_an_operation_shows_every_list_of_its_impact():
    assert set(NAMED) == set(LISTS)


def test_an_operation_shows_its_impact_and_needs_a_yes(signed_in):
    a_fleet("prod")
    run = signed_in()
    command = ("node", "drain", "gpu-0", "--cluster", "prod", "--reason", "Xid 79", "--unmanaged")

    refused = run(*command)
    assert (refused.code, Operation.objects.count()) == (2, 0)
    assert "1 node, 8 GPUs" in refused.err
    assert "add --yes" in refused.err

    assert run(*command, "--yes").code == 0
    operation = Operation.objects.get()
    assert (operation.kind, operation.reason, operation.options["unmanaged"]) == ("drain", "Xid 79", True)
    assert [node.node_name for node in operation.nodes.all()] == ["gpu-0"]


def test_an_operation_on_many_nodes_needs_their_number(signed_in):
    a_fleet("prod", nodes=11)
    run = signed_in()
    names = [f"gpu-{number}" for number in range(11)]
    command = ("node", "quarantine", *names, "--cluster", "prod", "--reason", "Xid 79", "--yes")

    refused = run(*command, "--count", "10")
    assert (refused.code, Operation.objects.count()) == (2, 0)
    assert "add --count 11" in refused.err

    assert run(*command, "--count", "11").code == 0


def test_a_pod_that_comes_after_the_impact_was_shown_keeps_the_node(signed_in, monkeypatch):
    fleet = a_fleet("prod")
    node = Node.objects.get(cluster=fleet, name="gpu-0")
    monkeypatch.setattr(node_operations, "_confirm", lambda *_, **__: a_pod(node))

    refused = signed_in()("node", "drain", "gpu-0", "--cluster", "prod", "--reason", "Xid 79", "--yes")

    assert (refused.code, Operation.objects.count()) == (1, 0)
    assert "The impact changed since you saw it. It is now: 1 node, 8 GPUs, 1 GPU pod evicted" in refused.err


def test_a_mute_ends_after_the_given_time(signed_in):
    finding = a_finding(a_fleet("prod"))

    assert signed_in()("finding", "mute", str(finding.pk), "--for", "8h", "--reason", "Known").code == 0

    assert Mute.objects.get().until.hour == 20


def test_an_acknowledgement_assigns_the_finding(signed_in):
    finding = a_finding(a_fleet("prod"))

    assert signed_in()("finding", "ack", str(finding.pk)).code == 0

    assert Finding.objects.get(pk=finding.pk).assigned_to == "a-operator"


def test_waiting_ends_with_failed_nodes_or_at_its_timeout(signed_in, monkeypatch):
    fleet = a_fleet("prod")
    monkeypatch.setattr(waits.time, "sleep", lambda _: OperationNode.objects.update(state="failed"))
    run = signed_in()
    command = ("node", "drain", "gpu-0", "--cluster", "prod", "--reason", "Xid 79", "--yes", "--wait")

    late = run(*command, "--timeout", "0s")
    Operation.objects.all().delete()
    an_operation(fleet, "gpu-1")
    monkeypatch.setattr(
        waits.time,
        "sleep",
        lambda _: (OperationNode.objects.update(state="failed"), Operation.objects.update(state="finished")),
    )
    failed = run(*command)

    assert (late.code, "It continues in the background." in late.err) == (4, True)
    assert (failed.code, "failed: 1" in failed.err) == (3, True)


def test_waiting_ends_where_a_person_must_act(signed_in):
    plan = halted_plan("b")

    ended = signed_in()("plan", "resume", str(plan.pk), "--reason", "Go on", "--wait", "--timeout", "0s")

    assert ended.code in {3, 4}


def test_a_document_is_compared_applied_and_compared_again(signed_in, tmp_path):
    file, document = tmp_path / "october.yaml", a_document(a_fleet("f"), title="October")
    run = signed_in()

    def steps(content) -> list[str]:
        file.write_text(yaml.safe_dump(content))
        return [run("plan", *words).out for words in (("diff", str(file)), ("apply", str(file), "--yes"))]

    new, drafted = steps(document)
    same, unchanged = steps(document)
    changed, edited = steps({**document, "to": "575.57.08"})

    plan = Plan.objects.get()
    assert (new, drafted) == ("New draft: October\n", f"Plan {plan.pk}, revision 1: drafted.\n")
    assert (same, unchanged) == (
        f"Plan {plan.pk}, October: no differences\n",
        f"Plan {plan.pk}, revision 1: unchanged.\n",
    )
    assert "  to\n" in changed
    assert "  + 575.57.08" in changed
    assert edited == f"Plan {plan.pk}, revision 2: edited.\n"
    assert plan.to_version == "575.57.08"


def test_an_application_that_nobody_confirms_changes_nothing(signed_in, tmp_path):
    file = tmp_path / "october.yaml"
    file.write_text(yaml.safe_dump(a_document(a_fleet("f"))))
    run = signed_in()

    refused, missing = run("plan", "apply", str(file)), run("plan", "diff", str(tmp_path / "none.yaml"))

    assert (refused.code, missing.code) == (2, 2)
    assert "add --yes" in refused.err
    assert "No such file" in missing.err
    assert not Plan.objects.exists()


def test_the_report_shows_who_let_gpus_idle(signed_in):
    cluster = a_fleet("prod")
    some_usage(cluster, str(cluster.pools.get().pk), ("ml", "Job/train"), used=10, idle=30)
    run = signed_in("viewer")

    shown, as_json = run("report"), run("report", "-o", "json")

    assert shown.out.split()[:2] == ["NAMESPACE", "WORKLOAD"]
    assert "GPU-hours, idle:" in shown.out
    assert json.loads(as_json.out)["workloads"][0]["cluster"] == "prod"


def test_a_person_signs_in_by_the_browser(transactional_db, live_server, run, monkeypatch):
    ada, codes, steps = a_user("ada", role="viewer"), [], iter(["early", "confirm"])

    def in_the_browser(_: float) -> None:
        """The person needs one poll to read the page."""
        code = DeviceAuthorization.objects.get()
        codes.append(code.client)
        if next(steps) == "confirm":
            now = timezone.now()
            confirm(code, ada, name="cli", permissions=["see"], expires_at=now + timedelta(days=30), now=now)

    monkeypatch.setattr("cli.device_login.time.sleep", in_the_browser)
    ended = run("login", "--server", live_server.url)

    shown = re.search(r"Open (\S+)\nConfirm the code (\S+) there\. It expires in 10 minutes\.", ended.err)
    assert shown
    assert shown[1] == f"{live_server.url}/device?user_code={shown[2]}"
    assert (len(codes), codes[0]) == (2, f"quarterdeck on {socket.gethostname()}"[:60])
    assert ended.out.startswith(f"Signed in to {live_server.url} as ada.")
    assert re.search(r"The token expires: \d{4}-\d\d-\d\d \d\d:\d\d UTC\n$", ended.out)
    assert run("get", "nodes", "-o", "json").out == "[]\n"


def test_a_sign_in_outlasts_a_restart_of_the_server(monkeypatch):
    answered = [{"access_token": "qd_token"}, Failure("No answer.", ExitCode.NO_ANSWER)]

    def post(_, path: str, __) -> dict:
        if path == "device-authorizations":
            codes = {"device_code": "x", "user_code": "y", "verification_uri_complete": "z"}
            return codes | {"expires_in": 600, "interval": 5}
        answer = answered.pop()
        if isinstance(answer, Failure):
            raise answer
        return answer

    monkeypatch.setattr("cli.device_login.time.sleep", lambda _: None)
    monkeypatch.setattr("cli.device_login.Server.post", post)

    assert token_from_browser("https://example.com", "") == "qd_token"


@pytest.mark.parametrize(
    ("answer", "sentence"), [("denied", "was denied in the browser"), ("expired", "Nobody confirmed the code in time")]
)
def test_a_sign_in_without_a_confirmation_ends(transactional_db, live_server, run, monkeypatch, answer, sentence):
    def in_the_browser(_: float) -> None:
        code = DeviceAuthorization.objects.get()
        if answer == "denied":
            deny(code, a_user("ada"), now=timezone.now())
        else:
            DeviceAuthorization.objects.update(expires_at=timezone.now())

    monkeypatch.setattr("cli.device_login.time.sleep", in_the_browser)
    ended = run("login", "--server", live_server.url)

    assert ended.code == 1
    assert sentence in ended.err
