from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar


class Ailment(StrEnum):
    IMAGE = "image"  # the registry has no such tag
    HEADERS = "headers"  # the driver container finds no headers of the kernel
    NOUVEAU = "nouveau"  # the driver manager cannot unload nouveau
    RUNTIME = "runtime"  # the container runtime knows no handler `nvidia`
    VALIDATION = "validation"  # one init container of the validator fails
    CRASH = "crash"  # the operand's container ends, again and again


DRIVER = "driver"
USUAL = {
    Ailment.IMAGE: DRIVER,
    Ailment.HEADERS: DRIVER,
    Ailment.NOUVEAU: DRIVER,
    Ailment.VALIDATION: "nvidia-operator-validator",
    Ailment.CRASH: "nvidia-device-plugin-daemonset",
}


@dataclass(frozen=True, slots=True)
class BrokenOperand:
    """An operand does not come up where all that is said here holds. What runs of it is replaced once: then it shows.

    `app`: `driver`, or the pods' label; empty: the one that has this ailment in life. `version`: of the image's tag.
    `container`: the init container of a validation. `says`: the last line of a crash, instead of the usual one.
    """

    how: Ailment
    app: str = ""
    node: str = ""
    kernel: str = ""
    version: str = ""
    container: str = "cuda-validation"
    says: str = ""
    key: ClassVar[str] = "broken_operand"

    def __post_init__(self) -> None:
        object.__setattr__(self, "how", Ailment(self.how))
        object.__setattr__(self, "app", self.app or USUAL.get(self.how, ""))

    @property
    def needs_reboot(self) -> bool:
        """A driver that is loaded stays; these are what a machine shows after it was started anew."""
        return self.app == DRIVER and self.how is not Ailment.CRASH and not self.version

    def strikes(self, *, app: str, node: str, kernel: str, version: str) -> bool:
        asked = ((self.app, app), (self.node, node), (self.kernel, kernel), (self.version, version))
        return all(wanted in ("", has) for wanted, has in asked)
