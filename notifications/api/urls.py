from django.urls import path

from notifications.api.channels import ChannelDetail, ChannelList, ChannelTests
from notifications.api.deliveries import DeliveryDetail, DeliveryList, DeliveryResends, TrafficCalls
from notifications.api.events import DomainEventList, EventViewDetail, EventViewList
from notifications.api.preferences import MyPreferences
from notifications.api.routes import RecipientsPreview, RouteDetail, RouteList, RouteMoves

urlpatterns = [
    path("events", DomainEventList.as_view(), name="api-events"),
    path("event-views", EventViewList.as_view()),
    path("event-views/<int:view_id>", EventViewDetail.as_view()),
    path("me/notifications", MyPreferences.as_view()),
    path("notification-channels", ChannelList.as_view()),
    path("notification-channels/<int:channel_id>", ChannelDetail.as_view()),
    path("notification-channels/<int:channel_id>/tests", ChannelTests.as_view()),
    path("notification-deliveries", DeliveryList.as_view()),
    path("notification-deliveries/<int:delivery_id>", DeliveryDetail.as_view()),
    path("notification-deliveries/<int:delivery_id>/resends", DeliveryResends.as_view()),
    path("notification-recipients", RecipientsPreview.as_view()),
    path("notification-routes", RouteList.as_view()),
    path("notification-routes/<int:route_id>", RouteDetail.as_view()),
    path("notification-routes/<int:route_id>/moves", RouteMoves.as_view()),
    path("plans/<int:plan_id>/traffic-calls", TrafficCalls.as_view()),
]
