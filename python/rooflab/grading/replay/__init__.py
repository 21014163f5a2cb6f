"""A trace of what student code asked of rooflab's core: written in the worker, repeated where it is counted."""
