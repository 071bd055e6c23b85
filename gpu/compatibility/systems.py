"""Which operating system, runtime and distribution a node or cluster names. Pure.

A node's `osImage` is PRETTY_NAME of its os-release; RHCOS before OpenShift 4.19 puts the OpenShift version into it.
"""

import re
from dataclasses import dataclass

NAMES = (  # the first that fits: RHCOS calls itself Red Hat Enterprise Linux too
    ("rhcos", "Red Hat Enterprise Linux CoreOS", "Red Hat CoreOS"),
    ("rhel", "Red Hat Enterprise Linux", "RHEL"),
    ("ubuntu", "Ubuntu", "Ubuntu"),
    ("rocky", "Rocky Linux", "Rocky Linux"),
    ("amazon", "Amazon Linux", "Amazon Linux"),
    ("sles", "SUSE Linux Enterprise Server", "SLES"),
    ("azure", "Microsoft Azure Linux", "Azure Linux"),
)
VERSION = re.compile(r"\d+(?:\.\d+)?(?: SP\d)?")
OPENSHIFT = re.compile(r"CoreOS (4)(\d{2})\.")
DISTRIBUTIONS = (("+rke2", "rke2"), ("+k3s", "k3s"), ("+k0s", "k0s"), ("-gke.", "gke"), ("-eks-", "eks"))
NAMED = {"rke2": "RKE2", "k3s": "K3s", "k0s": "k0s", "gke": "GKE", "eks": "EKS", "aks": "AKS"}  # as a person says it


@dataclass(frozen=True)
class System:
    name: str = ""  # ubuntu, rhel, rhcos, rocky, amazon, sles, azure; blank: none that the matrix knows
    version: str = ""  # 24.04, 9.4, 15 SP7; blank: RHCOS, or it does not say
    title: str = ""  # as a person says it


def read_system(os_image: str) -> System:
    for name, begins, title in NAMES:
        if os_image.startswith(begins):
            found = VERSION.search(os_image)
            version = found[0] if found and name != "rhcos" else ""
            return System(name, version, f"{title} {version}".strip())
    return System(title=os_image)


def openshift_of(os_image: str) -> str:
    """Red Hat Enterprise Linux CoreOS 418.94.202503… → 4.18. Blank: it does not say."""
    found = OPENSHIFT.search(os_image)
    return f"{found[1]}.{found[2]}" if found else ""


def read_runtime(text: str) -> tuple[str, str]:
    """containerd://2.1.4 → containerd, 2.1.4."""
    name, _, version = text.partition("://")
    return name, version


def distribution_of(kubernetes: str) -> str:
    """v1.33.5+rke2r1 → rke2. Blank: it does not say."""
    return next((name for mark, name in DISTRIBUTIONS if mark in kubernetes), "")
