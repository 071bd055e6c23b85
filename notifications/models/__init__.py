from notifications.models.channel import AuditFormat, Channel, ChannelState
from notifications.models.conversation import Conversation
from notifications.models.delivery import Delivery, DeliveryState
from notifications.models.preference import Preference
from notifications.models.route import Route
from notifications.models.router import Router
