"""Recognition of operating system, runtime and distribution. Pure.

A node's `osImage` is PRETTY_NAME of its os-release; before OpenShift 4.19, RHCOS adds the OpenShift version.
"""

import re
from dataclasses import dataclass

NAMES = (  # The first match counts: RHCOS is also named Red Hat Enterprise Linux.
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
NAMED = {"rke2": "RKE2", "k3s": "K3s", "k0s": "k0s", "gke": "GKE", "eks": "EKS", "aks": "AKS"}  # names for people


@dataclass(frozen=True)
class System:
    name: str = ""  # ubuntu, rhel, rhcos, rocky, amazon, sles, azure; blank: not in the matrix
    version: str = ""  # 24.04, 9.4, 15 SP7; blank: RHCOS, or unknown
    title: str = ""  # name for people


def read_system(os_image: str) -> System:
    for name, begins, title in NAMES:
        if os_image.startswith(begins):
            match = VERSION.search(os_image)
            version = match[0] if match and name != "rhcos" else ""
            return System(name, version, f"{title} {version}".strip())
    return System(title=os_image)


def openshift_of(os_image: str) -> str:
    """Returns the version: Red Hat Enterprise Linux CoreOS 418.94.202503… → 4.18. Blank: not included."""
    match = OPENSHIFT.search(os_image)
    return f"{match[1]}.{match[2]}" if match else ""


def read_runtime(text: str) -> tuple[str, str]:
    """Splits a runtime: containerd://2.1.4 → containerd, 2.1.4."""
    name, _, version = text.partition("://")
    return name, version


def distribution_of(kubernetes: str) -> str:
    """Returns the distribution: v1.33.5+rke2r1 → rke2. Blank: unknown."""
    return next((name for mark, name in DISTRIBUTIONS if mark in kubernetes), "")
