from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("rollouts", "0021_keys_of_one_person")]

    operations = [
        migrations.AddField("stage", "sick_nodes_because", models.CharField(blank=True, default="", max_length=1000)),
    ]
