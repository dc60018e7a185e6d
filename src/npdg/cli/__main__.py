"""`python -m npdg.cli` is `npdg`."""

from npdg.cli.app import main

if __name__ == "__main__":
    main()
