"""The rules of common operations: ``table`` has them, ``javascript`` makes functions for a browser of them.

No torch is needed: a build in which no example runs does without it.
"""
