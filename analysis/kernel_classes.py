"""What a GPU kernel is for, told from its name: a table of patterns, the first that fits decides.

    kind_of("nvjet_sm90_tst_64x16_64x16_4x1_v_bz_TNT") -> "gemm"

Kernels have no other sign of their purpose in a trace. Fused kernels count as what most of their
time goes to: `triton_red_fused_..._machete_mm_2` is a norm that torch.compile named after the
multiplication that it feeds. A name that fits no pattern is "other", and told with its share.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

from analysis.model import Kernel, told
from analysis.wording import listing, percent

KINDS: Mapping[str, str] = {
    "gemm": "matrix multiplications (GEMM)",
    "attention": "attention",
    "communication": "communication between GPUs",
    "elementwise": "norms, activations and other elementwise work",
    "kv_write": "writing the KV cache",
    "sampling": "sampling and the step's own state",
    "memory": "memory copies and sets",
    "other": "kernels of unknown purpose",
}
"""Class -> its words, in the order of charts and tables."""

MOST_UNKNOWN = 0.03
"""Share of kernel time in unknown names above which a trace carries a warning."""


class Rule(NamedTuple):
    """One pattern of names; `example` is a name that it is there for."""

    pattern: str
    kind: str
    example: str
    source: str
    """Whose names these are."""


RULES = (
    # Triton's generated names first: they carry names of calls that they feed.
    Rule(r"^triton_tem_fused|^triton_mm|^triton_bmm", "gemm",
         "triton_tem_fused_mm_0", "torch.compile, templates of multiplications"),
    Rule(r"^triton_(?:red|poi|per|for)_fused", "elementwise",
         "triton_red_fused_fused_add_rms_norm_machete_mm_2", "torch.compile"),
    Rule(r"reshape_and_cache|concat_and_cache|copy_blocks_kernel|append_paged_kv|swap_blocks",
         "kv_write", "void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16>",
         "vLLM, FlashInfer"),
    Rule(r"attn_reshape_and_cache|_C_cache_ops::", "kv_write",
         "_C_cache_ops::reshape_and_cache_flash", "vLLM, operators"),
    Rule(r"nccl|^c10d::|^gloo:|^ccl_", "communication",
         "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
         "NCCL, torch.distributed"),
    Rule(r"cross_device_reduce|all_?reduce|all_?gather|reduce_?scatter|alltoall|all2all|multimem"
         r"|symm_mem|one_shot|two_shot|_C::shm_|nvshmem|deep_ep::|quickreduce",
         "communication", "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 2>",
         "vLLM custom all-reduce, symmetric memory, FlashInfer, DeepEP"),
    # Before sampling: names of FlashInfer's attention hold words such as logits_soft_cap.
    Rule(r"flash::|flash_(?:fwd|attn)|fmha|[Aa]ttention|paged_attn|_attn_|cpu_attn|PagedKVCache"
         r"|MergeStates|merge_attn|SinglePrefill|SingleDecode|[Mm][Ll][Aa](?:_|::|Sm)"
         r"|scaled_dot_product|reduce_segments",
         "attention", "void flash::prepare_varlen_num_blocks_kernel<1, false>",
         "FlashAttention 2 and 3, FlashInfer, vLLM, Triton"),
    Rule(r"flashinfer::sampling|gumbel|[Ss]ampl|argmax|ArgMax|topk|TopK|topp|TopP|multinomial"
         r"|[Ss]oftmax|penalt|logits|min_p|radixSort|RadixSort|RadixFindKth|bitonicSort"
         r"|aten::sort|segmented_sort|exponential_|distribution_",
         "sampling", "_gumbel_sample_kernel", "vLLM, torch, FlashInfer"),
    Rule(r"flashinfer::(?:norm|activation)|RMSNorm|rms_norm|rmsnorm|layer_?norm|LayerNorm"
         r"|act_and_mul|silu|gelu|rotary|RotaryEmbedding|RoPE",
         "elementwise", "void vllm::act_and_mul_kernel<c10::BFloat16>", "vLLM, FlashInfer"),
    Rule(r"nvjet|machete|[Mm]arlin|splitKreduce|gemvx|gemv|gemmk|[Gg]emm|GEMM|cublas|cutlass_\d\d"
         r"|cutlass::Kernel|s\d{4,5}(?:gemm|fprop)|xmma_|awq_|gptq_|exllama|bitsandbytes"
         r"|fused_moe_kernel|_matmul|matmul_|scaled_mm|grouped_mm|dequantize",
         "gemm", "nvjet_sm90_tst_384x16_64x4_4x1_v_bz_TNT",
         "cuBLAS, CUTLASS, Machete, Marlin, Triton"),
    Rule(r"^aten::(?:mm|addmm|bmm|baddbmm|matmul|linear|_scaled_mm|_int_mm|_weight_int\w*)$"
         r"|mkldnn::|mkl::|onednn_|dnnl|_C::\w*(?:gemm|_mm|linear)",
         "gemm", "aten::mm", "torch, operators of a CPU trace"),
    Rule(r"_prepare_|_post_update|_combine_sampled|_gather_block_tables|_compute_slot_mapping"
         r"|_get_num_sampled|_apply_write|prepare_inputs|advance_step|eagle_|rejection_"
         r"|memcpy32_post",
         "sampling", "_compute_slot_mappings_kernel", "vLLM's model runner"),
    Rule(r"^\[?(?:CUDA )?mem(?:cpy|set)|^Mem(?:cpy|set)|^aten::(?:copy_|_to_copy|to|clone"
         r"|contiguous|fill_|zero_|zeros|empty\w*|ones|full|cat|detach|resize_|slice|view|_unsafe_view|reshape"
         r"|as_strided|select|narrow|split\w*|expand|permute|transpose|t|unsqueeze|squeeze|alias"
         r"|lift_fresh|item|_local_scalar_dense|arange|is_nonzero|set_|record_stream)$",
         "memory", "Memcpy HtoD (Pinned -> Device)", "CUDA, torch"),
    Rule(r"at::native::|at_cuda_detail::|cub::|elementwise|vectorized_|index_kernel|gather_kernel"
         r"|CatArray|reduce_kernel|scatter|quant|per_token|moe_align|topkGating|moe_sum|mamba|conv1d"
         r"|cpp_fused|^aten::|_C::",
         "elementwise", "void at::native::vectorized_elementwise_kernel<4>", "torch, vLLM"),
)  # fmt: skip
"""Names of vLLM 0.6 to 0.28 and its libraries; the first pattern found in a name decides."""

_COMPILED = tuple((re.compile(rule.pattern), rule.kind) for rule in RULES)
_MOST_NAME = 2_000


@lru_cache(maxsize=50_000)
def kind_of(name: str) -> str:
    """The class of a kernel, one of `KINDS`; "other" where no pattern fits."""
    text = name[:_MOST_NAME].removeprefix("void ")
    return next((kind for pattern, kind in _COMPILED if pattern.search(text)), "other")


def doubt_of(kernels: Iterable[Kernel], seconds: float) -> str:
    """A line that names the kernels of unknown purpose where they take much; empty otherwise.

    Args:
        kernels: of a trace, the longest first.
        seconds: of all its kernels.
    """
    unknown = [kernel for kernel in kernels if kernel.kind == "other"]
    share = sum(kernel.seconds for kernel in unknown) / seconds if seconds > 0 else 0.0
    if share <= MOST_UNKNOWN:
        return ""
    names = listing(
        f"{told(kernel.name, 60)} ({percent(kernel.seconds / seconds)})" for kernel in unknown[:3]
    )
    return (
        f"{percent(share)} of the kernel time is of kernels whose purpose is not known from their "
        f"names: {names}; times of classes are lower bounds"
    )
