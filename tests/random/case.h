#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/result.h"

namespace ptrain::random {

// A training of a tiny model on some layout, by words and numbers, so that a line of text holds it
// and each can be made smaller by itself. A value that is not told is the default, the plainest.
struct Case {
  // What is trained; sizes as in recipe::Model. 0: none, or what the family says.
  std::string family = "llama";
  std::int64_t layers = 1, hidden = 16, ffn = 24, heads = 4, kv_heads = 4, head_dim = 4;
  std::int64_t vocab = 64;
  std::int64_t tied = 0;
  std::int64_t experts = 4, topk = 2, expert_ffn = 8;  // of families that have experts
  std::int64_t capacity_percent = 0;
  std::int64_t sequence = 12, rows = 4;  // of a step
  std::string packing = "whole_document";
  std::string optimizer = "adamw", precision = "fp64";
  std::int64_t steps = 1, seed = 1;
  // What it runs on.
  std::int64_t dp = 1, shard = 1, zero = 1, ring = 1, ulysses = 1, tp = 1, ep = 1, etp = 1, pp = 1;
  std::int64_t num_virtual = 1;
  std::string schedule;  // a name, or "random": a legal order by `seed`
  std::string stages;    // empty: balanced
  std::int64_t spread_embedding = 0, spread_head = 0;
  std::int64_t micro_batch = 1;
  std::string recompute = "none", offload = "none";
  std::string stage_recompute;  // empty: as `recompute`
  std::string stage_dtype;      // empty: all as `precision`
  std::int64_t prefetch = 1, window = 0;

  std::int64_t num_ranks() const { return dp * shard * ring * ulysses * tp * pp; }
  std::int64_t num_stages() const { return pp * num_virtual; }
  bool operator==(const Case&) const = default;
};

// "family=gemma2 layers=3 tp=2": all that differs from the defaults, in the order of the fields.
std::string to_text(const Case& one);
// Errors (kUsage): a word that is no FIELD=VALUE.
Result<Case> from_text(const std::string& text);

// The same training without its layout, as text: cases of one problem share the run on one rank.
std::string problem_of(const Case& one);

// Each case that differs from this one in one field, which is plainer there.
std::vector<Case> plainer(const Case& one);

}  // namespace ptrain::random
