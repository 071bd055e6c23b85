"""The real stack, with a recorder between Quarterdeck and its API server."""

from pathlib import Path

from demo.parts import QUEUES
from demo.stack import Stack
from tests.flows.proxy import CONTEXT, Proxy

# Whom deploy/rbac/quarterdeck.yaml gives its rights: all that the flows see Quarterdeck do, it does with these alone.
QUARTERDECK = "system:serviceaccount:quarterdeck:quarterdeck"


class RecordedStack(Stack):
    """Everything Quarterdeck asks of the cluster goes through `proxy`; the flows themselves ask the API server."""

    proxy: Proxy

    def way_in(self) -> tuple[Path, str]:
        self.proxy = Proxy(self.kubeconfig, self.fleet.context, self.folder, as_user=QUARTERDECK)
        self.proxy.start()
        return self.proxy.kubeconfig, CONTEXT

    def stop(self) -> None:
        super().stop()
        if hasattr(self, "proxy"):
            self.proxy.stop()

    def bugs(self) -> list[str]:
        """What a task of a worker died of, so far: lines of its log."""
        return [line for queue in QUEUES for line in self.logs(queue).splitlines() if "raised unexpected" in line]
