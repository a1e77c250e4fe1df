#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/dcp/metadata.h"
#include "engine/base/engine_error.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/folder.h"
#include "tests/support/ranks.h"

namespace ptrain::checkpoint {
namespace {

std::vector<ValueItem> load(const std::string& folder, const Items& items,
                            comm::Communicator& world) {
  return Source(folder, world).load(items);
}

namespace fs = std::filesystem;

std::string fixture(const std::string& name) {
  return std::string(std::getenv("PTRAIN_SOURCE_DIR")) + "/tests/fixtures/dcp/" + name;
}

// Elements [begin, end) of a tensor whose element i is i / 4.
std::vector<double> counting(std::int64_t begin, std::int64_t end) {
  std::vector<double> values;
  for (std::int64_t i = begin; i < end; ++i) values.push_back(static_cast<double>(i) / 4);
  return values;
}

// Part `rank` of `count` elements, unequal and without regard for rows; some are empty.
std::int64_t cut(std::int64_t count, int rank, int ranks) {
  return count * rank * rank / (ranks * ranks);
}

// Loads every floating tensor under `prefix` on `ranks` ranks and compares each part.
void expect_counting(const std::string& folder, const std::string& prefix, int ranks) {
  const dcp::Metadata metadata = read_folder_metadata(folder);
  tests::run_ranks(ranks, [&](comm::Communicator& world) {
    std::map<std::string, std::vector<double>> parts;
    Items items;
    for (const auto& [key, entry] : metadata.tensors) {
      if (!key.starts_with(prefix) || entry.dtype.starts_with("int")) continue;
      if (key == "model.transposed") continue;
      const std::int64_t count = dcp::volume(entry.shape);
      const std::int64_t begin = cut(count, world.rank(), ranks);
      const std::int64_t end = cut(count, world.rank() + 1, ranks);
      std::vector<double>& part = parts[key];
      part.assign(static_cast<std::size_t>(end - begin), -1);
      items.tensors.push_back({key, DType::kFloat64, entry.shape, begin, end, part.data()});
    }
    load(folder, items, world);
    for (const TensorItem& item : items.tensors)
      EXPECT_EQ(parts[item.key], counting(item.begin, item.end)) << item.key;
  });
}

TEST(Layouts, WhatPyTorchWroteLoadsOnAnyNumberOfRanks) {
  for (const int ranks : {1, 2, 3}) {
    expect_counting(fixture("plain_1"), "model.", ranks);
    expect_counting(fixture("sharded_2"), "model.", ranks);
    expect_counting(fixture("sharded_4"), "model.", ranks);
    expect_counting(fixture("fsdp2_2"), "model.", ranks);
  }
}

TEST(Layouts, StridesOfPyTorchAreHonoured) {
  tests::run_ranks(1, [](comm::Communicator& world) {
    std::vector<float> found(24), expected;
    for (int row = 0; row < 6; ++row)
      for (int column = 0; column < 4; ++column)
        expected.push_back(static_cast<float>(column * 6 + row) / 4);  // counting(4, 6).t()
    const TensorItem item{"model.transposed", DType::kFloat32, {6, 4}, 0, 24, found.data()};
    load(fixture("plain_1"), {{item}, {}}, world);
    EXPECT_EQ(found, expected);
  });
}

TEST(Layouts, ValuesAndIntegersOfPyTorch) {
  tests::run_ranks(2, [](comm::Communicator& world) {
    std::vector<std::int64_t> whole(7);
    std::vector<std::int32_t> small(7);
    Items items{{{"model.whole", DType::kInt64, {7}, 0, 7, whole.data()},
                 {"model.small", DType::kInt32, {7}, 0, 7, small.data()}},
                {}};
    const nlohmann::json expected = {{"int", 3},
                                     {"negative", -70000},
                                     {"large", 5000000000},
                                     {"largest", 18446744073709551615u},
                                     {"float", 0.1},
                                     {"true", true},
                                     {"none", nullptr},
                                     {"text", "déjà vu"},
                                     {"tuple", {0.9, 0.95}},
                                     {"empty", nlohmann::json::array()}};
    for (const auto& [key, value] : expected.items()) items.values.push_back({"values." + key, {}});
    for (const ValueItem& item : load(fixture("plain_1"), items, world))
      EXPECT_EQ(item.value, expected.at(item.key.substr(7))) << item.key;
    EXPECT_EQ(whole, (std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6}));
    EXPECT_EQ(small, (std::vector<std::int32_t>{0, 1, 2, 3, 4, 5, 6}));
  });
}

// As PyTorch before 2.4 wrote a dict without tensors: one entry for all of it.
TEST(Layouts, AValueMayHoldManyOfPyTorch) {
  tests::run_ranks(1, [](comm::Communicator& world) {
    const auto values = load(fixture("nested_1"), {{}, {{"train", {}}}}, world);
    const nlohmann::json expected = {{"step", 7}, {"names", {"a", "b"}}, {"rate", {{"now", 0.5}}}};
    EXPECT_EQ(values.at(0).value, expected);
    expect_counting(fixture("nested_1"), "model.", 1);
  });
}

class Foreign : public ::testing::Test {
 protected:
  Foreign() {
    std::string name = (fs::temp_directory_path() / "ptrain-XXXXXX").string();
    folder = std::string(mkdtemp(name.data())) + "/copy";
  }
  ~Foreign() override { fs::remove_all(fs::path(folder).parent_path()); }
  std::string folder;
};

// PyTorch itself loads this without a word.
TEST_F(Foreign, AFlippedBitInPyTorchsFileIsRefused) {
  fs::copy(fixture("sharded_2"), folder);
  ASSERT_TRUE(verify(folder)) << verify(folder).error().message;
  const dcp::Metadata metadata = read_folder_metadata(folder);
  const dcp::Location place = metadata.tensors.at("model.rows").chunks[0].location;
  std::fstream file(folder + "/" + place.file, std::ios::in | std::ios::out | std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(file)), {});
  const char quarter[] = {0, 0, '\x80', '\x3e'};  // 0.25: the second element
  const auto at = whole.find(std::string(quarter, 4), static_cast<std::size_t>(place.offset));
  ASSERT_NE(at, std::string::npos);
  file.clear();
  file.seekp(static_cast<std::streamoff>(at + 1));
  file.put(1);
  file.close();
  const Status status = verify(folder);
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("'model.rows' in"), std::string::npos);
  EXPECT_NE(status.error().message.find("the checksum of its record data/0 differs"),
            std::string::npos);
}

// What is saved by some ranks and loaded by others, each with unequal parts that split rows.
TEST_F(Foreign, OursLoadsOnOtherRanks) {
  for (const int writers : {1, 2, 3, 5}) {
    tests::run_ranks(writers, [&](comm::Communicator& world) {
      const auto items_of = [&](int rank) {
        Items items;
        for (const auto& shape : std::vector<dcp::Sizes>{{17, 6}, {3, 5, 7}, {}, {2}, {40, 333}}) {
          const std::int64_t count = dcp::volume(shape);
          const std::string key = "model.t" + std::to_string(items.tensors.size() + 1);
          items.tensors.push_back({key, DType::kFloat64, shape, cut(count, rank, writers),
                                   cut(count, rank + 1, writers)});
        }
        return items;
      };
      Items items = items_of(world.rank());
      std::vector<std::vector<double>> parts;
      for (TensorItem& item : items.tensors)
        item.data = parts.emplace_back(counting(item.begin, item.end)).data();
      save(folder, items, world, items_of);
    });
    for (const int readers : {1, 2, 4}) expect_counting(folder, "model.", readers);
  }
}

// Two chunks that hold the same elements, as a writer without deduplication leaves them: the
// metadata of two checkpoints of one tensor joined by hand.
TEST_F(Foreign, AnElementStoredTwiceMustBeTheSame) {
  for (const float second : {1.0f, 2.0f}) {
    fs::remove_all(folder);
    tests::run_ranks(1, [&](comm::Communicator& world) {
      std::vector<float> ones(4, 1), others(4, second);
      save(folder,
           {{{"w", DType::kFloat32, {4}, 0, 4, ones.data()},
             {"x", DType::kFloat32, {4}, 0, 4, others.data()}},
            {}},
           world);
      dcp::Metadata metadata = read_folder_metadata(folder);
      dcp::TensorEntry& entry = metadata.tensors.at("w");
      entry.shape = {6};  // w at 0 to 4, x at 2 to 6
      entry.chunks.push_back(metadata.tensors.at("x").chunks[0]);
      entry.chunks[1].box.offsets = {2};
      fs::remove(folder + "/ptrain.json");
      const auto bytes = dcp::write_metadata(metadata);
      std::ofstream(folder + "/.metadata", std::ios::binary)
          .write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
      std::vector<float> found(6);
      const Items wanted{{{"w", DType::kFloat32, {6}, 0, 6, found.data()}}, {}};
      if (second == 1.0f) {
        load(folder, wanted, world);
        EXPECT_EQ(found, std::vector<float>(6, 1));
        return;
      }
      try {
        load(folder, wanted, world);
        ADD_FAILURE() << "loaded";
      } catch (const EngineError& error) {
        EXPECT_NE(std::string(error.what()).find("element 2 is stored twice with different"),
                  std::string::npos)
            << error.what();
      }
    });
  }
}

TEST_F(Foreign, ElementsThatNoRankHoldsOrTwoHoldAreRefused) {
  const auto save_runs = [&](std::int64_t first_end, std::int64_t second_begin) {
    tests::run_ranks(2, [&](comm::Communicator& world) {
      std::vector<float> data(8);
      const auto items_of = [&](int rank) {
        const std::int64_t begin = rank == 0 ? 0 : second_begin, end = rank == 0 ? first_end : 8;
        return Items{{{"w", DType::kFloat32, {8}, begin, end, data.data()}}, {}};
      };
      try {
        save(folder, items_of(world.rank()), world, items_of);
        ADD_FAILURE() << "saved";
      } catch (const EngineError& error) {  // the same on both ranks
        EXPECT_NE(std::string(error.what()).find("tensor 'w' cannot be saved: element"),
                  std::string::npos)
            << error.what();
      }
    });
    EXPECT_FALSE(fs::exists(folder));
  };
  save_runs(3, 5);
  save_runs(5, 4);
}

}  // namespace
}  // namespace ptrain::checkpoint
