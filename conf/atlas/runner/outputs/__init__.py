"""What the examples made: when it is current, how it is published, and how it gets here from another machine."""
