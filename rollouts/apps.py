from django.apps import AppConfig


class RolloutsConfig(AppConfig):
    name = "rollouts"

    def ready(self) -> None:
        from fleet.acceptance import OBJECTIONS
        from rollouts.objections import plans_that_rest_on

        if plans_that_rest_on not in OBJECTIONS:
            OBJECTIONS.append(plans_that_rest_on)
