"""Saves a person's own preferences."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID
from zoneinfo import available_timezones

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction

from edges import concurrent_edits
from health.rules.base import Severity
from notifications.channels.mail import Mail
from notifications.commands.refusals import BadPreference
from notifications.models import Channel, Preference
from notifications.models.channel import OWN
from notifications.queries import known_kinds
from people.models import User
from people.roster.accounts import record

CHOSEN = ("kinds", "mail", "severities", "slack_id", "teams_id", "zone")
SLACK_MEMBER = re.compile(r"[UW][A-Z0-9]{8,20}")


def save_preference(
    person: User, *, severities: Sequence[str], kinds: Sequence[str], mail: str, slack_id: str, teams_id: str,
    zone: str = "", now: datetime, was: str = "",
) -> Preference:  # fmt: skip
    """Saves the preferences, with the channel of the e-mail. `severities` empty: no e-mail is sent.

    :raises BadPreference: naming the field
    :raises LostRace: when they changed since the mark `was`
    """
    _check_known("severities", severities, [severity.value for severity in Severity])
    _check_known("kinds", kinds, list(known_kinds()))
    if severities and not mail:
        raise BadPreference("mail", "Give the address to which e-mail is sent.")
    if mail:
        _check_mail(mail)
    if slack_id and not SLACK_MEMBER.fullmatch(slack_id):
        raise BadPreference("slack_id", "A member id, as U0123456789: Slack shows it in your profile.")
    if teams_id and not _is_teams_id(teams_id):
        raise BadPreference("teams_id", "Your user principal name, as ada@example.org, or your object id.")
    if zone and zone not in available_timezones():
        raise BadPreference("zone", "A time zone, as Europe/Berlin.")
    with transaction.atomic():
        User.objects.select_for_update().get(pk=person.pk)
        row = Preference.of(person, now=now)
        given = {"severities": severities, "kinds": kinds, "mail": mail, "slack_id": slack_id, "teams_id": teams_id}
        given["zone"] = zone
        concurrent_edits.refuse_unseen(row, CHOSEN, was=was, to=given)
        before = _chosen(row)
        row.severities, row.kinds = sorted(set(severities)), sorted(set(kinds))
        row.slack_id, row.teams_id, row.changed_at = slack_id, teams_id, now
        if mail or row.channel:
            row.channel = _channel(person, mail, zone, is_on=bool(severities), now=now)
        row.save()
        _record(row, before, now=now)
    return row


def mark_of(row: Preference) -> str:
    return concurrent_edits.mark_of(row, CHOSEN)


def _chosen(row: Preference) -> dict[str, Any]:
    return {name: getattr(row, name) for name in CHOSEN}


def _record(row: Preference, before: Mapping[str, Any], *, now: datetime) -> None:
    """Records a change. The address and the handles are left out, since decisions are kept permanently."""
    after = _chosen(row)
    if changed := [name for name in after if after[name] != before[name]]:
        evidence = {"changed": changed, "severities": row.severities, "kinds": row.kinds}
        record(row.person, "person.preferences", actor=row.person.get_username(), now=now, **evidence)


def _channel(person: User, mail: str, zone: str, *, is_on: bool, now: datetime) -> Channel:
    """Returns the channel of the person's e-mail."""
    given = {"recipients": [mail] if mail else [], "zone": zone, "is_on": is_on, "changed_at": now}
    made = {
        "kind": Mail.key, "added_by": person.get_username(), "added_at": now, "state_since": now, "lease_until": now,
    }  # fmt: skip
    return Channel.objects.update_or_create(name=f"{OWN}{person.pk}", defaults=given, create_defaults=made | given)[0]


def _check_known(field: str, given: Sequence[str], known: Sequence[str]) -> None:
    if unknown := [value for value in given if value not in known]:
        raise BadPreference(field, f"Unknown: {unknown[0][:100]}.")


def _check_mail(address: str) -> None:
    try:
        validate_email(address)
    except ValidationError as error:
        raise BadPreference("mail", "No mail address.") from error


def _is_teams_id(text: str) -> bool:
    try:
        validate_email(text)
    except ValidationError:
        try:
            UUID(text)
        except ValueError:
            return False
    return True
