from kinetoscope.job.mesh import coordinates, current_coordinates

# torch's own backend without communication: one process is rank 6 of 8.
JOB = """
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.testing._internal.distributed.fake_pg import FakeStore
from kinetoscope.job.mesh import current_coordinates

dist.init_process_group("fake", rank=6, world_size=8, store=FakeStore())
mesh = init_device_mesh("cpu", (2, 2, 2), mesh_dim_names=("pp", "dp", "tp"))
mesh["dp", "tp"]._flatten("dp_tp")
dist.new_group([2, 6], group_desc="mine")
print(tuple(mesh.get_coordinate()), current_coordinates())
"""


def test_a_rank_knows_its_coordinates_in_a_mesh(forks):
    _, out, _ = forks.run("-c", JOB)
    assert out == "(1, 1, 0) {'pp': 1, 'dp': 1, 'tp': 0, 'dp_tp': 2}\n"


def test_what_is_not_clear_is_left_out():
    groups = [
        ("mesh_dp", {0: 0, 1: 1}),
        ("mesh_dp", {1: 0, 2: 1}),
        ("mesh_tp", {1: 0}),
        ("default_pg", {1: 1}),
        ("mesh_pp", {0: 0}),
    ]
    assert coordinates(groups, 1) == {"tp": 0}


def test_a_process_alone_has_no_coordinates():
    assert current_coordinates() == {}
