"""`python -m attlas` and the `attlas` command."""

from attlas._signals import leave_at_once


def main() -> None:
    """The program."""
    leave_at_once()  # first of all: what follows loads modules, until a command begins its work
    from attlas.cli.main import main as program

    program()


if __name__ == "__main__":
    main()
