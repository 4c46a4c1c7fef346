"""`python -m attlas` and the `attlas` command."""

from attlas._signals import leave_at_once


def main() -> None:
    """The program."""
    leave_at_once()  # first of all: until a command begins its work, only modules are loaded
    from attlas.cli.main import main as program

    program()


if __name__ == "__main__":
    main()
