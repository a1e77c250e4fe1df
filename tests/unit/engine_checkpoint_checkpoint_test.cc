#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "engine/base/engine_error.h"
#include "engine/checkpoint/checkpoint.h"

namespace ptrain::checkpoint {
namespace {

namespace fs = std::filesystem;

std::vector<ValueItem> load(const std::string& folder, const Items& items,
                            comm::Communicator& world) {
  return Source(folder, world).load(items);
}

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
    return {
        key,        DType::kFloat32, std::move(shape), 0, static_cast<std::int64_t>(data.size()),
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

  std::string newest(const std::string& checkpoints) {
    const auto found = open_newest(checkpoints, *world);
    return found.source ? found.source->folder() : "";
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
        {{"train.step", 5000000000}, {"train.rate", 0.1}, {"data.state", state}}},
       *world);
  std::vector<float> loaded(6), step(1);
  const auto values =
      load(folder_of(1),
           {{all_of("model.w", loaded, {2, 3}), all_of("optim.state.w.step", step, {})},
            {{"data.state", {}}, {"train.rate", {}}, {"train.step", {}}}},
           *world);
  EXPECT_EQ(loaded, data);
  EXPECT_EQ(step, scalar);
  EXPECT_EQ(values[0].value, state);
  EXPECT_EQ(values[1].value, 0.1);
  EXPECT_EQ(values[2].value, 5000000000);
}

TEST_F(Checkpoint, EveryDTypeComesBack) {
  const auto types = {DType::kFloat32, DType::kFloat64, DType::kBFloat16,
                      DType::kInt32,   DType::kInt64,   DType::kUInt8};
  std::vector<std::vector<std::byte>> stored, loaded;
  Items to_save, to_load;
  for (const DType dtype : types) {
    const auto bytes = static_cast<std::size_t>(15 * size_of(dtype));
    auto& data = stored.emplace_back(bytes);
    for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>(i * 37 % 128);
    loaded.emplace_back(bytes);
    const std::string key = "model." + std::string(name_of(dtype));
    to_save.tensors.push_back({key, dtype, {3, 5}, 0, 15, data.data()});
    to_load.tensors.push_back({key, dtype, {3, 5}, 0, 15, loaded.back().data()});
  }
  save(folder_of(1), to_save, *world);
  load(folder_of(1), to_load, *world);
  EXPECT_EQ(loaded, stored);
}

TEST_F(Checkpoint, EveryProblemIsListed) {
  save_step(1);
  std::vector<float> data(6);
  TensorItem integers = all_of("model.w", data, {2, 3});
  integers.dtype = DType::kInt32;
  const std::string message =
      refusal(folder_of(1), {{all_of("model.w", data, {3, 2}), all_of("model.gone", data, {6}),
                              integers, all_of("train.step", data, {6})},
                             {{"model.w", {}}, {"data.gone", {}}}});
  for (const char* part :
       {"'model.w' has the shape [2, 3] instead of [3, 2]", "'model.gone' is missing",
        "'model.w' is float32, which cannot be loaded as int32",
        "'train.step' is stored as a plain value, not a tensor",
        "'model.w' is stored as a tensor, not a plain value", "'data.gone' is missing"})
    EXPECT_NE(message.find(part), std::string::npos) << part << "\n" << message;
}

TEST_F(Checkpoint, DamageIsFoundAndNamed) {
  std::vector<float> data(6);
  const Items wanted{{all_of("model.w", data, {2, 3})}, {}};
  save_step(1);
  const auto size = static_cast<std::int64_t>(fs::file_size(folder_of(1) + "/__0_0.distcp"));
  for (std::int64_t offset = 0; offset < size; offset += 11) {
    flip(folder_of(1) + "/__0_0.distcp", offset);
    EXPECT_NE(refusal(folder_of(1), wanted).find("__0_0.distcp is damaged: its checksum differs"),
              std::string::npos);
    flip(folder_of(1) + "/__0_0.distcp", offset);
  }
  EXPECT_EQ(refusal(folder_of(1), wanted), "loaded");
  fs::resize_file(folder_of(1) + "/__0_0.distcp", 0);
  EXPECT_NE(refusal(folder_of(1), wanted).find("has 0 bytes instead of"), std::string::npos);
  fs::remove(folder_of(1) + "/__0_0.distcp");
  EXPECT_NE(refusal(folder_of(1), wanted).find("__0_0.distcp is missing"), std::string::npos);
  EXPECT_NE(refusal(root, wanted).find("it has no .metadata"), std::string::npos);
}

// Every byte is checked while all is loaded, those around data as well, and where parts are.
TEST_F(Checkpoint, DamageIsFoundWhileLoading) {
  std::vector<float> data(6), part(2);
  const Items whole{{all_of("model.w", data, {2, 3})}, {{"train.step", {}}}};
  const Items some{{{"model.w", DType::kFloat32, {2, 3}, 2, 4, part.data()}}, {}};
  save_step(1);
  const std::string path = folder_of(1) + "/__0_0.distcp";
  const auto size = static_cast<std::int64_t>(fs::file_size(path));
  for (std::int64_t offset = 0; offset < size; ++offset) {
    flip(path, offset);
    EXPECT_THROW(Source(folder_of(1), *world, Check::kWhileLoading).load(some), Damaged);
    EXPECT_THROW(Source(folder_of(1), *world, Check::kWhileLoading).load(whole), Damaged) << offset;
    flip(path, offset);
  }
  EXPECT_NO_THROW(Source(folder_of(1), *world, Check::kWhileLoading).load(whole));
  EXPECT_NO_THROW(Source(folder_of(1), *world, Check::kWhileLoading).load(some));
  flip(folder_of(1) + "/.metadata", 100);
  EXPECT_THROW(Source(folder_of(1), *world, Check::kWhileLoading), EngineError);
}

TEST_F(Checkpoint, ALinkOutOfTheFolderIsRefused) {
  save_step(1);
  fs::rename(folder_of(1) + "/__0_0.distcp", root + "/elsewhere");
  fs::create_symlink(root + "/elsewhere", folder_of(1) + "/__0_0.distcp");
  std::vector<float> data(6);
  EXPECT_NE(refusal(folder_of(1), {{all_of("model.w", data, {2, 3})}, {}})
                .find("leads out of the checkpoint"),
            std::string::npos);
}

TEST_F(Checkpoint, NewestGoodSkipsDamage) {
  EXPECT_EQ(newest(root + "/none"), "");
  for (int step = 1; step <= 3; ++step) save_step(step);
  EXPECT_EQ(newest(root), folder_of(3));
  flip(folder_of(3) + "/__0_0.distcp", 100);
  EXPECT_EQ(newest(root), folder_of(2));
  fs::remove(folder_of(2) + "/.metadata");
  EXPECT_EQ(newest(root), folder_of(1));
  EXPECT_EQ(open_newest(root, *world).damaged.size(), 2);
  fs::remove(folder_of(1) + "/__0_0.distcp");
  try {
    open_newest(root, *world);
    ADD_FAILURE() << "a damaged checkpoint was taken";
  } catch (const EngineError& error) {
    EXPECT_EQ(error.error().code, ExitCode::kUnusable);
    for (const char* part : {"step-00000003/__0_0.distcp is damaged", "step-00000002 is not a",
                             "step-00000001/__0_0.distcp is missing"})
      EXPECT_NE(error.error().message.find(part), std::string::npos) << error.what();
  }
}

TEST_F(Checkpoint, PruneKeepsTheNewestGood) {
  for (int step = 1; step <= 5; ++step) save_step(step);
  fs::create_directory(root + "/.tmp-step-00000006");
  fs::resize_file(folder_of(5) + "/__0_0.distcp", 10);
  prune(root, 2);
  EXPECT_FALSE(fs::exists(root + "/.tmp-step-00000006"));
  EXPECT_TRUE(fs::exists(folder_of(4)));
  EXPECT_TRUE(fs::exists(folder_of(3)));
  EXPECT_FALSE(fs::exists(folder_of(2)));
  EXPECT_FALSE(fs::exists(folder_of(1)));
}

// A name that leaves no room for the prefix cannot be renamed, by nobody.
TEST_F(Checkpoint, PruneGoesOnBehindWhatCannotBeRemoved) {
  const auto long_name = [&](int step) {
    return root + "/step-" + std::string(249, '0') + std::to_string(step);
  };
  for (int step = 1; step <= 4; ++step) save_step(step);
  for (int step = 3; step <= 4; ++step) fs::rename(folder_of(step), long_name(step));
  fs::create_directory(root + "/.tmp-step-00000006");
  const auto left = prune(root, 1);
  ASSERT_EQ(left.size(), 1);
  EXPECT_NE(left[0].find(long_name(3)), std::string::npos) << left[0];
  EXPECT_NE(left[0].find("too long"), std::string::npos) << left[0];
  EXPECT_TRUE(fs::exists(long_name(4)));
  for (const std::string& gone : {folder_of(1), folder_of(2), root + "/.tmp-step-00000006"})
    EXPECT_FALSE(fs::exists(gone)) << gone;
}

TEST_F(Checkpoint, PruneNeverRemovesTheOnlyGoodOne) {
  for (int step = 1; step <= 4; ++step) save_step(step);
  for (int step = 2; step <= 4; ++step) flip(folder_of(step) + "/__0_0.distcp", 100);
  prune(root, 1);
  EXPECT_EQ(newest(root), folder_of(1));
}

TEST_F(Checkpoint, ASecondSaveReplacesTheFirst) {
  save_step(1);
  std::vector<float> other{9, 9, 9, 9, 9, 9};
  save(folder_of(1), {{all_of("model.w", other, {2, 3})}, {}}, *world);
  std::vector<float> data(6);
  load(folder_of(1), {{all_of("model.w", data, {2, 3})}, {}}, *world);
  EXPECT_EQ(data, other);
  EXPECT_EQ(std::distance(fs::directory_iterator(root), fs::directory_iterator()), 1);
}

// A limit on the size of files stands for the full disk: the kernel refuses the same write. In a
// child process, since the limit cannot be raised again.
TEST_F(Checkpoint, AFullDiskPublishesNothing) {
  save_step(1);
  std::vector<float> large(100000);
  const Items items{{all_of("model.w", large, {100000})}, {{"step", std::int64_t{2}}}};
  save(folder_of(3), items, *world);
  const auto size = fs::file_size(folder_of(3) + "/__0_0.distcp");
  fs::remove_all(folder_of(3));
  const auto child = [&] {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{100000, 100000};
    setrlimit(RLIMIT_FSIZE, &limit);
    try {
      save(folder_of(2), items, *world);
    } catch (const EngineError& error) {
      std::fprintf(stderr, "%d %s", static_cast<int>(error.error().code), error.what());
    }
    std::_Exit(0);
  };
  EXPECT_EXIT(
      child(), ::testing::ExitedWithCode(0),
      fmt::format("15 cannot write .*__0_0.distcp: File too large \\({} bytes needed", size));
  EXPECT_FALSE(fs::exists(folder_of(2)));
  EXPECT_EQ(std::distance(fs::directory_iterator(root), fs::directory_iterator()), 1);
  EXPECT_EQ(newest(root), folder_of(1));
}

}  // namespace
}  // namespace ptrain::checkpoint
