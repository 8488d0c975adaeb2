import pytest

from kinetoscope_tb.names.annotations import annotation_name


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("ProfilerStep#12", "PyTorch"),
        ("Optimizer.step#AdamW.step", "PyTorch"),
        ("DistributedDataParallel.forward", "PyTorch"),
        ("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", "PyTorch"),
        ("nccl:all_reduce", "c10d"),
        ("FSDP::all_gather_copy_out (layers.3)", "FSDP"),
        ("FullyShardedDataParallel._pre_forward", "FSDP"),
        ("[pl][module]torch.nn.modules.linear.Linear: layer_1", "Lightning"),
        ("[Strategy]DDPStrategy.training_step", "Lightning"),
        ("megatron.core.transformer.transformer_layer.TransformerLayer._forward_mlp.mlp", "Megatron"),
        ("gpu_model_runner: forward", "vLLM"),
        ("execute_context_2(512)_generation_30(30)", "vLLM"),
        ("step[DECODE bs=16]", "SGLang"),
        ("## KJTListAwaitable wait() ##", "TorchRec"),
        ("## Call CompiledFxGraph fjs75i4j ##", "torch.compile"),
        ("## forward ##", None),
        ("my range", None),
    ],
)
def test_the_library_that_writes_a_range_is_known_by_its_name(text, source):
    assert annotation_name(text).source == source


def test_the_capture_of_a_graph_is_called_so_and_is_the_servers():
    assert annotation_name("capture_32_DECODE", "SGLang") == ("graph capture", "SGLang")
    assert annotation_name("capture_16_FULL") == ("graph capture", "an inference server")


def test_steps_and_iterations_have_one_name_each():
    assert annotation_name("ProfilerStep#1") == annotation_name("ProfilerStep#2")
    assert annotation_name("step[DECODE bs=16]") == annotation_name("step[DECODE bs=8]")
    assert annotation_name("layer 1") != annotation_name("layer 2")
