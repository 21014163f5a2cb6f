"""A student's function interpreted from its source text, for questions that ask for loops in plain Python."""
