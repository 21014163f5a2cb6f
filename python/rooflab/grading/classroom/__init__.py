"""A class: its submissions, what is added to their grades, and the tables and pages that come of them."""
