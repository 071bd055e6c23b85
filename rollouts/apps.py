from django.apps import AppConfig


class RolloutsConfig(AppConfig):
    name = "rollouts"

    def ready(self) -> None:
        from fleet.acceptance import OBJECTIONS
        from fleet.asked import register
        from fleet.pools.asking import LISTENERS
        from rollouts.findings import HALTED
        from rollouts.objections import plans_that_rest_on
        from rollouts.unasked import ask_from_now_on

        register(HALTED)
        if plans_that_rest_on not in OBJECTIONS:
            OBJECTIONS.append(plans_that_rest_on)
        if ask_from_now_on not in LISTENERS:
            LISTENERS.append(ask_from_now_on)
