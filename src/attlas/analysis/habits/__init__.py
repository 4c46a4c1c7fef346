"""Where heads look by habit: roles, and what they are counted from."""
