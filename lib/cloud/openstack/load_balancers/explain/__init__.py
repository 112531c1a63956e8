"""Plans in words: what each step changes, printed from its fields."""
