"""What differs under another version, as Markdown: for a person who runs ``nox -s versions``, and for an issue."""

from __future__ import annotations

from collections.abc import Iterator

from atlas.versions.measured import Measured

LONGEST = 160  # characters of a message


def failing(measured: Measured) -> list[str]:
    """The examples and the rows of then-and-now that do not hold."""
    return [
        *(name for name, found in measured.examples.items() if found["faults"]),
        *(title for title, found in measured.rows.items() if found["failed"]),
    ]


def markdown(measured: Measured) -> str:
    """A heading, and a list for each kind of difference."""
    return "\n".join(_lines(measured))


def _lines(measured: Measured) -> Iterator[str]:
    examples, rows, operators = measured.examples, measured.rows, measured.operators
    broken = {name: found["faults"] for name, found in sorted(examples.items()) if found["faults"]}
    lost = {title: found["failed"] for title, found in rows.items() if found["failed"]}
    other = {name: found["differ"] for name, found in sorted(examples.items()) if found["differ"]}
    yield f"## torch {measured.torch}, against {measured.of['against']}\n"
    yield f"- {len(examples) - len(broken)} of {len(examples)} examples hold, {len(rows) - len(lost)} of {len(rows)} rows"
    if "failed" in operators:
        yield f"- operators: {_short(operators['failed'])}"
    else:
        yield f"- {len(operators['differ'])} cells differ in the table of {operators['count']} operators"
    yield f"- {len(measured.signatures['differ'])} of {measured.signatures['count']} signatures differ"
    yield f"- outputs differ on {len(other)} pages: {', '.join(other) or 'none'}"
    for name, faults in broken.items():
        yield f"- **{name}**, cell {faults[0]['cell']}: `{_short(faults[0]['code'])}`: {_short(faults[0]['said'])}"
    for title, failed in lost.items():
        yield f"- row **{title}**: `{_short(failed[0]['code'])}` gave `{_short(failed[0]['got'])}`"


def _short(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= LONGEST else f"{words[:LONGEST]}..."
