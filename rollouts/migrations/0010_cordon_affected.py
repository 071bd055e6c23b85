from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("rollouts", "0009_gate_look_digest"),
    ]

    operations = [
        migrations.AddField(
            model_name="plan",
            name="cordon_affected",
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
