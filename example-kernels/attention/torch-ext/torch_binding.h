// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <torch/csrc/stable/tensor.h>
#include <tuple>

// -> out, lse. Without offsets q, k, v are [batch, seqlen, heads, head_dim]; with
// cu_seqlens_q and cu_seqlens_k they are packed, [total, heads, head_dim], and
// max_seqlen_q and max_seqlen_k bound the lengths of the sequences. v may have a head dimension of
// its own. rng_state: the seed and the offset of the dropout, two int64.
std::tuple<torch::stable::Tensor, torch::stable::Tensor>
attention_forward(const torch::stable::Tensor& q,
                  const torch::stable::Tensor& k,
                  const torch::stable::Tensor& v,
                  const std::optional<torch::stable::Tensor>& cu_seqlens_q,
                  const std::optional<torch::stable::Tensor>& cu_seqlens_k,
                  int64_t max_seqlen_q,
                  int64_t max_seqlen_k,
                  double softmax_scale,
                  bool causal,
                  int64_t window_left,
                  int64_t window_right,
                  double softcap,
                  const std::optional<torch::stable::Tensor>& alibi_slopes,
                  const std::optional<torch::stable::Tensor>& sinks,
                  double dropout_p,
                  const std::optional<torch::stable::Tensor>& rng_state);

// -> grad_q, grad_k, grad_v; out and lse are those of attention_forward.
std::tuple<torch::stable::Tensor, torch::stable::Tensor, torch::stable::Tensor>
attention_backward(const torch::stable::Tensor& grad_out,
                   const torch::stable::Tensor& q,
                   const torch::stable::Tensor& k,
                   const torch::stable::Tensor& v,
                   const torch::stable::Tensor& out,
                   const torch::stable::Tensor& lse,
                   const std::optional<torch::stable::Tensor>& cu_seqlens_q,
                   const std::optional<torch::stable::Tensor>& cu_seqlens_k,
                   int64_t max_seqlen_q,
                   int64_t max_seqlen_k,
                   double softmax_scale,
                   bool causal,
                   int64_t window_left,
                   int64_t window_right,
                   double softcap,
                   const std::optional<torch::stable::Tensor>& alibi_slopes,
                   double dropout_p,
                   const std::optional<torch::stable::Tensor>& rng_state);

// -> out, lse. Attention of q [batch, seqlen_q, heads, head_dim] over a cache [batch of the cache,
// rows, heads_kv, head_dim], or [pages, page size, heads_kv, head_dim] with block_table; every
// length in cache_seqlens counts `appended` rows more. The cache may be quantised
// (attention_common/cache.h): float8_e4m3fn, or uint8 with two int4 codes a byte and scale blocks
// [places, rows, heads_kv, groups, 2] of float16; descales are [batch, heads_kv] of float32.
std::tuple<torch::stable::Tensor, torch::stable::Tensor>
cache_forward(const torch::stable::Tensor& q,
              const torch::stable::Tensor& k_cache,
              const torch::stable::Tensor& v_cache,
              const std::optional<torch::stable::Tensor>& cache_seqlens,
              const std::optional<torch::stable::Tensor>& cache_batch_idx,
              const std::optional<torch::stable::Tensor>& cache_leftpad,
              const std::optional<torch::stable::Tensor>& block_table,
              int64_t appended,
              double softmax_scale,
              bool causal,
              int64_t window_left,
              int64_t window_right,
              double softcap,
              int64_t num_splits,
              const std::optional<torch::stable::Tensor>& k_descale,
              const std::optional<torch::stable::Tensor>& v_descale,
              const std::optional<torch::stable::Tensor>& k_scale_blocks,
              const std::optional<torch::stable::Tensor>& v_scale_blocks,
              const std::optional<torch::stable::Tensor>& alibi_slopes,
              const std::optional<torch::stable::Tensor>& sinks);

// Writes k and v [batch, rows, heads_kv, head_dim] behind the cache_seqlens rows in use.
void cache_append(torch::stable::Tensor k_cache,
                  torch::stable::Tensor v_cache,
                  const torch::stable::Tensor& k,
                  const torch::stable::Tensor& v,
                  const torch::stable::Tensor& cache_seqlens,
                  const std::optional<torch::stable::Tensor>& cache_batch_idx,
                  const std::optional<torch::stable::Tensor>& block_table,
                  const std::optional<torch::stable::Tensor>& k_descale,
                  const std::optional<torch::stable::Tensor>& v_descale,
                  const std::optional<torch::stable::Tensor>& k_scale_blocks,
                  const std::optional<torch::stable::Tensor>& v_scale_blocks);
