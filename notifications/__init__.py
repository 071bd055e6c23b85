"""Notifications: channels, routes, and the delivery of domain events to people and machines."""
