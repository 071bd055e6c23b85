"""Plans as documents, from a shell."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from rollouts.models import Plan
from tests.callers import ada, bob, now  # noqa: F401 (fixtures)
from tests.make import NOON, a_draft, a_fleet, an_image_pull
from tests.rollouts.bad_input import BOMB, REFUSED, SAID, a_fleet_in_tiers, as_text
from tests.rollouts.web.test_document_page import TEXT

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now", "ada")]


def manage(*args: str) -> str:
    out = StringIO()
    call_command("plan", *args, stdout=out)
    return out.getvalue()


@pytest.fixture
def file(tmp_path) -> str:
    path = tmp_path / "plan.yaml"
    path.write_text(TEXT.format(a_fleet().name))
    return str(path)


def test_a_preview_names_the_nodes_of_each_wave_and_writes_nothing(file):
    said = manage("preview", file, "--as", "ada")

    idle = "Costs nobody any work: all 2 nodes are idle."
    assert f"Rest: 2 nodes, at most 1 at once. {idle}\n  wave 1: gpu-1\n  wave 2: gpu-2\n" in said
    assert said.endswith(" is not in it.\nNothing was changed: this was a preview.\n")
    assert "\n3 nodes in all. About " in said
    assert not Plan.objects.exists()


def test_a_preview_names_the_field_of_what_stands_against_it(tmp_path):
    text = TEXT.format(a_fleet().name).replace("kind: pool", "kind: pool, selector: tier=none")
    (tmp_path / "plan.yaml").write_text(text)

    said = manage("preview", str(tmp_path / "plan.yaml"), "--as", "ada")

    assert "blocker: stages[1].selector: Rest takes no node. Widen its selector, or remove the stage.\n" in said


def test_apply_drafts_and_the_draft_gives_its_document_back(file, tmp_path):
    said = manage("apply", file, "--as", "ada")
    plan = Plan.objects.get()
    (tmp_path / "again.yaml").write_text(manage("document", str(plan.pk)))
    again = manage("apply", str(tmp_path / "again.yaml"), "--as", "ada")

    assert said == f"drafted plan {plan.pk}, h200 to 580.126.20. It is a draft: nothing has started.\n"
    assert again.startswith(f"unchanged plan {plan.pk}")
    assert (plan.author, plan.state) == ("ada", "draft")


@pytest.mark.usefixtures("bob")
def test_what_is_refused_says_that_nothing_was_changed(file, tmp_path):
    (tmp_path / "bad.yaml").write_text("cluster: 3")
    (tmp_path / "bomb.yaml").write_text(BOMB)
    large = tmp_path / "large.yaml"
    with large.open("wb") as out:
        out.truncate(50_000_000)

    for args, words in (
        ((file, "--as", "bob"), "Nothing was changed. To draft or change a plan you need the role"),
        ((file, "--as", "nobody"), "Nobody here is called nobody."),
        ((str(tmp_path / "bad.yaml"), "--as", "ada"), "cluster: This has to be text"),
        ((str(tmp_path / "none.yaml"), "--as", "ada"), "cannot be read"),
        ((str(tmp_path / "bomb.yaml"), "--as", "ada"), "line 2: Aliases"),
        ((str(large), "--as", "ada"), "line 1: The file is larger than 64 KiB."),
    ):
        with pytest.raises(CommandError, match=words.replace(".", r"\.")):
            manage("apply", *args)
    with pytest.raises(CommandError, match="There is no plan 99"):
        manage("document", "99")
    assert not Plan.objects.exists()


@pytest.mark.parametrize("what", REFUSED)
def test_what_makes_no_plan_is_refused_with_its_field(tmp_path, what: str):
    given, field, words = REFUSED[what]
    (tmp_path / "plan.yaml").write_text(as_text(a_fleet_in_tiers(), **given))

    with pytest.raises(CommandError) as refused:
        manage("apply", str(tmp_path / "plan.yaml"), "--as", "ada")

    first, line = str(refused.value).splitlines()
    assert first == "Nothing was changed."
    assert line.startswith(f"{field}: ")
    assert words in line
    assert not Plan.objects.exists()


@pytest.mark.parametrize("what", SAID)
def test_what_a_plan_could_not_do_is_said_with_its_field(tmp_path, what: str):
    given, kind, field, words = SAID[what]
    (tmp_path / "plan.yaml").write_text(as_text(a_fleet_in_tiers(), **given))

    said = manage("preview", str(tmp_path / "plan.yaml"), "--as", "ada")

    of_it = [line for line in said.splitlines() if line.startswith(kind.removesuffix("s")) and f": {field}: " in line]
    assert [words in line for line in of_it].count(True) == 1, said
    assert not Plan.objects.exists()


def test_what_was_drafted_by_hand_is_left_alone(file, tmp_path):
    plan = a_draft(a_fleet("west"))
    path = tmp_path / "west.yaml"
    path.write_text(TEXT.format("west") + f"title: {plan.title}\n")

    with pytest.raises(CommandError, match="and not by a document"):
        manage("apply", str(path), "--as", "ada")


def test_pulling_says_what_was_asked_and_pulled_what_became_of_it():
    plan = a_draft()
    an_image_pull(plan, "pulled", "failed", ended_at=NOON)

    said = manage("pulled", str(plan.pk))

    assert said.startswith(f"{plan.to_version} on 2 nodes: 1 pulled, 1 failed.\n  gpu-1, ")
    with pytest.raises(CommandError, match=r"Nothing was made. 3 nodes have no driver pod that tells the image"):
        manage("pull", str(plan.pk), "--as", "ada", "--reason", "Before the window.")


@pytest.mark.usefixtures("bob")
def test_who_may_not_run_plans_pulls_no_image():
    plan = a_draft()

    with pytest.raises(CommandError, match="Nothing was made"):
        manage("pull", str(plan.pk), "--as", "bob", "--reason", "x")


@pytest.mark.parametrize("reason", ["", "  "])
def test_without_a_reason_no_image_is_pulled(reason: str):
    plan = a_draft()

    with pytest.raises(CommandError, match="Say why, with --reason"):
        manage("pull", str(plan.pk), "--as", "ada", "--reason", reason)
