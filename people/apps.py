from django.apps import AppConfig
from django.contrib.auth.signals import user_logged_in


class PeopleConfig(AppConfig):
    name = "people"

    def ready(self) -> None:
        from people.sign_in.access import limit_session

        user_logged_in.connect(limit_session, dispatch_uid="limit_session")
