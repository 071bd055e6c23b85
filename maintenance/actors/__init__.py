"""The actors that repair nodes: one file each, and one line here."""

from collections.abc import Mapping

from maintenance.actors.base import RepairActor
from maintenance.actors.person import Person
from maintenance.actors.webhook import WebhookActor

ACTORS: Mapping[str, RepairActor] = {actor.key: actor for actor in (Person(), WebhookActor())}
