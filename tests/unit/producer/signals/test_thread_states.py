from kinetoscope.signals.thread_states import thread_states


def test_states_are_the_kernel_s(tmp_path):
    for tid, stat, wait in ((7, "7 (a) b) D 1 2", "nfs_wait"), (9, "9 (python) S 1", "0"), (11, None, None)):
        (tmp_path / str(tid)).mkdir()
        if stat is not None:
            (tmp_path / str(tid) / "stat").write_text(stat)
            (tmp_path / str(tid) / "wchan").write_text(wait)
    assert thread_states(tmp_path) == {
        7: {"name": "a) b", "state": "D", "waits_in": "nfs_wait", "waits_for": {}},
        9: {"name": "python", "state": "S", "waits_in": "", "waits_for": {}},
        11: {"name": "", "state": "", "waits_in": "", "waits_for": {}},  # it has just ended
    }


def test_a_system_without_proc_has_none(tmp_path):
    assert thread_states(tmp_path / "missing") == {}
