from django.apps import AppConfig


class FleetConfig(AppConfig):
    name = "fleet"

    def ready(self) -> None:
        from fleet.map_cells.chunks import announce_events
        from fleet.messages import listeners
        from fleet.places import clusters_and_pools
        from people.places import register

        register(clusters_and_pools)
        listeners.RECORDED.append(announce_events)
