#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "engine/base/engine_error.h"
#include "engine/checkpoint/safetensors_narrow.h"
#include "engine/checkpoint/safetensors_reader.h"
#include "tests/support/ranks.h"
#include "tests/support/small_llama.h"

namespace ptrain::checkpoint {
namespace {

namespace fs = std::filesystem;

std::string fixture(const std::string& name) {
  return std::string(std::getenv("PTRAIN_SOURCE_DIR")) + "/tests/fixtures/safetensors/" + name;
}

// The model of tests/fixtures/safetensors/make.py.
model::Architecture architecture(bool tied) { return support::small_llama(2, tied, 16); }

// Loads the model in unequal runs and compares each element with what make.py wrote.
template <class T>
void expect_loads(const std::string& folder, bool tied, int ranks) {
  const auto model = architecture(tied);
  tests::run_ranks(ranks, [&](comm::Communicator& world) {
    std::vector<std::vector<T>> parts(model.parameters.size());
    std::vector<TensorItem> items;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const auto& parameter = model.parameters[i];
      const auto cut = [&](std::int64_t rank) {
        return parameter.num_elements() * rank * rank / (ranks * ranks);
      };
      const std::int64_t begin = cut(world.rank()), end = cut(world.rank() + 1);
      parts[i].assign(static_cast<std::size_t>(end - begin), -1);
      items.push_back({parameter.name, sizeof(T) == 4 ? DType::kFloat32 : DType::kFloat64,
                       parameter.shape, begin, end, parts[i].data()});
    }
    load_safetensors(folder, model, items, world);
    for (std::size_t i = 0; i < parts.size(); ++i)
      for (std::int64_t at = items[i].begin; at < items[i].end; ++at)
        ASSERT_EQ(parts[i][static_cast<std::size_t>(at - items[i].begin)],
                  static_cast<T>(at % 251) / 4)
            << items[i].key << " " << at;
  });
}

// A copy of a fixture, to be spoiled.
class Copy {
 public:
  explicit Copy(const std::string& name) {
    path_ = (fs::temp_directory_path() / "safetensors-XXXXXX").string();
    if (::mkdtemp(path_.data()) == nullptr) throw std::runtime_error("no folder");
    fs::copy(fixture(name), path_);
  }
  ~Copy() { fs::remove_all(path_); }
  Copy(const Copy&) = delete;
  Copy& operator=(const Copy&) = delete;
  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

std::string why(const std::string& folder, bool tied) {
  std::string message;
  tests::run_ranks(2, [&](comm::Communicator& world) {
    try {
      load_safetensors(folder, architecture(tied), {}, world);
    } catch (const EngineError& error) {
      EXPECT_EQ(error.error().code, ExitCode::kUnusable);
      EXPECT_FALSE(error.error().hint.empty());
      if (world.rank() == 0) message = error.what();
    }
  });
  return message;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Safetensors, LoadsOnAnyNumberOfRanks) {
  for (const int ranks : {1, 2, 3}) {
    expect_loads<float>(fixture("llama_free_sharded"), false, ranks);
    expect_loads<float>(fixture("llama_tied"), true, ranks);
    expect_loads<double>(fixture("llama_tied"), true, ranks);
  }
}

// Columns 2 to 4 of the embedding's 16 rows of 8, of them all but the first element.
TEST(Safetensors, LoadsColumns) {
  tests::run_ranks(2, [](comm::Communicator& world) {
    std::vector<float> found(47);
    TensorItem item{"model.embed_tokens.weight", DType::kFloat32, {16, 8}, 1, 48, found.data()};
    item.part = {{0, 2}, {16, 3}};
    load_safetensors(fixture("llama_tied"), architecture(true), {&item, 1}, world);
    for (std::size_t i = 1; i < 48; ++i)
      EXPECT_EQ(found[i - 1], static_cast<float>(i / 3 * 8 + 2 + i % 3) / 4) << i;
  });
}

TEST(Safetensors, ConvertsEveryDTypeOfWeights) {
  expect_loads<float>(fixture("llama_mixed"), true, 2);
  expect_loads<double>(fixture("llama_mixed"), true, 3);
}

TEST(Safetensors, FollowsLinksAsInTheCacheOfHuggingFace) {
  const Copy copy("llama_tied");
  fs::create_directory(copy.file("snapshot"));
  fs::create_symlink("../model.safetensors", copy.file("snapshot/model.safetensors"));
  expect_loads<float>(copy.file("snapshot"), true, 1);
}

// The first byte of the data stands wherever the header ends: with another space in it, elsewhere.
TEST(Safetensors, TensorsNeedNotBeAligned) {
  for (const std::size_t shift : {1, 2, 3, 5}) {
    const Copy copy("llama_mixed");
    std::ostringstream text;
    text << std::ifstream(copy.file("model.safetensors"), std::ios::binary).rdbuf();
    std::string bytes = text.str();
    std::uint64_t header = 0;
    std::memcpy(&header, bytes.data(), sizeof header);
    bytes.insert(sizeof header + header, shift, ' ');
    header += shift;
    std::memcpy(bytes.data(), &header, sizeof header);
    std::ofstream(copy.file("model.safetensors"), std::ios::binary) << bytes;
    ASSERT_NE((sizeof header + header) % 8, 0u);
    expect_loads<float>(copy.path(), true, 2);
    expect_loads<double>(copy.path(), true, 1);
  }
}

TEST(Safetensors, RefusesATiedHeadOfItsOwn) {
  const Copy copy("llama_mixed");
  std::fstream file(copy.file("model.safetensors"),
                    std::ios::binary | std::ios::in | std::ios::out);
  std::ostringstream text;
  text << file.rdbuf();
  const std::string bytes = text.str();
  const double last = 127.0 / 4;  // element 127 of the head, the only one of these 8 bytes
  const std::size_t at = bytes.rfind(std::string(reinterpret_cast<const char*>(&last), 8));
  ASSERT_NE(at, std::string::npos);
  file.seekp(static_cast<std::streamoff>(at));
  file.put('\1');
  file.close();
  const std::string message = why(copy.path(), true);
  EXPECT_TRUE(has(message, "'embed_tokens.weight' and 'lm_head.weight' hold different values"))
      << message;
}

TEST(Safetensors, RefusesWhatDoesNotFitOnAllRanksAtOnce) {
  const Copy copy("llama_free_sharded");
  fs::resize_file(copy.file("model-00001-of-00003.safetensors"), 2000);
  fs::remove(copy.file("model-00003-of-00003.safetensors"));
  const std::string message = why(copy.path(), false);
  EXPECT_TRUE(has(message, "model-00001-of-00003.safetensors: it is cut off")) << message;
  EXPECT_TRUE(has(message, "model-00003-of-00003.safetensors: it is missing")) << message;
  EXPECT_TRUE(has(why(fixture("llama_tied"), false), "'lm_head.weight' is missing"));
}

// Loads all of the model on two ranks.
std::string why_loading_fails(const std::string& folder) {
  const auto model = architecture(true);
  std::string message;
  tests::run_ranks(2, [&](comm::Communicator& world) {
    std::vector<std::vector<float>> parts;
    std::vector<TensorItem> items;
    for (const auto& parameter : model.parameters) {
      const std::int64_t half = parameter.num_elements() / 2, begin = world.rank() * half;
      auto& part = parts.emplace_back(static_cast<std::size_t>(half));
      items.push_back(
          {parameter.name, DType::kFloat32, parameter.shape, begin, begin + half, part.data()});
    }
    try {
      load_safetensors(folder, model, items, world);
    } catch (const EngineError& error) {
      EXPECT_EQ(error.error().code, ExitCode::kUnusable);
      EXPECT_FALSE(error.error().hint.empty());
      if (world.rank() == 0) message = error.what();
    }
  });
  return message;
}

TEST(Safetensors, NamesWeightsThatAreNotFiniteAndTheirFile) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), -HUGE_VALF}) {
    const Copy copy("llama_tied");
    const std::string path = copy.file("model.safetensors");
    EXPECT_EQ(why_loading_fails(copy.path()), "");
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(-4, std::ios::end);
    file.write(reinterpret_cast<const char*>(&bad), sizeof bad);
    file.close();
    EXPECT_TRUE(has(why_loading_fails(copy.path()),
                    "not finite numbers (NaN or infinity): 'model.norm.weight' in " + path));
  }
}

std::uint16_t narrowed(float value, const char* dtype, bool fits = true) {
  std::uint16_t bits = 0;
  EXPECT_EQ(narrow({&value, 1}, export_dtype(dtype), reinterpret_cast<std::byte*>(&bits)), fits);
  return bits;
}

TEST(Safetensors, RoundsToHalf) {  // bits: IEEE 754 binary16, as numpy.float16 prints them
  const auto half = [](double value) { return narrowed(static_cast<float>(value), "fp16"); };
  EXPECT_EQ(half(0.0), 0x0000);
  EXPECT_EQ(half(-0.0), 0x8000);
  EXPECT_EQ(half(1.0), 0x3c00);
  EXPECT_EQ(half(-2.0), 0xc000);
  EXPECT_EQ(half(1.0 / 3), 0x3555);
  EXPECT_EQ(half(0.1), 0x2e66);
  EXPECT_EQ(half(65504.0), 0x7bff);
  EXPECT_EQ(half(65519.0), 0x7bff);
  EXPECT_EQ(half(1 + std::ldexp(1, -11)), 0x3c00);  // a tie, to even
  EXPECT_EQ(half(1 + 3 * std::ldexp(1, -11)), 0x3c02);
  EXPECT_EQ(half(std::ldexp(1, -14)), 0x0400);
  EXPECT_EQ(half(std::ldexp(1, -24)), 0x0001);
  EXPECT_EQ(half(std::ldexp(1, -25)), 0x0000);
  EXPECT_EQ(half(1.5 * std::ldexp(1, -24)), 0x0002);
  EXPECT_EQ(half(std::ldexp(1, -14) * (1 - std::ldexp(1, -12))), 0x0400);
  EXPECT_EQ(half(std::numeric_limits<double>::infinity()), 0x7c00);
  EXPECT_EQ(narrowed(65520.0F, "fp16", false), 0x7c00);
  EXPECT_EQ(half(std::nan("")) & 0x7c00, 0x7c00);
}

TEST(Safetensors, RoundsToBrainFloat) {
  EXPECT_EQ(narrowed(1.0F, "bf16"), 0x3f80);
  EXPECT_EQ(narrowed(1.00390625F, "bf16"), 0x3f80);  // 1 + 2^-8: a tie, to even
  EXPECT_EQ(narrowed(1.01171875F, "bf16"), 0x3f82);  // 1 + 3 * 2^-8
  EXPECT_EQ(narrowed(-3.0e38F, "bf16"), 0xff62);
}

}  // namespace
}  // namespace ptrain::checkpoint
