// Layouts that mix all axes compute what one process computes.

#include <gtest/gtest.h>

#include "tests/parity/expectations.h"
#include "tests/support/small_model.h"

namespace ptrain::parity {
namespace {

using recipe::Recompute;

struct Case {
  const char* name;
  const char* family;
  const char* schedule;
  int tp, pp, num_virtual, dp, shard, zero;
  bool tied = false;
  Recompute recompute = Recompute::kNone;
  bool window = false;
  int ring = 1, ulysses = 1;
};

const std::vector<Case> kCases = {
    {"llama_tp2_pp2_dp2", "llama", "1f1b", 2, 2, 1, 2, 1, 1},
    {"llama_tp2_pp2_shard2_zero3_tied", "llama", "1f1b", 2, 2, 1, 1, 2, 3, true},
    {"llama_tp4_pp2_zb_v_tied", "llama", "zb_v", 4, 2, 2, 1, 1, 1, true},
    {"gpt2_tp2_pp2_shard2_zero2", "gpt2", "1f1b", 2, 2, 1, 1, 2, 2, true, Recompute::kFull},
    {"gpt2_tp2_pp4_zb_h1", "gpt2", "zb_h1", 2, 4, 1, 1, 1, 1, true},
    {"qwen3_tp2_pp2_interleaved", "qwen3", "interleaved_1f1b", 2, 2, 2, 1, 2, 1, false,
     Recompute::kSelective},
    {"gemma2_tp4_pp2", "gemma2", "dualpipe_v", 4, 2, 2, 1, 1, 1, true},
    {"qwen2_tp4_dp2_window", "qwen2", "", 4, 1, 1, 2, 1, 1, false, Recompute::kNone, true},
    {"gpt2_tp2_hsdp2x2_zero2_window", "gpt2", "", 2, 1, 1, 2, 2, 2, true, Recompute::kNone, true},
    {"llama_tp2_shard3_zero3_window", "llama", "", 2, 1, 1, 1, 3, 3, true, Recompute::kFull, true},
    {"llama_tp2_pp2_ring2_tied", "llama", "1f1b", 2, 2, 1, 1, 1, 1, true, Recompute::kFull, false,
     2},
    {"gpt2_pp2_shard2_ulysses2_zb_v", "gpt2", "zb_v", 1, 2, 2, 1, 2, 2, true, Recompute::kNone,
     false, 1, 2},
    {"gemma2_pp2_ring2_ulysses2_zero3", "gemma2", "interleaved_1f1b", 1, 2, 2, 1, 1, 3, false,
     Recompute::kSelective, false, 2, 2},
    {"qwen3_tp2_dp2_ring2_window", "qwen3", "", 2, 1, 1, 2, 1, 1, false, Recompute::kNone, true, 2},
};

Experiment experiment_of(const Case& value, DType dtype) {
  Experiment experiment;
  experiment.model = support::small_model(value.family);
  experiment.model.vocab_size = 64;
  experiment.model.num_hidden_layers = 4;
  experiment.model.tie_word_embeddings = value.tied;
  experiment.dtype = dtype;
  experiment.sequence = 12;
  mesh::Layout& layout = experiment.layout;
  layout.tp = value.tp;
  layout.pp = value.pp;
  layout.cp = value.ring * value.ulysses;
  layout.ulysses = value.ulysses;
  layout.num_virtual = value.num_virtual;
  layout.schedule = value.schedule;
  layout.dp = value.dp;
  layout.shard = value.shard;
  layout.zero = value.zero;
  layout.recompute = value.recompute;
  layout.num_micro_batches = 4;
  layout.shared_window = value.window;
  return experiment;
}

class Mixes : public testing::TestWithParam<Case> {};

TEST_P(Mixes, EqualOneProcess) {
  expect_one_process_in_float64(experiment_of(GetParam(), DType::kFloat64));
}

TEST_P(Mixes, RepeatBitForBit) { expect_repeats(experiment_of(GetParam(), DType::kFloat32)); }

INSTANTIATE_TEST_SUITE_P(All, Mixes, testing::ValuesIn(kCases),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace ptrain::parity
