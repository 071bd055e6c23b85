from dataclasses import dataclass
from typing import ClassVar

DRIVER = "driver"


@dataclass(frozen=True, slots=True)
class RefusedPods:
    """An admission webhook refuses the pod that a DaemonSet makes for one node: it wants one more than it has.

    `app`: `driver`, or the pods' label. `webhook`: what it is called.
    """

    node: str
    app: str = DRIVER
    webhook: str = "validate.policy.example.com"
    key: ClassVar[str] = "refused_pods"

    @property
    def words(self) -> str:
        return f'admission webhook "{self.webhook}" denied the request: pods on {self.node} are not allowed'
