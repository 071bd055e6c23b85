"""What the tests of the matrix share: one combination that is all right, and what is said of another."""

from dataclasses import replace
from datetime import date

from gpu.compatibility import Facts, Support, Verdict, evaluate

TODAY = date(2026, 11, 21)
GOOD = Facts(
    operator="26.7.0",
    mode="ClusterPolicy",
    kubernetes="v1.36.4",
    kubelet="v1.36.4",
    os="Ubuntu 24.04.2 LTS",
    kernel="6.8.0-64-generic",
    runtime="containerd://2.3.1",
    driver="595.91.07",
    product="NVIDIA-H200",
    toolkit="1.20.0",
)


def verdicts(*, today: date = TODAY, **given: object) -> list[Verdict]:
    """Of the good combination with a few facts changed."""
    return evaluate(replace(GOOD, **given), today=today)


def verdict(rule: str, *, subject: str = "", today: date = TODAY, **given: object) -> Verdict:
    (found,) = [
        each for each in verdicts(today=today, **given) if each.rule == rule and each.subject.startswith(subject)
    ]
    return found


def answer(rule: str, *, subject: str = "", today: date = TODAY, **given: object) -> Support:
    return verdict(rule, subject=subject, today=today, **given).answer


def known_bad(**given: object) -> list[str]:
    return [each.subject for each in verdicts(**given) if each.answer is Support.KNOWN_BAD]
