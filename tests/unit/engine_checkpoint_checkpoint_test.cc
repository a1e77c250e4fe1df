#include "engine/checkpoint/checkpoint.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "engine/base/engine_error.h"

namespace ptrain::checkpoint {
namespace {

namespace fs = std::filesystem;

class Checkpoint : public ::testing::Test {
 protected:
  Checkpoint() {
    std::string name = (fs::temp_directory_path() / "ptrain-XXXXXX").string();
    root = mkdtemp(name.data());
    world = comm::make_single();
  }
  ~Checkpoint() override {
    world->close();
    fs::remove_all(root);
  }

  TensorItem all_of(const std::string& key, std::vector<float>& data,
                    std::vector<std::int64_t> shape) {
    return {key, DType::kFloat32, std::move(shape), 0, static_cast<std::int64_t>(data.size()),
            data.data()};
  }

  // The message of the error that loading gives.
  std::string refusal(const std::string& folder, const Items& items) {
    try {
      load(folder, items, *world);
    } catch (const EngineError& error) {
      EXPECT_EQ(error.error().code, ExitCode::kUnusable) << error.what();
      return error.what();
    }
    return "loaded";
  }

  void save_step(int step) {
    std::vector<float> data{1, 2, 3, 4, 5, 6};
    save(folder_of(step), {{all_of("model.w", data, {2, 3})}, {{"train.step", step}}}, *world);
  }
  std::string folder_of(int step) const {
    return root + "/step-" + std::string(7, '0') + std::to_string(step);
  }

  static void flip(const std::string& path, std::int64_t offset) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(offset);
    const int byte = file.get();
    file.seekp(offset);
    file.put(static_cast<char>(byte ^ 1));
  }

  std::string root;
  std::unique_ptr<comm::Communicator> world;
};

TEST_F(Checkpoint, ComesBackExactly) {
  std::vector<float> data{1, 2, 3, 4, 5, 6};
  std::vector<float> scalar{7};
  const nlohmann::json state = {{"a", {1, 2.5, "x", nullptr}}, {"big", 18446744073709551615u}};
  save(folder_of(1),
       {{all_of("model.w", data, {2, 3}), all_of("optim.state.w.step", scalar, {})},
        {{"train.step", 5000000000}, {"train.rate", 0.1}, {"data.state", state}}}, *world);
  std::vector<float> loaded(6), step(1);
  const auto values = load(folder_of(1),
                           {{all_of("model.w", loaded, {2, 3}),
                             all_of("optim.state.w.step", step, {})},
                            {{"data.state", {}}, {"train.rate", {}}, {"train.step", {}}}}, *world);
  EXPECT_EQ(loaded, data);
  EXPECT_EQ(step, scalar);
  EXPECT_EQ(values[0].value, state);
  EXPECT_EQ(values[1].value, 0.1);
  EXPECT_EQ(values[2].value, 5000000000);
}

}  // namespace
}  // namespace ptrain::checkpoint
