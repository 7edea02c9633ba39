"""Small facts that change from version to version of PyTorch, each as a line of code whose result is kept.

``ask``         a probe, and how it is answered; ``all``: all of them, and their answers
``kinks``       gradients where there is no derivative: bounds, ties, zero, infinity
``nodes``       what ``grad_fn`` is called
``warns``       which calls warn, and in which words
``refuses``     which calls raise, and in which words
``signatures``  parameters and defaults of public functions; these are found, not listed

A probe is known by its code. One that is changed is a new one, and has no answers of other versions until they are asked.
"""
