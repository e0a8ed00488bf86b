"""analysis.kernel_classes: each pattern has a name that needs it, and names of other libraries."""

from __future__ import annotations

import pytest

from analysis.kernel_classes import KINDS, MOST_UNKNOWN, RULES, doubt_of, kind_of
from analysis.model import Kernel


@pytest.mark.parametrize("rule", RULES, ids=[rule.example[:40] for rule in RULES])
def test_a_rule_decides_its_example(rule: object) -> None:
    assert isinstance(rule, type(RULES[0]))
    assert kind_of(rule.example) == rule.kind
    assert rule.kind in KINDS


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ampere_bf16_s16816gemm_bf16_64x64_ldg8_f2f_stages_64x6_tn", "gemm"),
        ("sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize32x32x64", "gemm"),
        ("void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16>(Params)", "gemm"),
        ("void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<machete::X> >", "gemm"),
        ("void marlin::Marlin<1125899906909960l, 256, 1, 8, 8>(int4 const*)", "gemm"),
        ("void cublasLt::splitKreduce_kernel<32, 16, int, float>(Params)", "gemm"),
        ("void gemvx::kernel<int, int, __nv_bfloat16>(cublasGemvParamsEx)", "gemm"),
        ("fused_moe_kernel", "gemm"),
        ("void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<X> > >",
         "attention"),
        ("void flash_fwd_splitkv_combine_kernel<Flash_fwd_kernel_traits<128, 64> >", "attention"),
        ("void flashinfer::BatchDecodeWithPagedKVCacheKernel<logits_soft_cap>(Params)",
         "attention"),
        ("kernel_unified_attention_2d", "attention"),
        ("void vllm::paged_attention_v2_kernel<unsigned short, 128>", "attention"),
        ("fmhaSm100fKernel_QkvBfloat16OBfloat16H128PagedKvDense", "attention"),
        ("void flashinfer::sampling::TopKTopPSamplingFromProbKernel<1024u>", "sampling"),
        ("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, ArgMaxOps<float> > >",
         "sampling"),
        ("ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "communication"),
        ("void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel<1>", "communication"),
        ("multimem_all_reduce_kernel<c10::BFloat16, 4>", "communication"),
        ("void vllm::rms_norm_kernel<c10::BFloat16, 8>", "elementwise"),
        ("void vllm::rotary_embedding_kernel<c10::BFloat16, true>", "elementwise"),
        ("triton_poi_fused_machete_mm_mul_silu_slice_1", "elementwise"),
        ("triton_red_fused_fused_add_rms_norm_marlin_gemm_2", "elementwise"),
        ("Memcpy DtoH (Device -> Pinned)", "memory"),
        ("Memset (Unknown)", "memory"),
        ("[CUDA memcpy Host-to-Device]", "memory"),
        ("aten::addmm", "gemm"),
        ("_C::cpu_attention_with_kv_cache", "attention"),
        ("aten::copy_", "memory"),
        ("aten::mul", "elementwise"),
        ("c10d::allreduce_", "communication"),
        ("my_kernel", "other"),
        ("", "other"),
        ("x" * 100_000, "other"),
    ],
)  # fmt: skip
def test_names_of_several_libraries(name: str, kind: str) -> None:
    assert kind_of(name) == kind


def test_unknown_names_are_told_above_a_few_per_cent() -> None:
    few = [Kernel("known", "gemm", 1, 98.0), Kernel("odd", "other", 1, 2.0)]
    assert doubt_of(few, 100.0) == ""
    many = [Kernel("known", "gemm", 1, 90.0), Kernel("odd\n", "other", 1, 10.0)]
    assert doubt_of(many, 100.0).startswith("10.0 % of the kernel time")
    assert "\n" not in doubt_of(many, 100.0)
    assert doubt_of(many, 0.0) == ""
    assert 0 < MOST_UNKNOWN < 0.1
