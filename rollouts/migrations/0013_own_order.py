"""Changes nothing: an order is none of the database's, and is written where the models are made.

One operation for each of seven models would render all the models again, in every new database.
"""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("rollouts", "0012_image_pulls"),
    ]

    operations = []
