"""What the examples made: when it is current, how it is published, and how it gets here from another machine.

``fingerprint``  what it depends on
``cache``        published whole or not at all
``recordings``   of runs on a GPU
``shards``       of several machines
"""
