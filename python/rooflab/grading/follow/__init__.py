"""A student's function followed through its source text, for questions that ask for loops in plain Python."""
