"""What public tests compare an answer with, where no number that stands in the notebook would do.

The process in which an answer is graded does not see this folder, so no answer can name what it is compared with.
"""
