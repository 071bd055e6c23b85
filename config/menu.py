"""The menu: four groups of pages by task, and the entry that the page on the screen belongs to."""

from dataclasses import dataclass

from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import SimpleLazyObject

from people.models import User
from people.rights import Permission, scope_of


@dataclass(frozen=True)
class MenuEntry:
    title: str
    page: str  # URL name of its page
    below: tuple[str, ...] = ()  # URL names of the pages below it
    anchor: str = ""
    counted_by: str = ""  # URL name of the part that counts its waiting items
    is_for_admins: bool = False

    @property
    def href(self) -> str:
        return reverse(self.page) + self.anchor


@dataclass(frozen=True)
class MenuGroup:
    title: str
    entries: tuple[MenuEntry, ...]


GROUPS = (
    MenuGroup(
        "Fleet",
        (
            MenuEntry("Map", "fleet"),
            MenuEntry("Nodes", "fleet", ("node", "node-history"), anchor="#nodes"),
            MenuEntry("GPUs", "gpus", ("gpu", "save-gpu-view")),
            MenuEntry("Pods", "pods", ("pod", "save-pod-view", "namespace", "workload")),
            MenuEntry(
                "Pools",
                "pools",
                ("pool", "new-pool", "edit-pool", "delete-pool", "pool-file", "pool-gates", "pool-service-level"),
            ),
            MenuEntry("Segments", "segments"),
            MenuEntry("Usage and cost", "usage", ("usage-report", "prices")),
        ),
    ),
    MenuGroup(
        "Health",
        (
            MenuEntry("Findings", "findings", counted_by="criticals-count"),
            MenuEntry("Events", "events", ("save-event-view",)),
            MenuEntry("Rules", "rules", ("rule", "rule-shadow", "rule-limits")),
            MenuEntry(
                "Maintenance",
                "maintenance",
                (
                    "case",
                    "new-case",
                    "new-case-operation",
                    "case-operation",
                    "automatic-quarantines",
                    "automatic-quarantine",
                    "new-node-gates",
                    "new-node-gate",
                    "repair-receivers",
                    "repeat-offenders",
                ),
            ),
            MenuEntry("Shift report", "shift-report"),
        ),
    ),
    MenuGroup(
        "Changes",
        (
            MenuEntry("Plans", "plans", ("plan", "draft", "edit-plan", "apply-document", "external-rollout")),
            MenuEntry("Approvals", "approvals", ("approval",), counted_by="approvals-count"),
            MenuEntry("Operations", "operations", ("operation", "new-operation")),
            MenuEntry("Freezes and windows", "freezes", ("new-freeze", "new-window")),
            MenuEntry("Ledger", "ledgers", ("ledger",)),
        ),
    ),
    MenuGroup(
        "Admin",
        (
            MenuEntry("Clusters", "clusters", ("cluster", "telemetry-form", "telemetry-remove")),
            MenuEntry(
                "People",
                "people",
                ("person", "add-person", "groups", "add-group", "group-mappings", "add-group-mapping"),
                is_for_admins=True,
            ),
            MenuEntry("Audit", "audit", is_for_admins=True),
            MenuEntry("Notifications", "notifications", ("channel", "add-channel", "route", "add-route", "delivery")),
            MenuEntry(
                "Tokens",
                "account",
                (
                    "issue-token",
                    "device",
                    "confirm-device",
                    "my-notifications",
                    "confirm",
                    "second-factors",
                    "add-app",
                    "add-passkey",
                    "renew-recovery-codes",
                ),
            ),
            MenuEntry("System status", "status"),
        ),
    ),
)


@dataclass(frozen=True)
class Menu:
    """`group` and `entry` are None on a page that has no entry, such as the sign-in."""

    groups: tuple[MenuGroup, ...]
    group: MenuGroup | None
    entry: MenuEntry | None
    is_on_entry: bool  # the page is the entry's own, not one below it


def menu(request: HttpRequest) -> dict[str, object]:
    """Adds the menu to every template. It costs a query where `scope_of` does."""
    return {"menu": SimpleLazyObject(lambda: menu_of(request.user, page=_name_of(request)))}


def menu_of(user: User | AnonymousUser, *, page: str) -> Menu:
    is_admin = not scope_of(user, Permission.ADMINISTER).nowhere
    groups = tuple(
        MenuGroup(group.title, tuple(entry for entry in group.entries if is_admin or not entry.is_for_admins))
        for group in GROUPS
    )
    found = [(group, entry) for group in groups for entry in group.entries if page in (entry.page, *entry.below)]
    group, entry = found[0] if found else (None, None)
    return Menu(groups, group, entry, is_on_entry=bool(entry and entry.page == page))


def _name_of(request: HttpRequest) -> str:
    match = request.resolver_match
    return (match.url_name or "") if match else ""
