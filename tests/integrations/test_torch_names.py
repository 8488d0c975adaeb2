"""Trainings of libraries that are given torch.profiler's parts, as they are and with the imports of these parts changed."""

import pytest
import torch

from kinetoscope.profiler import continued_runs
from support.torch_loops import names_in, relus, seen_with_torch, with_our_names, work

pytestmark = pytest.mark.filterwarnings("ignore")


def a_callback_of_transformers(folder):
    from torch.profiler import profile, schedule
    from transformers import Trainer, TrainerCallback, TrainingArguments

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(1, 1)

        def forward(self, x):
            return {"loss": self.layer(x).relu().sum()}

    class Callback(TrainerCallback):
        def __init__(self, prof):
            self.prof = prof

        def on_step_end(self, args, state, control, **kwargs):
            self.prof.step()

    options = {"report_to": [], "save_strategy": "no", "disable_tqdm": True, "use_cpu": True, "logging_strategy": "no"}
    arguments = TrainingArguments(str(folder / "out"), per_device_train_batch_size=1, max_steps=6, **options)
    rows = [{"x": torch.ones(1)} for _ in range(6)]
    with profile(schedule=schedule(wait=1, warmup=1, active=2, repeat=1)) as prof:
        Trainer(Model(), arguments, train_dataset=rows, callbacks=[Callback(prof)]).train()
    return prof.step_num, relus(prof)


def a_callback_of_lightning(folder):
    import lightning.pytorch as pl
    from torch.profiler import profile, schedule, tensorboard_trace_handler

    class Model(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(1, 1)

        def training_step(self, batch, index):
            return self.layer(batch).relu().sum()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    class Callback(pl.Callback):
        def on_train_start(self, trainer, module):
            self.prof = profile(
                schedule=schedule(wait=1, warmup=1, active=2, repeat=1),
                on_trace_ready=tensorboard_trace_handler(str(folder / "log")),
            )
            self.prof.start()

        def on_train_batch_end(self, *_):
            self.prof.step()

        def on_train_end(self, *_):
            self.prof.stop()

    callback = Callback()
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    trainer = pl.Trainer(max_epochs=1, accelerator="cpu", callbacks=[callback], enable_model_summary=False, **quiet)
    trainer.fit(Model(), torch.utils.data.DataLoader(torch.ones(6, 1)))
    return callback.prof.step_num, relus(callback.prof)


def accelerate_s_own_profiler(folder):
    from accelerate import Accelerator, ProfileKwargs
    from torch.profiler import tensorboard_trace_handler

    plan = {"wait": 1, "warmup": 1, "active": 1, "repeat": 1, "skip_first": 0}
    handler = tensorboard_trace_handler(str(folder / "log"), "me")
    arguments = ProfileKwargs(activities=["cpu"], schedule_option=plan, on_trace_ready=handler)
    with Accelerator(cpu=True, kwargs_handlers=[arguments]).profile() as prof:
        for _ in range(4):
            work()
            prof.step()
    return [name.partition(".")[0] for name in names_in(folder / "log")]


def lightning_s_own_profiler(folder):
    from lightning.pytorch.profilers import PyTorchProfiler
    from torch.profiler import ProfilerActivity, schedule, tensorboard_trace_handler

    profiler = PyTorchProfiler(
        emit_nvtx=False,
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=0, warmup=1, active=2, repeat=1),
        on_trace_ready=tensorboard_trace_handler(str(folder / "log"), "me"),
    )
    for _ in range(5):
        with profiler.profile("[pl][profile]run_training_batch"):
            work()
        with profiler.profile("[pl][module]Model.training_step"):
            work()
    profiler.teardown("fit")
    return len(names_in(folder / "log")) > 0


@pytest.mark.parametrize(
    ("library", "shape"),
    [
        ("transformers", a_callback_of_transformers),
        ("lightning", a_callback_of_lightning),
        ("accelerate", accelerate_s_own_profiler),
        ("lightning", lightning_s_own_profiler),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_a_training_of_a_library_sees_the_same_and_records(library, shape, tmp_path, monkeypatch):
    pytest.importorskip(library)
    monkeypatch.setattr(continued_runs, "_runs", {})
    theirs, ours = tmp_path / "torch", tmp_path / "ours"
    for folder in (theirs, ours):
        folder.mkdir()
    monkeypatch.chdir(theirs)
    seen, windows = seen_with_torch(shape, theirs, monkeypatch)
    monkeypatch.chdir(ours)
    assert with_our_names(shape)(ours) == seen
    assert len(list(ours.rglob("*.pt.trace.json*"))) >= windows
