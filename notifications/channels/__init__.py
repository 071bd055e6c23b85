"""The kinds of channels: one file each, and one line here."""

from collections.abc import Mapping

from notifications.channels.alertmanager import Alertmanager
from notifications.channels.base import HttpChannel
from notifications.channels.jira import Jira
from notifications.channels.mail import Mail
from notifications.channels.other import Other
from notifications.channels.pagerduty import PagerDuty
from notifications.channels.slack import Slack
from notifications.channels.slack_bot import SlackBot
from notifications.channels.syslog import Syslog
from notifications.channels.teams import Teams
from notifications.channels.webhook import Webhook

CHANNELS: Mapping[str, HttpChannel | Mail | Syslog | Other] = {
    kind.key: kind
    for kind in (
        PagerDuty(),
        Slack(),
        SlackBot(),
        Teams(),
        Mail(),
        Webhook(),
        Alertmanager(),
        Jira(),
        Syslog(),
        Other(),
    )
}
