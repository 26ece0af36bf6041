"""A Markdown fence is taken off, and every line keeps its number."""

from __future__ import annotations

import pytest

from sandbridge_runner.core.fence import without_fence


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("return 1", "return 1"),
        ("```js\nreturn 1\n```", "\nreturn 1"),
        ("```\nreturn 1\n```\n\n", "\nreturn 1"),
        ("\n\n```typescript\na\nb\n```", "\n\n\na\nb"),
        ("~~~\na\n~~~", "\na"),
        ("````md\n```\na\n```\n````", "\n```\na\n```"),
        ("```js\r\nreturn 1\r\n```", "\nreturn 1\r"),
        ("```js\nreturn `x`", "```js\nreturn `x`"),
        ("const a = `\n```\n`", "const a = `\n```\n`"),
        ("```\n```", "\n"),
        ("", ""),
    ],
)
def test_a_fence_is_taken_off_in_place(code: str, expected: str) -> None:
    assert without_fence(code) == expected


@pytest.mark.timeout(5)
@pytest.mark.parametrize("filler", [" ", "\n", "`", "~", "\t ", "```\n", "``` \n"])
def test_hostile_code_takes_no_longer_than_its_length_deserves(filler: str) -> None:
    code = "```\n" + filler * (250_000 // len(filler)) + "x"

    assert without_fence(code) == code
