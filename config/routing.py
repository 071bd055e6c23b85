"""The WebSocket route with the topics of every app."""

from django.urls import path

from fleet.live.consumer import LiveConsumer
from fleet.live.topics import ClusterTopics
from health.live.topics import TelemetryTopics
from rollouts.live.topics import PlanTopics

sockets = [path("live/", LiveConsumer.as_asgi(topics=(ClusterTopics(), TelemetryTopics(), PlanTopics())))]
