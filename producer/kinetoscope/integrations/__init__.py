"""Callbacks for trainers: each is a thin module that drives a `Tracer`, for programs that use that trainer.

lightning     TracerCallback for lightning.pytorch.Trainer
transformers  TracerCallback for transformers.Trainer
accelerate    recording and steps for loops with an Accelerator
mmengine      TracerHook for mmengine.runner.Runner
composer      TracerCallback and ProfilerCallback for composer.Trainer
ipython       the magic `%%kinetoscope`, which records a cell of a notebook
torchtitan    publisher, for Profiler.Config.trace_post_processor

Importing this package imports none of them.
"""
