"""How `bin/bench findings` measures."""
