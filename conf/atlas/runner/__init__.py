"""Runs the examples, each in a process of its own, and fills sphinx-gallery's cache with what they made.

sphinx-gallery then finds every page current and only assembles the gallery. In the order of a build:

``scripts``       which examples there are, and which scripts no page can be made of
``fingerprint``   what an example's outputs depend on, and which of it changed
``pool``          child processes: how many at once, for how long, and what became of each
``child``         what happens inside one of them
``limits``        how much of the machine each may take
``faults``        what can go wrong in an example, said with file, line and cell
``cache``         an example's outputs: published whole or not at all, removed with their script
``recordings``    runs on a machine with a GPU, kept for builders without one; ``gpu`` tells whether there is one
``fill``          the above, for all examples of the site
``extension``     which a Sphinx build calls at the right moment
``shards``        or several machines do, each for a part of the examples
``gallery``       the only module that calls into sphinx-gallery's internals
``unfinished``    a build that was killed or warned of pages leaves a mark, and the next one makes good for it
``lock``          one build at a time
"""
