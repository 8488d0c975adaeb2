"""The version of the package: shared by the recorder and the viewer."""

__version__ = "0.1.0"
