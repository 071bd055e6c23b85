"""Who is asked for a stage, who has answered, and what it goes by where nobody is."""
