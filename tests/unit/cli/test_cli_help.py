"""Help is in groups, says what an option is if nobody says it, and has an example that parses."""

import argparse
import shlex

import pytest

from sdv_privpgd.cli.arguments import parser

WHOLE = parser()
(EACH,) = (each for each in WHOLE._actions if isinstance(each, argparse._SubParsersAction))
COMMANDS = EACH.choices
FITS = {"synthesize", "plan", "measure", "audit"}


@pytest.mark.parametrize("name", COMMANDS)
def test_an_example_of_each_command_parses(name):
    shown = COMMANDS[name].format_help()
    example = COMMANDS[name].epilog.removeprefix("example:\n")
    assert shown.rstrip().endswith(example)
    program, *words = shlex.split(example)
    assert program == WHOLE.prog
    assert words[0] == name
    assert callable(WHOLE.parse_args(words).run)


@pytest.mark.parametrize("name", COMMANDS)
def test_each_option_says_what_it_is(name):
    shown = " ".join(COMMANDS[name].format_help().split())
    for action in COMMANDS[name]._actions:
        if action.option_strings:
            assert action.help, action.option_strings
        if isinstance(action.default, int | float) and not isinstance(action.default, bool):
            assert f"(default: {action.default})" in shown
    assert "==SUPPRESS==" not in shown
    assert "(default: False)" not in shown
    assert "(default: [])" not in shown


@pytest.mark.parametrize("name", sorted(FITS))
def test_options_of_a_fit_are_in_groups(name):
    titles = [group.title for group in COMMANDS[name]._action_groups]
    assert len(set(titles)) == len(titles)
    assert {"what may be spent", "whose the rows are"} <= set(titles)
    assert {"what is modelled, and how", "what is public of the table"} <= set(titles)
    options = next(group for group in COMMANDS[name]._action_groups if group.title == "options")
    assert len(options._group_actions) <= 9
