"""Which tests share a process where a run has several."""

from xdist.scheduler import LoadFileScheduling

BROWSER = "tests/browser/"


class OneBrowser(LoadFileScheduling):
    """A file to a process, and all that need a browser to one: each process that has some starts a stack for them."""

    def _split_scope(self, nodeid: str) -> str:
        return BROWSER if nodeid.startswith(BROWSER) else super()._split_scope(nodeid)
