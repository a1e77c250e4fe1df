#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/dcp/metadata.h"
#include "core/dcp/pickle_writer.h"

namespace ptrain::dcp {
namespace {

const std::string kFixtures =
    std::string(std::getenv("PTRAIN_SOURCE_DIR")) + "/tests/fixtures/dcp/";

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string fixture(const std::string& name) { return content(kFixtures + name + "/.metadata"); }

Result<Metadata> read(const std::string& text) {
  return read_metadata(std::as_bytes(std::span(text)));
}

TEST(Metadata, OfFourRanks) {  // written by PyTorch 2.11: see make.py
  const Metadata metadata = read(fixture("sharded_4")).value();
  const TensorEntry& rows = metadata.tensors.at("model.rows");
  EXPECT_EQ(rows.dtype, "float32");
  EXPECT_EQ(rows.shape, (Sizes{17, 6}));
  ASSERT_EQ(rows.chunks.size(), 4u);  // torch.chunk: 5, 5, 5, 2
  EXPECT_EQ(rows.chunks[3].box, (Box{{15, 0}, {2, 6}}));
  EXPECT_EQ(rows.chunks[3].location.file, "__3_0.distcp");
  EXPECT_EQ(metadata.tensors.at("model.few").chunks.size(), 3u);  // the fourth is empty
  EXPECT_TRUE(metadata.values.contains("train.step"));
}

// Other pickle protocols, classes where older versions had them, paths of other versions of Python,
// objects that Megatron adds: see make_versions.py.
TEST(Metadata, OfOtherVersionsIsTheSame) {
  const Metadata expected = read(fixture("plain_1")).value();
  int num_versions = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kFixtures + "versions")) {
    const auto found = read(content(entry.path()));
    ASSERT_TRUE(found) << entry.path() << " " << found.error().message;
    EXPECT_EQ(found->tensors, expected.tensors) << entry.path();
    EXPECT_EQ(found->values, expected.values) << entry.path();
    ++num_versions;
  }
  EXPECT_EQ(num_versions, 10);
}

TEST(Metadata, WithoutHintsChunksAreFoundByTheirOffsets) {
  std::string text = fixture("sharded_4");
  const Metadata metadata = read(text).value();
  const std::size_t hint = text.find("\x05index");
  ASSERT_NE(hint, std::string::npos);
  text[hint + 5] = 'y';
  const Metadata again = read(text).value();
  for (const auto& [key, entry] : metadata.tensors)
    for (std::size_t i = 0; i < entry.chunks.size(); ++i) {
      const Location& location = again.tensors.at(key).chunks.at(i).location;
      EXPECT_EQ(location.file, entry.chunks[i].location.file) << key;
      EXPECT_EQ(location.offset, entry.chunks[i].location.offset) << key;
    }
}

TEST(Metadata, WritesWhatItReads) {
  const Metadata metadata = read(fixture("plain_1")).value();
  const Metadata again = read_metadata(write_metadata(metadata)).value();
  ASSERT_EQ(again.tensors.size(), metadata.tensors.size());
  for (const auto& [key, entry] : metadata.tensors) {
    EXPECT_EQ(again.tensors.at(key).shape, entry.shape);
    EXPECT_EQ(again.tensors.at(key).chunks[0].box, entry.chunks[0].box);
    EXPECT_EQ(again.tensors.at(key).chunks[0].location.offset, entry.chunks[0].location.offset);
  }
  EXPECT_EQ(again.values.size(), metadata.values.size());
}

TEST(Metadata, TruncationIsRefused) {
  const std::string whole = fixture("sharded_2");
  for (std::size_t size = 0; size < whole.size(); size += 7)
    EXPECT_FALSE(read(whole.substr(0, size))) << size;
}

Metadata one_tensor() {
  Metadata metadata;
  const Chunk chunk{{{0, 0}, {4, 2}}, {"__0_0.distcp", 0, 500, false}};
  metadata.tensors["w"] = {"float32", {4, 2}, {chunk}};
  metadata.paths["w"] = {"w"};
  return metadata;
}

std::string refusal(const Metadata& metadata) {
  const auto read_back = read_metadata(write_metadata(metadata));
  return read_back ? "accepted" : read_back.error().message;
}

TEST(Metadata, RefusesFilesOutsideTheFolder) {
  EXPECT_EQ(refusal(one_tensor()), "accepted");
  for (const char* file : {"../other/__0_0.distcp", "/etc/passwd", "a/../../b", "a//b", "."}) {
    Metadata metadata = one_tensor();
    metadata.tensors["w"].chunks[0].location.file = file;
    EXPECT_NE(refusal(metadata).find("lies outside the checkpoint"), std::string::npos) << file;
  }
}

TEST(Metadata, RefusesChunksOutsideTheTensorAndAbsurdShapes) {
  Metadata metadata = one_tensor();
  metadata.tensors["w"].chunks[0].box.offsets = {1, 0};
  EXPECT_NE(refusal(metadata).find("a chunk of 'w' lies outside"), std::string::npos);
  metadata = one_tensor();
  metadata.tensors["w"].shape = {std::int64_t{1} << 40, std::int64_t{1} << 40};
  EXPECT_NE(refusal(metadata).find("the shape of 'w' is absurd"), std::string::npos);
  metadata = one_tensor();
  metadata.tensors["w"].chunks[0].location.length = -1;
  EXPECT_NE(refusal(metadata).find("not a count"), std::string::npos);
}

TEST(Metadata, RefusesAnotherClassByName) {
  PickleWriter out;
  out.global("os", "system");
  out.op(Op::kEmptyTuple);
  out.op(Op::kReduce);
  const auto bytes = out.finish();
  const auto metadata = read_metadata(bytes);
  ASSERT_FALSE(metadata);
  EXPECT_NE(metadata.error().message.find("its class is system"), std::string::npos);
}

TEST(Metadata, RefusesControlCharactersInNames) {
  Metadata metadata = one_tensor();
  metadata.tensors["a\x1b[2J"] = metadata.tensors["w"];
  EXPECT_NE(refusal(metadata).find("a name is not text"), std::string::npos);
}

}  // namespace
}  // namespace ptrain::dcp
