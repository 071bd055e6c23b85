from django.urls import path

from notifications.web import (
    channel_page,
    events_page,
    notifications_page,
    pagerduty_events,
    preferences_page,
    route_page,
    silences,
    traffic,
)

urlpatterns = [
    path("events", events_page.events, name="events"),
    path("parts/events", events_page.events_part, name="events-part"),
    path("events.csv", events_page.csv_file, name="events-csv"),
    path("events/views", events_page.save, name="save-event-view"),
    path("events/views/<int:view_id>/forget", events_page.forget, name="forget-event-view"),
    path("parts/plans/<int:plan_id>/traffic", traffic.traffic_part, name="plan-traffic"),
    path("hooks/pagerduty/<slug:name>", pagerduty_events.receive_events, name="pagerduty-events"),
    path("parts/findings/<int:finding_id>/silences", silences.silences_part, name="finding-silences"),
    path("account/notifications", preferences_page.my_notifications, name="my-notifications"),
    path("notifications", notifications_page.notifications, name="notifications"),
    path("parts/notifications/log", notifications_page.log_part, name="delivery-log"),
    path("notifications/deliveries/<int:delivery_id>", notifications_page.delivery, name="delivery"),
    path("parts/notifications/deliveries/<int:delivery_id>", notifications_page.outcome_part, name="delivery-outcome"),
    path("notifications/deliveries/<int:delivery_id>/resends", notifications_page.send_again, name="resend-delivery"),
    path("notifications/channels/add", channel_page.add, name="add-channel"),
    path("notifications/channels/<int:channel_id>", channel_page.edit, name="channel"),
    path("notifications/channels/<int:channel_id>/tests", channel_page.test, name="test-channel"),
    path("notifications/channels/<int:channel_id>/removals", channel_page.remove, name="remove-channel"),
    path("notifications/routes/add", route_page.add, name="add-route"),
    path("notifications/routes/<int:route_id>", route_page.edit, name="route"),
    path("notifications/routes/<int:route_id>/moves", route_page.move_route_in_list, name="move-route"),
    path("notifications/routes/<int:route_id>/removals", route_page.remove, name="remove-route"),
]
