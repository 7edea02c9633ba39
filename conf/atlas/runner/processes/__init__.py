"""Child processes that run the examples: how many at once, what each may take, and what became of it."""
