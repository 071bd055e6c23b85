"""The real stack, with a recorder between Quarterdeck and its API server."""

from pathlib import Path

from demo.kept import DATABASE
from demo.parts import QUEUES
from demo.stack import Stack
from tests.flows.proxy import CONTEXT, Proxy
from tests.migrated import put_migrated

# Whom deploy/rbac/quarterdeck.yaml gives its rights: all that the flows see Quarterdeck do, it does with these alone.
QUARTERDECK = "system:serviceaccount:quarterdeck:quarterdeck"


class MigratedStack(Stack):
    """A stack whose tables are those of the tests' own databases."""

    def _migrate(self) -> None:
        if not self._database_url:
            put_migrated(self.folder / DATABASE)
        super()._migrate()


class RecordedStack(MigratedStack):
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
