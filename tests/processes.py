"""Which tests share a process where a run has several."""

from xdist.scheduler import LoadFileScheduling

# Files that share a stack or a browser: each process that has some of them starts it anew, a stack for 20 s of CPU.
GROUPS = {
    "pages": tuple(
        f"tests/browser/test_{name}" for name in ("found_at_once", "quiet_pages", "scripts_alone", "server_")
    ),
    "browser": ("tests/browser/",),
    "flows": tuple(
        f"tests/flows/test_{name}"
        for name in ("kill_", "observe_allocations", "observe_live", "promote_", "readiness", "rights", "takeover")
    ),
}
ON_THEIR_OWN = ("tests/flows/test_promote_by_policy",)  # a stack of another fleet


class GroupScheduling(LoadFileScheduling):
    """A file to a process, and a group to one."""

    def _split_scope(self, nodeid: str) -> str:
        if not nodeid.startswith(ON_THEIR_OWN):
            for group, files in GROUPS.items():
                if nodeid.startswith(files):
                    return group
        return super()._split_scope(nodeid)
