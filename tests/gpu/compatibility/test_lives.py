"""Until when those who make it fix it."""

from datetime import date

import pytest

from gpu.compatibility import Support
from tests.gpu.compatibility.answers import TODAY, answer, verdict, verdicts

RHCOS = {"os": "Red Hat Enterprise Linux CoreOS 9.6.20250826-1 (Plow)", "runtime": "cri-o://1.32.5"}


@pytest.mark.parametrize(
    ("kubernetes", "today", "said"),
    [
        ("v1.36.4", TODAY, Support.SUPPORTED),
        ("v1.35.9", TODAY, Support.SUPPORTED),
        ("v1.35.9", date(2026, 12, 1), Support.DEPRECATED),
        ("v1.35.9", date(2027, 2, 28), Support.DEPRECATED),
        ("v1.35.9", date(2027, 3, 1), Support.UNSUPPORTED),
        ("v1.34.9", TODAY, Support.UNSUPPORTED),
        ("v1.19.1", TODAY, Support.UNSUPPORTED),
        ("v1.38.0", TODAY, Support.UNKNOWN),
    ],
)
def test_the_life_of_a_kubernetes(kubernetes, today, said):
    assert answer("life", subject="Kubernetes", kubernetes=kubernetes, today=today) is said


@pytest.mark.parametrize(
    ("runtime", "subject", "said"),
    [
        ("containerd://1.7.30", "containerd 1.7", Support.UNSUPPORTED),
        ("containerd://2.1.6", "containerd 2.1", Support.UNSUPPORTED),
        ("containerd://2.0.9", "containerd 2.0", Support.SUPPORTED),
        ("containerd://2.4.0", "containerd 2.4", Support.UNKNOWN),
        ("cri-o://1.36.9", "CRI-O 1.36", Support.SUPPORTED),
        ("cri-o://1.33.2", "CRI-O 1.33", Support.UNSUPPORTED),
    ],
)
def test_the_life_of_a_runtime(runtime, subject, said):
    assert answer("life", subject=subject, runtime=runtime) is said


def test_the_end_at_its_project_is_no_answer_for_what_a_vendor_runs():
    said = verdict("life", subject="Kubernetes", kubernetes="v1.33.5-eks-1a2b3c4", distribution="eks")

    assert said.answer is Support.UNKNOWN
    assert "on 2026-06-28 at its project. It is unknown whether EKS still fixes it." in said.sentence


def test_an_end_names_what_is_still_fixed():
    said = verdict("life", subject="Kubernetes", kubernetes="v1.32.9")

    assert "reached its end of life on 2026-02-28" in said.sentence
    assert (
        "to a maintained version: 1.35 until 2027-02-28, 1.36 until 2027-06-28, 1.37 until 2027-10-28." in said.action
    )


@pytest.mark.parametrize(
    ("openshift", "said", "word"),
    [
        ("4.20", Support.SUPPORTED, "gets fixes until 2027-04-21"),
        ("4.19", Support.DEPRECATED, "in 26 days"),
        ("4.18", Support.UNKNOWN, "with Extended Update Support it gets fixes until 2027-02-25"),
        ("4.17", Support.UNSUPPORTED, "end of life on 2026-04-01"),
        ("4.22", Support.UNKNOWN, "The end of fixes for OpenShift 4.22 is unknown"),
    ],
)
def test_openshift_lives_by_red_hat_s_calendar(openshift, said, word):
    found = [each for each in verdicts(**RHCOS, openshift=openshift) if each.rule == "life"]

    assert [each.answer for each in found] == [said]
    assert word in found[0].sentence


def test_nothing_is_said_of_a_version_that_nobody_knows():
    assert [each for each in verdicts(kubernetes="", runtime="") if each.rule == "life"] == []
