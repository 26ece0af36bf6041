"""What the compiler says, read."""

from __future__ import annotations

from sandbridge_runner.compiler import OPTIONS, Diagnostic, diagnostics

OUTPUT = """\
script.ts(2,51): error TS2561: Object literal may only specify known properties. Did you mean 'org'?
script.ts(5,31): error TS2769: No overload matches this call.
  Overload 1 of 2 gave the following error.
    Argument of type 'number' is not assignable.
/x/apis.d.ts(1,1): error TS1005: ';' expected.
  Of another file.
other.ts(9,9): error TS2304: Cannot find name 'x'.
script.ts(7,1): error TS1005: ';' expected.
error TS5023: Unknown compiler option.
"""


def test_complaints_about_the_script_are_read_with_their_explanations_and_nothing_else_is() -> None:
    found = diagnostics(OUTPUT)

    assert found == [
        Diagnostic(2, 51, 2561, "Object literal may only specify known properties. Did you mean 'org'?"),
        Diagnostic(
            5,
            31,
            2769,
            "No overload matches this call. Overload 1 of 2 gave the following error. "
            "Argument of type 'number' is not assignable.",
        ),
        Diagnostic(7, 1, 1005, "';' expected."),
    ]
    assert [one.is_syntax for one in found] == [False, False, True]


def test_no_output_is_no_complaint() -> None:
    assert diagnostics("") == []


def test_the_compiler_is_told_to_open_no_file_that_a_script_names() -> None:
    assert "--noResolve" in OPTIONS
    assert OPTIONS[OPTIONS.index("--types") + 1] == ""
