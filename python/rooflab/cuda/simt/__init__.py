"""CUDA C++ on the CPU: compiled by the machine's C++ compiler, run thread by thread, checked and counted.

The counts are those of the program as it is written. Nothing here is a time.
"""
