#include "tests/parity/run_folder.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "core/run/directory.h"
#include "engine/train/trainer.h"
#include "tests/support/ranks.h"
#include "tests/support/small_model.h"

namespace ptrain::parity {
namespace {

namespace fs = std::filesystem;

constexpr int kNumDocuments = 40;

// Documents of 1 to 90 letters, some longer than a row.
void write_text(const std::string& folder) {
  std::mt19937_64 random(3);
  fs::create_directories(folder);
  for (int i = 0; i < kNumDocuments; ++i) {
    std::ofstream file(folder + "/" + std::to_string(100 + i) + ".txt");
    const auto length = 1 + random() % 90;
    for (std::uint64_t k = 0; k < length; ++k) file << static_cast<char>('a' + random() % 9);
  }
}

recipe::Shape shape(const char* name, std::int64_t sequence) {
  recipe::Shape value;
  value.name = name;
  value.sequence = sequence;
  value.global_batch_tokens = 4 * sequence;
  value.steps = 4;
  return value;
}

recipe::Recipe recipe_of(const std::string& root) {
  recipe::Recipe recipe;
  recipe.name = "resume";
  recipe.seed = 5;
  recipe.model = support::small_sizes(320);
  recipe.data.train = {{root + "/text/*.txt"}};
  recipe.data.packing.window = 8;
  recipe.data.cache = root + "/cache";
  recipe.shapes = {shape("short", 16), shape("long", 32)};
  recipe.learning_rate.peak = 1e-2;
  recipe.checkpoint.every_steps = 2;
  recipe.checkpoint.keep = 100;
  return recipe;
}

RunRecord read_record(const std::string& path) {
  RunRecord record;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const auto json = nlohmann::json::parse(line);
    record.steps.push_back(json.at("step"));
    record.losses.push_back(json.at("loss"));
    record.tokens_total.push_back(json.at("tokens_total"));
  }
  return record;
}

}  // namespace

RunFolders::RunFolders() {
  std::string name = "/tmp/ptrain-runs-XXXXXX";
  root_ = ::mkdtemp(name.data());
  write_text(root_ + "/text");
}

RunFolders::~RunFolders() { fs::remove_all(root_); }

run::Plan RunFolders::plan(const mesh::Layout& short_layout,
                           const mesh::Layout& long_layout) const {
  run::Plan plan;
  plan.recipe = recipe_of(root_);
  plan.recipe_folder = root_;
  plan.shapes = {{"short", short_layout, 1, {}, {}}, {"long", long_layout, 1, {}, {}}};
  return plan;
}

std::string RunFolders::checkpoint(const std::string& run, std::int64_t step) const {
  return run::Directory{path(run)}.checkpoint(step);
}

RunRecord RunFolders::train(const std::string& run, const run::Plan& plan,
                            const std::string& from) const {
  const fs::path checkpoints = path(run) + "/checkpoints";
  fs::create_directories(checkpoints);
  if (!from.empty())
    fs::copy(from, checkpoints / fs::path(from).filename(), fs::copy_options::recursive);
  std::vector<std::string> next_shapes;
  run::Request request;
  request.run_directory = path(run);
  std::size_t shape = 0;
  do {
    ++request.attempt;
    std::string next;
    tests::run_ranks(plan.shapes[shape].layout.num_ranks(), [&](comm::Communicator& world) {
      control::ControlClient control(request, world.rank());
      const auto outcome = train::train({request, plan, world, control});
      if (world.rank() == 0) next = outcome.next_shape;
    });
    next_shapes.push_back(next);
    shape = 1;
  } while (!next_shapes.back().empty());
  RunRecord record = read_record(run::Directory{path(run)}.metrics());
  record.next_shapes = next_shapes;
  return record;
}

}  // namespace ptrain::parity
