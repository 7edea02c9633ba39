"""Child processes that run the examples: how many at once, what each may take, and what became of it.

``pool``     starts and ends them
``cores``    how many at once
``child``    what happens inside one
``limits``   what one may take
``ending``   how one ends, and with whom
``faults``   what went wrong in it
"""
