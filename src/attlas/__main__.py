"""`python -m attlas` and the `attlas` command."""

from attlas.cli.application import main

if __name__ == "__main__":
    main()
