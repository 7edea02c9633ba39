"""How numbers and shapes are written in a figure and in its description."""

from __future__ import annotations

import math
from collections.abc import Sequence

MINUS = "\N{MINUS SIGN}"


def format_number(number: float | complex) -> str:
    """Four decimals where that says something, fewer where it does not; a real minus sign.

    >>> format_number(0.25285310), format_number(-202.0), format_number(1.2e-7), format_number(-1.7267885)
    ('0.2529', '−202', '1.2e−07', '−1.7268')
    """
    if isinstance(number, complex):
        sign = MINUS if number.imag < 0 else "+"
        return f"{format_number(number.real)}{sign}{format_number(abs(number.imag))}i"
    if not math.isfinite(number):
        text = str(float(number))
    elif number == int(number) and abs(number) < 1e6:
        text = str(int(number))
    elif 1e-3 <= abs(number) < 1e4:
        text = f"{number:.4f}"
    else:
        text = f"{number:.3g}"
    return text.replace("-", MINUS)


def format_row(numbers: Sequence[float]) -> str:
    """A small vector: four digits of each number.

    >>> format_row([1.0, -20.085537, 1e-7])
    '[1, −20.09, 1e−07]'
    """
    return f"[{', '.join(f'{number:.4g}' for number in numbers)}]".replace("-", MINUS)


def format_sum(terms: Sequence[float]) -> str:
    """
    >>> format_sum([0.047, -1.7738])
    '0.0470 + (−1.7738)'
    """
    texts = [format_number(term) for term in terms]
    return " + ".join(f"({text})" if text[0] not in "0123456789" else text for text in texts)


def format_shape(shape: Sequence[int]) -> str:
    """
    >>> format_shape((3, 4)), format_shape(())
    ('3×4', 'scalar')
    """
    return "×".join(str(size) for size in shape) or "scalar"
