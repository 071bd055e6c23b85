"""The page of a rule: its trial and the limits of pools, each by who may."""

import pytest
from django.urls import reverse

from health.inbox import shadow_mode
from health.inbox.rulebook import every_rule
from health.models import Finding, PoolLimits, RuleShadow
from health.rules.gpus.hot import Hot
from health.rules.idle_gpus import IDLE_HOURS
from health.rules.pods_pending_long import MINUTES
from health.web import rule_page
from tests import make
from tests.make import NOON
from tests.pages import HOSTILE, Page, page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]
HOT = "/findings/rules/gpu-hot"


@pytest.fixture
def root():
    return visiting(make.a_user("root", role="admin"))


@pytest.fixture
def bob():
    return visiting(make.a_user("bob", role="viewer"))


@pytest.fixture
def pool():
    return make.a_pool(make.a_cluster("eu-1"), "h100")


def limits(pool, **given) -> dict:
    asked = {"warn": "75", "critical": "80", "warn_after_s": "180", "critical_after_s": "60", "reason": "Old fans."}
    return {"pool": str(pool.pk), **asked, **given}


def test_it_says_where_nothing_that_it_reads_is_exported(bob, pool):
    """Z23."""
    make.a_node(pool.cluster)
    make.a_source(pool.cluster, exported=["power_watts"])

    assert "No data in eu-1: no metric that it reads is exported there" in page(bob, HOT).text
    assert "0 not exported in 1 cluster" in page(bob, "/findings/rules").text
    assert "No data in" not in page(bob, "/findings/rules/gpu-silent").text


def test_every_rule_has_a_page(bob, pool):
    listed = page(bob, "/findings/rules")

    rules = [link for link in listed.links if link.startswith("/findings/rules/")]
    assert len(rules) > 30
    for link in rules:
        page(bob, link)


def test_each_says_what_to_do_step_by_step(bob, pool):
    finding = make.a_finding(pool.cluster, rule="gpu-hot")

    runbook, there = bob.get(f"/api/v1/findings/{finding.pk}").json()["runbook"], page(bob, HOT)

    assert runbook == f"{HOT}#steps"
    assert "steps" in there.ids
    for step in Hot.steps:
        assert step in there.text
    assert {each["rule"] for each in bob.get("/api/v1/rules").json() if not each["steps"]} == set()


def test_what_is_asked_for_is_of_a_rule_and_a_sentence():
    every = {entry.key: entry.steps for entry in every_rule()}

    for steps in every.values():
        assert len(steps) >= 2
        assert all(step.endswith(".") or ": " in step for step in steps)
        assert all(len(step) <= 200 for step in steps)
        assert len(steps) == len(set(steps))


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("gpu-hot", "bin/manage rules_backtest gpu-hot --days 7"),
        ("node-not-ready", "bin/manage rules_backtest node-not-ready --days 7"),
        (
            "pods-failing",
            "A backtest is not possible. The rule reads nodes, pods. Quarterdeck stores only their present state",
        ),
    ],
)
def test_it_says_how_the_past_is_asked_or_why_it_cannot_be(bob, rule, said):
    assert said in page(bob, f"/findings/rules/{rule}").text


def test_a_rule_that_is_none_is_not_found(bob):
    assert bob.get("/findings/rules/no-such-rule").status_code == 404


def test_a_trial_is_begun_marked_and_ended(root, pool):
    make.a_finding(pool.cluster, rule="gpu-hot", title="It is hot.", opened_at=NOON)
    root.post(f"{HOT}/shadow", {"reason": f"New here. {HOSTILE}"})

    text = page(root, HOT).text
    assert "by root" in text
    assert "It is hot." in text
    assert "still so" in text
    assert "shadow mode: 1 not notified" in page(root, "/findings/rules").text
    assert "It is hot." not in page(root, "/findings").text
    chosen = page(root, f"/findings?finding={Finding.objects.get(is_shadow=True).pk}").text
    assert "Rule in shadow mode : no notification" in chosen

    root.post(reverse("end-rule-shadow", args=[RuleShadow.objects.get().pk]), {"reason": "It is right."})
    assert "It is hot." in page(root, "/findings").text


def test_who_may_not_is_told_which_role_it_takes_and_changes_nothing(bob, pool):
    assert "you need the role" in page(bob, HOT).text

    bob.post(f"{HOT}/shadow", {"reason": "x"})
    bob.post(f"{HOT}/limits", limits(pool))

    assert not RuleShadow.objects.exists()
    assert not PoolLimits.objects.exists()


def test_what_was_written_of_a_trial_is_said_beside_the_refusal(root):
    """Its form is gone by then: there is the one for the other way round."""
    row = shadow_mode.begin("gpu-hot", actor="amy", reason="New.", now=NOON)

    late = root.post(f"{HOT}/shadow", {"reason": "It is hot here."}, follow=True)
    assert "Your text was not saved: It is hot here." in Page(late.content.decode()).text
    shadow_mode.end_shadow_mode(row, actor="amy", reason="Fine.", now=NOON)
    late = root.post(reverse("end-rule-shadow", args=[row.pk]), {"reason": "It is right."}, follow=True)
    assert "Your text was not saved: It is right." in Page(late.content.decode()).text


def test_what_is_never_on_trial_says_why(root):
    assert (
        "This rule reports missing observations or decisions that a plan needs"
        in page(root, "/findings/rules/cluster-not-seen").text
    )


def test_a_pool_is_given_limits_that_are_changed_and_taken_away(root, pool):
    root.post(f"{HOT}/limits", limits(pool))
    row = PoolLimits.objects.get()
    assert "eu-1/h100 75 for 3 min 80 for 1 min Old fans." in page(root, HOT).text

    shown = root.get(f"{HOT}?pool={pool.pk}").content.decode()
    assert f'name="version" value="{row.version}"' in shown
    root.post(f"{HOT}/limits", limits(pool, warn="70", version=row.version))
    assert PoolLimits.objects.get().warn == 70
    shown = root.get(f"{HOT}?pool={pool.pk}").content.decode()
    assert shown.count('name="version" value="2"') == 2
    root.post(reverse("remove-rule-limits", args=[row.pk]), {"reason": "New fans.", "version": "2"})

    assert not PoolLimits.objects.exists()


def test_limits_that_make_no_sense_come_back_with_why(root, pool):
    for given, says in (
        ({"critical": "70"}, "The critical limit must be above the warning limit."),
        ({"warn": "nan"}, "Enter a number."),
        ({"warn": "400"}, "From 40 to 110 °C."),
        ({"reason": ""}, "This field is required."),
    ):
        answer = root.post(f"{HOT}/limits", limits(pool, **given))

        assert answer.status_code == 400
        assert says in answer.content.decode()
    assert not PoolLimits.objects.exists()


def test_a_change_that_comes_second_is_told(root, pool):
    root.post(f"{HOT}/limits", limits(pool))

    answer = root.post(f"{HOT}/limits", limits(pool, warn="60"), follow=True)

    assert "Somebody has changed these limits since you read them" in answer.content.decode()
    assert PoolLimits.objects.get().warn == 75


def test_what_was_written_is_in_the_form_again_for_the_limits_that_there_are_by_now(root, pool):
    root.post(f"{HOT}/limits", limits(pool))
    late = root.post(f"{HOT}/limits", limits(pool, warn="61", reason="The <hall> is warm."))

    shown = late.content.decode()
    assert late.status_code == 409
    assert 'value="61"' in shown
    assert "The &lt;hall&gt; is warm." in shown
    assert 'name="version" value="1"' in shown
    root.post(f"{HOT}/limits", limits(pool, warn="61", version="1"))
    assert PoolLimits.objects.get().warn == 61


def test_what_was_written_for_limits_that_were_taken_away_is_in_the_form_again(root, pool):
    root.post(f"{HOT}/limits", limits(pool))
    PoolLimits.objects.all().delete()

    late = root.post(f"{HOT}/limits", limits(pool, warn="61", version="1"))

    assert late.status_code == 409
    assert 'value="61"' in late.content.decode()
    assert 'name="version" value=""' in late.content.decode()
    root.post(f"{HOT}/limits", limits(pool, warn="61", version=""))
    assert PoolLimits.objects.get().warn == 61


@pytest.mark.parametrize("version", ["", "1"])
def test_what_was_written_for_a_pool_that_is_gone_is_in_the_form_again(root, pool, version):
    other, asked = make.a_pool(pool.cluster, "other"), limits(pool, warn="76", reason="A <warm> hall.")
    pool.delete()

    answer = root.post(f"{HOT}/limits", asked | {"version": version})

    assert answer.status_code == 409
    said = answer.content.decode()
    assert "The chosen pool no longer exists, or you may not see it" in said
    assert 'value="76"' in said
    assert "A &lt;warm&gt; hall." in said
    assert f'<option value="{other.pk}">' in said  # nobody has chosen it
    answer = root.post(f"{HOT}/limits", asked | {"version": "", "pool": ""})
    assert answer.status_code == 400
    assert PoolLimits.objects.count() == 0


def test_why_limits_are_taken_away_is_in_the_form_again(root, pool):
    root.post(f"{HOT}/limits", limits(pool))
    row = PoolLimits.objects.get()
    root.post(f"{HOT}/limits", limits(pool, warn="70", version=row.version))

    late = root.post(
        reverse("remove-rule-limits", args=[row.pk]), {"reason": "New <fans>.", "version": "1"}, follow=True
    )

    shown = late.content.decode()
    assert "New &lt;fans&gt;.</textarea>" in shown
    assert shown.count('name="version" value="2"') == 2


@pytest.mark.parametrize("seen", ["1", "", "x" * 5000])
def test_limits_that_somebody_changed_meanwhile_are_not_taken_away(root, pool, seen):
    root.post(f"{HOT}/limits", limits(pool))
    row = PoolLimits.objects.get()
    root.post(f"{HOT}/limits", limits(pool, warn="70", version=row.version))

    gone = reverse("remove-rule-limits", args=[row.pk])
    answer = root.post(gone, {"reason": "New fans.", "version": seen}, follow=True)

    assert "Somebody has changed these limits since you read them" in answer.content.decode()
    assert PoolLimits.objects.get().warn == 70


def test_a_trial_that_began_before_its_rule_was_never_to_have_one_can_be_ended(root):
    row = RuleShadow.objects.create(rule="gpu-silent", by="x", at=NOON, reason="x")

    assert "End shadow mode" in page(root, "/findings/rules/gpu-silent").text

    root.post(reverse("end-rule-shadow", args=[row.pk]), {"reason": "It is never."})
    assert (
        "This rule reports missing observations or decisions that a plan needs"
        in page(root, "/findings/rules/gpu-silent").text
    )


def test_who_is_admin_of_a_pool_alone_sets_its_limits_and_puts_no_rule_on_trial(pool):
    other = make.a_pool(pool.cluster, "l4")
    amy = visiting(make.a_user("amy", role="admin", on=pool))
    amy.post(f"{HOT}/limits", limits(pool))
    amy.post(f"{HOT}/limits", limits(other))
    amy.post(f"{HOT}/shadow", {"reason": "x"})

    assert [row.pool for row in PoolLimits.objects.all()] == [pool]
    assert not RuleShadow.objects.exists()


def test_what_a_trial_found_in_a_cluster_that_one_does_not_see_is_not_theirs(pool):
    make.a_finding(make.a_cluster("secret"), rule="gpu-hot", title="Hidden.", opened_at=NOON)
    shadow_mode.begin("gpu-hot", actor="root", reason="New.", now=NOON)
    amy = visiting(make.a_user("amy", role="viewer", on=pool.cluster))

    assert "Hidden." not in page(amy, HOT).text


def test_a_trial_that_found_more_than_it_shows_says_so(root, pool, monkeypatch):
    shadow_mode.begin("gpu-hot", actor="root", reason="New.", now=NOON)
    for number in range(3):
        make.a_finding(pool.cluster, f"GPU {number}", rule="gpu-hot", is_shadow=True, opened_at=NOON)

    assert "the newest" not in page(root, HOT).text
    monkeypatch.setattr(rule_page, "SHOWN", 2)
    assert "Findings in shadow mode the newest 2" in page(root, HOT).text


def test_only_limits_that_are_shown_are_changed_and_only_pools_without_any_are_given_some(root, pool):
    """Else who chooses another pool is told that somebody was faster."""
    other = make.a_pool(pool.cluster, "other")
    root.post(f"{HOT}/limits", limits(pool))

    asked, changed = (root.get(path).content.decode() for path in (HOT, f"{HOT}?pool={pool.pk}"))

    assert f'<option value="{pool.pk}"' not in asked
    assert f'<option value="{other.pk}"' in asked
    assert f'<option value="{pool.pk}" selected' in changed
    assert f'<option value="{other.pk}"' not in changed

    root.post(f"{HOT}/limits", limits(other))
    assert "Every pool that you may set limits for has its own" in page(root, HOT).text


@pytest.mark.parametrize(("rule", "limits"), [("idle-gpus", IDLE_HOURS), ("pods-pending-long", MINUTES)])
def test_limits_by_workload_class_are_those_of_the_rule(bob, rule, limits):
    text = bob.get(f"/findings/rules/{rule}").content.decode()
    sentence = text.partition("Its own, in ")[2].partition("Where a node")[0]

    assert sentence
    assert all(f"{number:g}" in sentence for number in limits.values())
