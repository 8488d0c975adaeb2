"""Errors of many libraries, in words; each class here stands for one that only an extra brings."""

import pytest

from kinetoscope_tb.filesystem import is_url, last_part, words
from kinetoscope_tb.filesystem.urls import is_gone, is_transient, kind_of


class NoCredentialsError(Exception):  # botocore
    pass


class ClientAuthenticationError(Exception):  # Azure
    pass


class HttpError(Exception):  # gcsfs
    def __init__(self, code, message):
        super().__init__(message)
        self.code, self.message = code, message


class ClientResponseError(Exception):  # aiohttp
    __module__ = "aiohttp.client_exceptions"

    def __init__(self, status, message):
        super().__init__(message)
        self.status, self.message = status, message


def wrapped(error):
    """As fsspec hands over whatever goes wrong over HTTP."""
    try:
        raise FileNotFoundError("https://h/x") from error
    except FileNotFoundError as wrapped:
        return wrapped


@pytest.mark.parametrize(
    ("error", "url", "said"),
    [
        (FileNotFoundError("The bucket doesn't exist"), "s3://b/x", "there is nothing with this name"),
        (FileNotFoundError(2, "No such file or directory"), "", "No such file or directory"),
        (
            NoCredentialsError("Unable to locate credentials"),
            "s3://b/x",
            "Unable to locate credentials. Set AWS_PROFILE",
        ),
        (HttpError(403, "Forbidden"), "gs://b/x", "the server answered 403 Forbidden. Run `gcloud"),
        (ClientAuthenticationError("No token.\nTried:\n\tA\n\tB"), "az://c/x", "No token. Set AZURE_STORAGE"),
        (ValueError("account_name with credentials!!"), "abfs://c/x", "credentials!!. Set AZURE_STORAGE"),
        (wrapped(ClientResponseError(503, "Busy")), "https://h/x", "the server answered 503 Busy"),
        (wrapped(ClientResponseError(404, "Not Found")), "https://h/x", "there is nothing with this name"),
        (TimeoutError(), "s3://b/x", "TimeoutError"),
    ],
)
def test_errors_are_told_in_one_line_with_what_to_do(error, url, said):
    text = words(error, url)
    assert said in text
    assert "\n" not in text


@pytest.mark.parametrize(
    ("error", "is_worth_another_try"),
    [
        (TimeoutError(), True),
        (ConnectionResetError(), True),
        (EOFError("the connection ended early"), True),
        (HttpError(503, ""), True),
        (HttpError(429, ""), True),
        (HttpError(400, ""), False),
        (wrapped(ClientResponseError(500, "")), True),
        (wrapped(ClientResponseError(404, "")), False),
        (wrapped(ConnectionRefusedError()), True),
        (FileNotFoundError(), False),
        (PermissionError(), False),
        (NoCredentialsError(), False),
        (ImportError(), False),
    ],
)
def test_only_what_may_pass_is_tried_again(error, is_worth_another_try):
    assert is_transient(error) is is_worth_another_try


def test_a_file_is_gone_only_if_its_place_says_so():
    assert is_gone(FileNotFoundError())
    assert is_gone(wrapped(ClientResponseError(404, "")))
    assert not is_gone(wrapped(ClientResponseError(503, "")))


@pytest.mark.parametrize(
    ("path", "kind", "last"),
    [
        ("/a/b.json", "", "b.json"),
        ("C:\\a.json", "", "C:\\a.json"),
        ("S3://bucket/a b.json", "s3", "a b.json"),
        ("abfss://c@account/a.json", "azure", "a.json"),
        ("https://h/a%20b.json?X-Amz-Signature=1/2", "http", "a b.json"),
        ("memory://far", "memory", "far"),
    ],
)
def test_what_a_path_says(path, kind, last):
    assert (is_url(path), kind_of(path), last_part(path)) == (bool(kind), kind, last)
