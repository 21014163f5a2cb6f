"""The category of a kernel, by its name and its op: those of rooflab and of other libraries."""

import pytest

import rooflab as rl
from rooflab.profiler.categories import category


@pytest.mark.parametrize(
    ("name", "op", "expected"),
    [
        ("elementwise_cpu_v1_simd", "add", "elementwise"),
        ("memcpy HtoD", "memcpy", "memory"),
        ("memset", "matmul", "memory"),
        ("splitKreduce_kernel<32, 16>", "matmul", "gemm"),
        ("layer_norm_cuda_v2_one_pass_kernel<float>", "layer_norm", "layernorm"),
        ("reduce_cuda_v1", "sum", "other"),
        ("nvjet_hsh_128x64_64x8_1x2_h_bz_NNT", "", "gemm"),
        ("cutlass_80_tensorop_s1688gemm_128x128", "", "gemm"),
        ("void cunn_SoftMaxForward<4, float>", "", "softmax"),
        ("at::native::vectorized_layer_norm_kernel<float>", "", "layernorm"),
        ("at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>", "", "memory"),
        ("at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl>", "", "elementwise"),
        ("fmha_cutlassF_bf16_aligned_64x64_rf_sm80", "", "attention"),
        ("multi_tensor_apply_kernel<adam_w>", "", "optimizer"),
        ("indexSelectLargeIndex_embedding", "", "embedding"),
        ("attention_backward_cuda_v4", "attention_backward", "attention"),
        ("embedding_cuda_v0", "embedding", "embedding"),
        ("cupy_add__float32_float32_float32", "", "elementwise"),
        ("spin_kernel", "", "other"),
        ("triton_tem_fused_mm_0", "", "gemm"),
        ("triton_tem_fused__to_copy_addmm_t_3", "", "gemm"),
        ("triton_tem_fused_flex_attention_backward_1", "", "attention"),
        ("triton_poi_fused_add_relu_12", "", "elementwise"),
        ("triton_poi_fused__to_copy_mul_sigmoid_1", "", "elementwise"),
        ("triton_poi_fused_clone_4", "", "memory"),
        ("triton_poi_fused_cat_0", "", "memory"),
        ("triton_per_fused__softmax_2", "", "softmax"),
        ("triton_per_fused_amax_div_exp_sub_sum_2", "", "softmax"),
        ("triton_red_fused_add_mean_mul_pow_rsqrt_0", "", "layernorm"),
        ("triton_red_fused_native_layer_norm_0", "", "layernorm"),
        ("triton_red_fused_sum_7", "", "other"),
        ("triton_poi_fused_embedding_0", "", "embedding"),
        ("triton_red_fused_embedding_native_layer_norm_0", "", "layernorm"),
        ("_attn_fwd", "", "attention"),
        ("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16", "", "attention"),
        ("at::native::CatArrayBatchedCopy<float>", "", "memory"),
        ("at::native::(anonymous namespace)::indexSelectLargeIndex<float>", "", "memory"),
        ("at::native::GammaBetaBackwardCUDAKernelTemplate<float>", "", "layernorm"),
        ("cublasLt::epilogue::globalKernel<8, 32>", "", "gemm"),
        ("dot_kernel<float, 128, 0>", "", "gemm"),
        ("gemm_fusion_dot_4", "", "gemm"),
        ("loop_multiply_fusion", "", "elementwise"),
        ("cudnn::ops::nchwToNhwcKernel<float>", "", "memory"),
        ("sm80_xmma_fprop_implicit_gemm_f32f32_nchw", "", "gemm"),
    ],
)
def test_categories(name, op, expected):
    assert category(name, op) == expected


def test_every_elementwise_op_has_its_category():
    reductions = (
        "sum mean amax amin var std prod argmax argmin max min sort topk median logsumexp cumsum scatter_add nonzero "
        "searchsorted any all"
    )
    known_others = {*reductions.split(), "random", "attention_mask", "attention_repair"}
    assert {op for op in rl.ops() if category("", op) == "other"} <= known_others
