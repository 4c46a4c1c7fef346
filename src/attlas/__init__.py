"""attlas trains attention models, and shows where they look."""
