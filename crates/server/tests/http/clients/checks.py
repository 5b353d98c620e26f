"""What scripts that check clients have in common: a conversation, a tool, and checks that run one after the other."""

import sys

ASKED = [{"role": "user", "content": "Tell me a story about a fox."}]
WEATHER = {
    "name": "get_weather",
    "description": "The weather of a city",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string", "enum": ["Lima", "Cusco"]}, "days": {"type": "integer"}},
        "required": ["city", "days"],
    },
}

checks = []


def check(function):
    """Registers a check."""
    checks.append(function)
    return function


def run():
    """Runs all checks, with a line for each; ends the program with status 1 if one fails."""
    failed = 0
    for function in checks:
        try:
            function()
            print("ok  ", function.__name__)
        except Exception as error:  # noqa: BLE001 (each check tells its own failure)
            failed += 1
            print("FAIL", function.__name__, type(error).__name__, str(error)[:300])
    sys.exit(1 if failed else 0)
