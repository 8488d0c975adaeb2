"""The version of the package: of the recorder and of the viewer alike."""

__version__ = "0.1.0"
