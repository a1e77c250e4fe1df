// Whole runs on GPUs that are not there: the kernels for GPUs, each of which waits until host code
// synchronises, give the losses of the processor's.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/launch/run_fixture.h"

namespace ptrain {
namespace {

struct Case {
  std::string name;
  double tolerance;  // of a loss, relative
  std::vector<std::string> overrides;
};

void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }

class EmulatedGpus : public RunFixture {
 protected:
  EmulatedGpus() : RunFixture(PTRAIN_EMULATED_BINARY) {}
  void write_gpus() const {
    write("cluster.yaml",
          "name: gpus\nnodes: [{name: here, cores: 2, memory_gib: 8, gpus: 2, gpu_memory_gib: "
          "8}]\n");
  }
};

class EmulatedRun : public EmulatedGpus, public testing::WithParamInterface<Case> {
 protected:
  void SetUp() override {
    RunFixture::SetUp();
    std::string text;
    for (int i = 300; i < 340; ++i) text += "line " + std::to_string(i * i) + " of other text\n";
    write("other.txt", text);
  }

  // Of the steps, then of the validation.
  std::vector<double> losses_of_run(const std::string& binary, const std::string& directory) {
    binary_ = binary;
    run_.root = folder_ + "/" + directory;
    std::vector<std::string> more{
        "shapes.0.steps=10",          "shapes.1.steps=4",
        "validation.every_steps=5",   "validation.tokens=128",
        "validation.sample_tokens=8", "data.validation=[{path: other.txt}]"};
    more.insert(more.end(), GetParam().overrides.begin(), GetParam().overrides.end());
    EXPECT_EQ(run_recipe(more), 0) << output_;
    std::vector<double> losses;
    std::ifstream lines(run_.metrics());
    for (std::string line; std::getline(lines, line);)
      losses.push_back(nlohmann::json::parse(line)["loss"].get<double>());
    for (const auto& event : events(run::EventKind::kValidation))
      losses.push_back(event.fields["loss"].get<double>());
    return losses;
  }
};

TEST_P(EmulatedRun, HasTheProcessorsLosses) {
  const auto wanted = losses_of_run(PTRAIN_SHIPPED_BINARY, "processor");
  write_gpus();
  const auto losses = losses_of_run(PTRAIN_EMULATED_BINARY, "gpus");
  ASSERT_EQ(losses.size(), wanted.size());
  ASSERT_GE(losses.size(), 14u);
  for (std::size_t i = 0; i < losses.size(); ++i)
    EXPECT_LT(std::abs(losses[i] - wanted[i]), GetParam().tolerance * wanted[i]) << "loss " << i;
}

TEST_F(EmulatedGpus, ShardsAreEqualToOneRankTensorByTensor) {
  write_gpus();
  EXPECT_EQ(run_recipe({"--parity", "parallel.dp=1", "parallel.shard=2", "parallel.zero=3"}), 0)
      << output_;
  EXPECT_TRUE(said("equal")) << output_;
}

INSTANTIATE_TEST_SUITE_P(
    All, EmulatedRun,
    testing::Values(Case{"Replicas", 1e-4, {}},
                    Case{"Shards", 1e-4, {"parallel.dp=1", "parallel.shard=2", "parallel.zero=3"}},
                    Case{"Offload", 1e-4, {"parallel.offload=optimizer"}},
                    Case{"Bfloat16", 1e-3, {"precision=bf16", "parallel.micro_batch=1"}},
                    Case{"Muon", 1e-4, {"optimizer.kind=muon"}},
                    Case{"Adam8bit", 1e-4, {"optimizer.kind=adam8bit"}}),
    [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace ptrain
