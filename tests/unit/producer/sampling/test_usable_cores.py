"""How many cores a process may use: affinity, and the limits of control groups of both versions."""

import os

import pytest

from kinetoscope.sampling.usable_cores import container_limit, usable_cores

ALL = float(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count())


@pytest.fixture
def limited(tmp_path):
    """A function: the cores of a process in groups, as /proc lists them, with files below where groups are mounted."""

    def cores(groups, **files):
        (tmp_path / "cgroup").write_text(groups)
        for name, content in files.items():
            file = tmp_path / "mounted" / name.replace("__", "/").replace("_max", ".max").replace("cpu_cfs", "cpu.cfs")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content)
        limit = container_limit(tmp_path / "cgroup", tmp_path / "mounted")
        return usable_cores(limit).usable

    return cores


def test_without_control_groups_it_is_the_affinity(tmp_path):
    assert container_limit(tmp_path / "missing", tmp_path) is None
    assert usable_cores() == (ALL, os.cpu_count())


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system doesn't choose a thread's cores")
def test_a_process_that_is_bound_to_a_core_shares_no_others():
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        assert usable_cores() == (1, os.cpu_count())
    finally:
        os.sched_setaffinity(0, cores)


@pytest.mark.parametrize("groups", ["", "no group", "0::/job", "1:name=systemd:/", "0::/../..", "\x00:::"])
def test_groups_without_a_limit_leave_all(limited, groups):
    assert limited(groups, job__cpu_max="max 100000\n") == ALL


def test_the_own_group_of_version_2(limited):
    assert limited("0::/job\n", job__cpu_max="50000 100000\n") == 0.5


def test_a_container_sees_its_group_on_top(limited):
    assert limited("0::/docker/8f3\n", cpu_max="25000 100000\n") == 0.25


def test_a_group_above_limits_too(limited):
    cores = limited("0::/pod/task\n", pod__cpu_max="30000 100000\n", pod__task__cpu_max="90000 100000\n")
    assert cores == 0.3


def test_version_1_has_a_quota_and_a_period(limited):
    quota = {"cpu,cpuacct__job__cpu_cfs_quota_us": "40000\n", "cpu,cpuacct__job__cpu_cfs_period_us": "100000\n"}
    assert limited("4:memory:/other\n3:cpu,cpuacct:/job\n", **quota) == 0.4
    assert limited("3:cpu,cpuacct:/job\n", **{**quota, "cpu,cpuacct__job__cpu_cfs_quota_us": "-1\n"}) == ALL


@pytest.mark.parametrize("content", ["", "5", "x y", "0 0", "-1 100000", "1 2 3"])
def test_a_limit_that_makes_no_sense_is_none(limited, content):
    assert limited("0::/\n", cpu_max=content) == ALL
