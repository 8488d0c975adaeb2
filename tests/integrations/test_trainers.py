"""Each callback in a real training of its library, in a process of its own, forked from one that imported all of them."""

import gzip
import json
import os
from importlib.util import find_spec
from re import fullmatch

import pytest

from support.forks import TORCH, Server

QUIET = {
    "KINETO_LOG_LEVEL": "99",
    "TORCH_CPP_LOG_LEVEL": "ERROR",
    "OMP_NUM_THREADS": "1",
    "KINETOSCOPE_SCALARS": "off",
    "HF_HUB_OFFLINE": "1",
    "CUDA_VISIBLE_DEVICES": "",
}

LIBRARIES = ("lightning.pytorch", "transformers.trainer", "accelerate", "mmengine.runner")

HEAD = """
import sys, warnings
warnings.simplefilter("ignore")
import torch
from torch.utils.data import DataLoader, TensorDataset
torch.set_num_threads(1)
from kinetoscope import cyclic
logdir = sys.argv[1]
data = TensorDataset(torch.randn(16, 4), torch.randint(2, (16,)))
schedule = cyclic(wait=1, warmup=1, active=2)
"""

LIGHTNING = """
import logging
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
import lightning.pytorch as pl
from kinetoscope.integrations.lightning import TracerCallback

class Model(pl.LightningModule):
    fails_at = None
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 2)
    def training_step(self, batch, index):
        if index == self.fails_at:
            raise KeyError("on purpose")
        return torch.nn.functional.cross_entropy(self.layer(batch[0]), batch[1])
    def validation_step(self, batch, index):
        self.layer(batch[0])
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

def fit(model, folder, *callbacks, epochs=2, checkpoint=None):
    tracer = TracerCallback(folder, run="run", schedule=schedule, batch_size=2)
    quiet = dict(logger=False, enable_checkpointing=bool(callbacks), enable_progress_bar=False, enable_model_summary=False)
    trainer = pl.Trainer(max_epochs=epochs, accelerator="cpu", callbacks=[tracer, *callbacks], default_root_dir=logdir, **quiet)
    before = trainer.profiler
    try:
        trainer.fit(model, DataLoader(data, batch_size=2), DataLoader(data, batch_size=8), ckpt_path=checkpoint)
    except KeyError as error:
        print("raised", error)
    assert trainer.profiler is before
    print(tracer.tracer.progress.batch, tracer.tracer.progress.epoch, tracer.tracer.progress.sample)

fit(Model(), logdir, pl.callbacks.ModelCheckpoint(".", "middle", every_n_train_steps=11))
fit(Model(), logdir, epochs=3, checkpoint="middle.ckpt")
failing = Model()
failing.fails_at = 3
fit(failing, logdir + "/failed")
"""

DEFAULTS = """
import lightning.pytorch as pl
from lightning.pytorch.loggers import CSVLogger, TensorBoardLogger
from kinetoscope.integrations.lightning import TracerCallback

class Model(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 2)
    def training_step(self, batch, index):
        loss = torch.nn.functional.cross_entropy(self.layer(batch[0]), batch[1])
        self.log("loss", loss)
        return loss
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

quiet = dict(enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False, log_every_n_steps=1)
def fit(logger, logdir=None, times=1):
    tracer = TracerCallback(logdir, schedule=schedule)
    for _ in range(times):
        trainer = pl.Trainer(max_epochs=1, accelerator="cpu", callbacks=[tracer], logger=logger, default_root_dir="root", **quiet)
        trainer.fit(Model(), DataLoader(data, batch_size=2))
        print(*(path.relative_to(path.cwd()) for path in tracer.tracer.saved_traces))

fit(TensorBoardLogger("logs"), times=2)
fit(CSVLogger("csv", name=None, version="mine"))
fit(False)
fit(TensorBoardLogger("logs"), "given")
"""

REQUEUED = """
import os, signal
from pathlib import Path
import lightning.pytorch as pl
from lightning.pytorch.plugins.environments import SLURMEnvironment
from kinetoscope import Tracer

asks = signal.Signals[sys.argv[2]]

class Model(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 2)
    def training_step(self, batch, index):
        if index == 2:
            os.kill(os.getpid(), asks)
        return torch.nn.functional.cross_entropy(self.layer(batch[0]), batch[1])
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

class Steps(pl.Callback):
    def on_train_batch_end(self, *_):
        tracer.step()

scontrol = Path("bin/scontrol")
scontrol.parent.mkdir()
scontrol.write_text('#!/bin/sh\\necho "$@" >> requeued')
scontrol.chmod(0o755)
os.environ["PATH"] = f"{scontrol.parent.absolute()}:{os.environ['PATH']}"
signal.signal(asks, signal.SIG_DFL)  # nohup ignores SIGHUP, and children inherit that
nothing = [signal.getsignal(number) for number in (signal.SIGUSR1, signal.SIGUSR2)]
with Tracer(logdir, run="run", schedule=schedule) as tracer:
    assert [signal.getsignal(number) for number in (signal.SIGUSR1, signal.SIGUSR2)] == nothing
    trainer = pl.Trainer(
        max_epochs=1, accelerator="cpu", devices=1, logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, callbacks=[Steps()], plugins=[SLURMEnvironment(requeue_signal=asks)],
    )
    trainer.fit(Model(), DataLoader(data, batch_size=2))
print(Path("requeued").read_text().strip(), *(path.name for path in tracer.saved_traces))
"""

SLURM = {
    "SLURM_JOB_ID": "1234",
    "SLURM_JOB_NAME": "train",
    "SLURM_NTASKS": "1",
    "SLURM_NTASKS_PER_NODE": "1",
    "SLURM_NNODES": "1",
    "SLURM_PROCID": "0",
    "SLURM_LOCALID": "0",
    "SLURM_NODEID": "0",
    "SLURM_NODELIST": "localhost",
}

TRANSFORMERS = """
from transformers import Trainer, TrainingArguments
from kinetoscope.integrations.transformers import TracerCallback

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 2)
    def forward(self, x, labels):
        out = self.layer(x)
        return {"loss": torch.nn.functional.cross_entropy(out, labels), "logits": out}

rows = [{"x": x, "labels": y} for x, y in data]
for epochs, resumes in ((2, False), (3, True)):
    tracer = TracerCallback(logdir, schedule=schedule)
    arguments = TrainingArguments(
        output_dir=logdir + "/out", run_name="run", num_train_epochs=epochs, per_device_train_batch_size=2,
        gradient_accumulation_steps=2, report_to=[], use_cpu=True, save_strategy="epoch", disable_tqdm=True,
        logging_strategy="no",
    )
    training = Trainer(model=Model(), args=arguments, train_dataset=rows, callbacks=[tracer])
    training.train(resume_from_checkpoint=resumes)
    print("transformers", tracer.tracer.progress.batch, tracer.tracer.progress.epoch, tracer.tracer.progress.sample)
"""

ACCELERATE = """
logdir += "/accelerate"
from accelerate import Accelerator
from kinetoscope.integrations.accelerate import recording, steps

accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2, project_dir=logdir)
model = torch.nn.Linear(4, 2)
model, optimizer, loader = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1), DataLoader(data, 2))
with recording(accelerator, run="run", schedule=schedule) as tracer:
    for epoch in range(2):
        for x, y in steps(accelerator, tracer, loader, samples=lambda batch: len(batch[0])):
            with accelerator.accumulate(model):
                accelerator.backward(torch.nn.functional.cross_entropy(model(x), y))
                optimizer.step()
                optimizer.zero_grad()
print("accelerate", tracer.progress.batch, tracer.progress.epoch, tracer.progress.sample)
"""

MMENGINE = """
from mmengine.model import BaseModel
from mmengine.runner import Runner
import kinetoscope.integrations.mmengine

class Model(BaseModel):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 2)
    def forward(self, x, y, mode):
        return {"loss": torch.nn.functional.cross_entropy(self.layer(x), y)}

plan = dict(wait=1, warmup=1, active=2)
hook = dict(type="TracerHook", logdir=logdir, run="run", schedule=plan, batch_size=2)
runner = Runner(
    Model(), work_dir=logdir + "/work", train_dataloader=DataLoader(data, 2), train_cfg=dict(by_epoch=True, max_epochs=2),
    optim_wrapper=dict(optimizer=dict(type="SGD", lr=0.1)), custom_hooks=[hook], log_level="ERROR",
    default_hooks=dict(checkpoint=None),
)
runner.train()
tracer = next(h for h in runner.hooks if type(h).__name__ == "TracerHook").tracer
print(tracer.progress.batch, tracer.progress.epoch, tracer.progress.sample)
"""


def needs(library):
    return pytest.mark.skipif(find_spec(library) is None, reason=f"{library} isn't installed")


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    """Forks programs that use the libraries."""
    modules = [module for module in LIBRARIES if find_spec(module.partition(".")[0]) is not None]
    server = Server(tmp_path_factory.mktemp("forks"), *TORCH, *modules, environ=os.environ | QUIET)
    yield server
    server.end()


@pytest.fixture
def run(libraries, tmp_path):
    """Runs a script in the test's folder; returns the lines of its output."""

    def run(script, *arguments, **environ):
        environ, logdir = os.environ | QUIET | environ, tmp_path / "logdir"
        status, out, err = libraries.run("-c", HEAD + script, logdir, *arguments, environ=environ, folder=tmp_path)
        assert status == 0, err
        return out.splitlines()

    return run


def content(path):
    return json.loads(gzip.decompress(path.read_bytes()))


def names(trace):
    return {event.get("name") for event in trace["traceEvents"]}


@needs("lightning")
def test_lightning_s_batches_are_steps_and_its_names_are_markers(run, tmp_path):
    out = run(LIGHTNING)
    assert out == ["16 2 32", "24 3 48", "raised 'on purpose'", "3 0 6"]
    resumed = content(tmp_path / "logdir/run.1/rank0.15.pt.trace.json.gz")
    assert {"ProfilerStep#13", "ProfilerStep#14"} <= names(resumed)
    trace = content(tmp_path / "logdir/run/rank0.4.pt.trace.json.gz")
    assert trace["Framework"] == "pytorch-lightning"
    assert {"ProfilerStep#2", "ProfilerStep#3", "[pl][profile]run_training_batch"} <= names(trace)
    assert any("SingleDeviceStrategy.training_step" in str(name) for name in names(trace))
    partial = content(tmp_path / "logdir/failed/run/rank0.3.pt.trace.json.gz")
    assert partial["kinetoscope"]["reason"] == "exception: KeyError"


@needs("lightning")
def test_by_default_traces_lie_in_the_folder_of_lightning_s_logger(run, tmp_path):
    first, again, csv, without, given = run(DEFAULTS, KINETOSCOPE_SCALARS="on")
    name = "rank0.4.pt.trace.json.gz"
    assert (first, again) == (f"logs/lightning_logs/version_0/{name}", f"logs/lightning_logs/version_0.1/{name}")
    assert csv == f"csv/mine/{name}"
    assert fullmatch(rf"root/[0-9-]+/{name}", without)
    assert fullmatch(rf"given/[0-9-]+/{name}", given)
    assert [path.name for path in (tmp_path / "logs").rglob("*tfevents*.kinetoscope")] == []
    assert list((tmp_path / "logs/lightning_logs/version_0").glob("events.out.tfevents*"))  # Lightning's own


@needs("lightning")
@pytest.mark.parametrize("signal", ["SIGUSR1", "SIGHUP"])
def test_lightning_requeues_a_job_of_slurm_inside_a_tracer(run, signal):
    """It installs its handler only where none is."""
    out = run(REQUEUED, signal, **SLURM)
    assert out[-1] == "requeue 1234 rank0.4.pt.trace.json.gz"


@needs("transformers")
@needs("accelerate")
def test_a_step_of_transformers_and_accelerate_is_the_optimizer_s(run, tmp_path):
    out = run(TRANSFORMERS + ACCELERATE)
    assert [line for line in out if line[0] != "{"] == [
        "transformers 8 2 32",
        "transformers 12 3 48",
        "accelerate 8 2 32",
    ]
    assert {"ProfilerStep#10", "ProfilerStep#11"} <= names(content(tmp_path / "logdir/run.1/rank0.12.pt.trace.json.gz"))
    for folder in ("", "accelerate"):
        trace = content(tmp_path / "logdir" / folder / "run/rank0.4.pt.trace.json.gz")
        assert {"ProfilerStep#2", "ProfilerStep#3"} <= names(trace)
        assert sum(event.get("name") == "aten::linear" for event in trace["traceEvents"]) == 4


@needs("mmengine")
def test_an_iteration_of_mmengine_is_a_step(run, tmp_path):
    assert run(MMENGINE)[-1] == "16 2 32"
    trace = content(tmp_path / "logdir/run/rank0.4.pt.trace.json.gz")
    assert {"ProfilerStep#2", "ProfilerStep#3"} <= names(trace)
