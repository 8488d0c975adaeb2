"""`python -m kinetoscope_tb`: the command line, where `kinetoscope` isn't on the path."""


def _run() -> None:
    from .cli import main

    main()


_run()
