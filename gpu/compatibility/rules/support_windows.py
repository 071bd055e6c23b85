"""Evaluates maintenance: Kubernetes or OpenShift, and the container runtime.

CRI-O has Kubernetes' version numbers and ends with it (its README, Compatibility matrix). A distribution may
maintain a version longer than its project, so the project's end gives no verdict there.
"""

from collections.abc import Iterator
from datetime import date

from gpu.compatibility.case import Case
from gpu.compatibility.entries import SOON, Life
from gpu.compatibility.ranges import minor, numbers
from gpu.compatibility.systems import NAMED
from gpu.compatibility.verdicts import Support, Verdict

RULE = "life"
TITLES = {"kubernetes": "Kubernetes", "openshift": "OpenShift", "containerd": "containerd", "cri-o": "CRI-O"}
LOOK_UP = {
    "kubernetes": "https://kubernetes.io/releases/",
    "openshift": "https://access.redhat.com/support/policy/updates/openshift",
    "containerd": "https://containerd.io/releases/",
    "cri-o": "https://kubernetes.io/releases/",
}


def evaluate(case: Case) -> Iterator[Verdict]:
    facts = case.facts
    if case.is_openshift:
        yield from _product_verdicts(case, "openshift", case.openshift.version)
        return  # Red Hat fixes its Kubernetes and its CRI-O as long as OpenShift
    yield from _product_verdicts(case, "kubernetes", facts.kubernetes)
    if facts.runtime_name in {"containerd", "cri-o"}:
        yield from _product_verdicts(case, facts.runtime_name, facts.runtime_version)


def _product_verdicts(case: Case, what: str, version: str) -> Iterator[Verdict]:
    """Yields no verdict for an unknown version; the rules of NVIDIA's ranges report it."""
    if not numbers(version):
        return
    table = "kubernetes" if what == "cri-o" else what
    lives = [life for life in case.matrix.lives if life.of == table]
    subject = f"{TITLES[what]} {_minor_text(version)}, life cycle"
    if life := next((each for each in lives if minor(each.version) == minor(version)), None):
        yield _life_verdict(case, life, what, subject, lives)
    elif lives and minor(version) < min(minor(each.version) for each in lives):
        oldest = min(lives, key=lambda each: minor(each.version))
        sentence = (
            f"{TITLES[what]} {_minor_text(version)} is older than {oldest.version}, which has reached its end of life."
        )
        yield oldest.verdict(RULE, subject, Support.UNSUPPORTED, sentence, _update(what, lives, case.today))
    else:
        sentence = (
            f"The matrix does not contain {TITLES[what]} {_minor_text(version)}, so the end of its fixes is unknown."
        )
        yield Verdict(RULE, subject, Support.UNKNOWN, sentence, f"Check {LOOK_UP[what]}")


def _life_verdict(case: Case, life: Life, what: str, subject: str, lives: list[Life]) -> Verdict:
    name = f"{TITLES[what]} {_minor_text(life.version)}"
    if life.ends is None:
        sentence = f"The end of fixes for {name} is unknown."
        return life.verdict(RULE, subject, Support.UNKNOWN, sentence, f"Check {LOOK_UP[what]}")
    if case.today > life.ends:
        return _ended_verdict(case, life, name, subject, _update(what, lives, case.today))
    if life.ends - case.today <= SOON:
        days = (life.ends - case.today).days
        sentence = f"{name} reaches its end of life on {life.ends}, in {days} days."
        return life.verdict(RULE, subject, Support.DEPRECATED, sentence, _update(what, lives, case.today))
    return life.verdict(RULE, subject, Support.SUPPORTED, f"{name} gets fixes until {life.ends}.")


def _ended_verdict(case: Case, life: Life, name: str, subject: str, update: str) -> Verdict:
    ended = f"{name} reached its end of life on {life.ends}"
    if life.extended and case.today <= life.extended:
        sentence = f"{ended}; with Extended Update Support it gets fixes until {life.extended}."
        return life.verdict(RULE, subject, Support.UNKNOWN, sentence, f"Check your subscription. {update}")
    if vendor := NAMED.get(case.facts.distribution):
        sentence = f"{ended} at its project. It is unknown whether {vendor} still fixes it."
        return life.verdict(RULE, subject, Support.UNKNOWN, sentence, f"Check {vendor}'s release calendar.")
    sentence = f"{ended}. It no longer gets fixes, not even for CVEs."
    return life.verdict(RULE, subject, Support.UNSUPPORTED, sentence, update)


def _update(what: str, lives: list[Life], today: date) -> str:
    alive = [f"{life.version} until {life.ends}" for life in lives if life.ends and life.ends - today > SOON]
    fixed = f": {', '.join(alive)}" if alive else ""
    return f"Update {TITLES[what]} to a maintained version{fixed}. Check first that NVIDIA lists it for your operator."


def _minor_text(version: str) -> str:
    return ".".join(str(part) for part in minor(version))
