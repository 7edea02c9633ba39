"""What a figure plays.

``steps``      the steps of a backward pass
``rules``      what backward computes in each
``live_data``  what is computed again when a leaf is changed
"""
