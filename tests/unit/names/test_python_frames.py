"""Names of Python's frames."""

import pytest

from kinetoscope_tb.names.python_frames import function_name, is_library_file, is_of_library, is_python_file


@pytest.mark.parametrize(
    ("frame", "name"),
    [
        ("<built-in function zoom_shift>", "zoom_shift"),
        ("<built-in method astype of numpy.ndarray object>", "ndarray.astype"),
        ("<built-in method item of Tensor object>", "Tensor.item"),
        ("<built-in method randn of type object>", "randn"),
        ("<built-in method collect of module object>", "collect"),
        ("<built-in method  of PyCapsule object>", "C++ function"),
        ("<built-in method f of pybind11_builtins.pybind11_detail_function_record_v1 object>", "f"),
        ("<built-in method _get_tracing_state of PyCapsule object>", "_get_tracing_state"),
        ("<built-in method weird name>", "<built-in method weird name>"),
        ("normalize", "normalize"),
        ("<lambda>", "<lambda>"),
    ],
)
def test_built_in_functions_are_called_as_their_callers_write_them(frame, name):
    assert function_name(frame) == name


@pytest.mark.parametrize(
    ("frame", "name"),
    [
        ("scipy/ndimage/_interpolation.py(739): zoom", "zoom (scipy/ndimage/_interpolation.py:739)"),
        ("a/b (c).py(12): <lambda>", "<lambda> (a/b (c).py:12)"),
        ("/usr/local/bin/vllm(8): <module>", "<module> (/usr/local/bin/vllm:8)"),
        ("<built-in method acquire of _thread.lock object at 0x7f12>", "lock.acquire"),
        ("<stdin>(1): loop", "loop (<stdin>:1)"),
        ("load(3): batch", "load(3): batch"),
        ("volta_sgemm_128x64_nn(1)", "volta_sgemm_128x64_nn(1)"),
        ("execute_context_0(0)_generation_4(4)", "execute_context_0(0)_generation_4(4)"),
    ],
)
def test_a_function_with_a_file_is_called_by_its_name_with_its_file_and_line(frame, name):
    assert function_name(frame) == name


@pytest.mark.parametrize(
    ("file", "is_library"),
    [
        ("/project/train.py", False),
        ("/opt/pytorch/examples/train.py", False),
        ("<stdin>", False),
        ("<ipython-input-3-0123456789ab>", False),
        ("ipykernel_12/345.py", False),
        ("<frozen importlib._bootstrap>", True),
        ("/usr/lib/python3.12/site-packages/torch/nn/modules/module.py", True),
        (r"C:\env\Lib\site-packages\torch\nn\modules\module.py", True),
        ("/usr/lib/python3/dist-packages/apex/optimizers.py", True),
        ("/src/torch/nn/functional.py", True),
        ("/usr/lib/python3.12/contextlib.py", True),
        ("??", True),
    ],
)
def test_files_of_the_program_and_of_libraries(file, is_library):
    assert is_library_file(file) is is_library
    if "/src/" not in file and file != "??":
        assert is_of_library(f"{file}(12): forward") is is_library


def test_modules_of_python_whose_folder_torch_cuts_off_are_no_program():
    files = ("copy.py", "collections/__init__.py", "json/encoder.py", "copy/own.py", "test.py", "jsonl.py")
    assert [is_of_library(f"{file}(12): call") for file in files] == [True, True, True, False, False, False]


def test_code_of_a_console_or_notebook_is_python():
    assert all(map(is_python_file, ("train.py", "<stdin>", "<ipython-input-3-0123456789ab>", "<command-12>")))
    assert not any(map(is_python_file, ("kernel.cpp", "??", "<frozen importlib._bootstrap>", "<eval_with_key>.5")))
