"""What public tests compare an answer with where the machine decides the right value, such as by its number of threads.

The process in which an answer is graded does not see this folder.
"""
