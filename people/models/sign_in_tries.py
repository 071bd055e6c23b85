from django.db import models


class SignInTries(models.Model):
    """How often something was tried in a window of time. In the database: no other tries push it out."""

    key = models.CharField(max_length=64, unique=True)  # a digest of what is counted: names and addresses are not kept
    number = models.PositiveIntegerField()
    until = models.DateTimeField(db_index=True)  # then the window is over
