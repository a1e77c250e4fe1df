#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <sstream>

#include "core/safetensors/header.h"

namespace ptrain::safetensors {
namespace {

std::string fixture(const std::string& name) {
  std::ifstream file(
      std::string(std::getenv("PTRAIN_SOURCE_DIR")) + "/tests/fixtures/safetensors/" + name,
      std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

Result<std::int64_t> length_of(const std::string& file) {
  const auto bytes = std::as_bytes(std::span(file));
  return header_length(bytes.first(std::min<std::size_t>(bytes.size(), 8)),
                       static_cast<std::int64_t>(file.size()));
}

std::string length_text(std::uint64_t length) {
  std::string text(8, '\0');
  std::memcpy(text.data(), &length, 8);
  return text;
}

std::string entry(const char* fields) { return std::string(R"({"a":{)") + fields + "}}"; }

std::string why(const std::string& json) {
  const auto header = read_header(json);
  if (header) return "";
  EXPECT_EQ(header.error().code, ExitCode::kUnusable);
  return header.error().message;
}

const Tensor& find(const Header& header, const std::string& name) {
  for (const Tensor& tensor : header.tensors)
    if (tensor.name == name) return tensor;
  throw std::runtime_error("no tensor " + name);
}

TEST(SafetensorsHeader, OfTheirOwnLibrary) {  // see tests/fixtures/safetensors/make.py
  const std::string file = fixture("values.safetensors");
  const std::int64_t length = length_of(file).value();
  const Header header = read_header(file.substr(8, static_cast<std::size_t>(length))).value();
  EXPECT_EQ(header.tensors.size(), 8u);
  EXPECT_EQ(header.metadata.at("note"), "a \"b\"");
  EXPECT_EQ(8 + length + header.data_bytes(), static_cast<std::int64_t>(file.size()));
  EXPECT_EQ(find(header, "double").shape, (std::vector<std::int64_t>{1, 2, 2}));
  EXPECT_EQ(find(header, "scalar").shape, std::vector<std::int64_t>{});
  EXPECT_EQ(find(header, "nothing").begin, find(header, "nothing").end);
  EXPECT_EQ(find(header, "brain").dtype, "BF16");
  const Tensor& whole = find(header, "whole");
  float values[4];
  std::memcpy(values, file.data() + 8 + length + whole.begin, sizeof values);
  EXPECT_EQ(values[1], -1.5F);
  EXPECT_EQ(values[3], 65280.0F);
}

TEST(SafetensorsHeader, WritesWhatItReads) {
  const std::string file = fixture("llama_tied/model.safetensors");
  const auto length = static_cast<std::size_t>(length_of(file).value());
  const Header header = read_header(file.substr(8, length)).value();
  const std::string start = write_header(header.tensors, header.metadata);
  EXPECT_EQ(start.size() % 8, 0u);
  EXPECT_EQ(read_header(start.substr(8)).value(), header);
  EXPECT_EQ(static_cast<std::size_t>(length_of(start).value()), start.size() - 8);
}

TEST(SafetensorsHeader, RefusesLengths) {
  EXPECT_FALSE(length_of("short"));
  EXPECT_FALSE(length_of(length_text(3) + "{}"));  // one byte too few
  EXPECT_EQ(length_of(length_text(2) + "{}").value(), 2);
  EXPECT_FALSE(length_of(length_text(~0ULL) + "{}"));
  const auto allowed = [](std::int64_t length) {
    const std::string text = length_text(static_cast<std::uint64_t>(length));
    return header_length(std::as_bytes(std::span(text)), std::int64_t{1} << 40).has_value();
  };
  EXPECT_TRUE(allowed(kMostHeader));
  EXPECT_FALSE(allowed(kMostHeader + 1));
}

TEST(SafetensorsHeader, RefusesWhatIsNoTensor) {
  EXPECT_EQ(why("{}"), "");
  EXPECT_EQ(why(entry(R"("dtype":"F32","shape":[2],"data_offsets":[0,8])")), "");
  for (const char* bad : {R"("dtype":"F32","shape":[2])",
                          R"("dtype":"F32","shape":[2],"data_offsets":[0,8],"more":1)",
                          R"("dtype":"F33","shape":[2],"data_offsets":[0,8])",
                          R"("dtype":32,"shape":[2],"data_offsets":[0,8])",
                          R"("dtype":"F32","shape":[-2],"data_offsets":[0,8])",
                          R"("dtype":"F32","shape":[2.0],"data_offsets":[0,8])",
                          R"("dtype":"F32","shape":2,"data_offsets":[0,8])",
                          R"("dtype":"F32","shape":[2],"data_offsets":[0,7])",
                          R"("dtype":"F32","shape":[2],"data_offsets":[8,0])",
                          R"("dtype":"F32","shape":[2],"data_offsets":[0])",
                          R"("dtype":"F32","shape":[2],"data_offsets":[0,99999999999999999999])",
                          R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0])"})
    EXPECT_NE(why(entry(bad)), "") << bad;
  for (const char* bad : {"", "[]", " {}", "{", "{}x", R"({"a":1})", R"({"__metadata__":{"a":1}})",
                          R"({"a":[[[[[]]]]]})"})
    EXPECT_NE(why(bad), "") << bad;
  EXPECT_NE(why(R"({"a\u001b[2J":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})"), "");
}

// Milliseconds; a minute or more where each tensor costs a look at all others.
TEST(SafetensorsHeader, HasAHundredThousandTensors) {
  std::string text = "{";
  for (int i = 0; i < 100000; ++i)
    text += fmt::format(R"({}"a{}":{{"dtype":"U8","shape":[1],"data_offsets":[{},{}]}})",
                        i == 0 ? "" : ",", i, i, i + 1);
  const std::clock_t begin = std::clock();
  const auto header = read_header(text + "}");
  ASSERT_TRUE(header);
  EXPECT_EQ(header->tensors.size(), 100000u);
  EXPECT_LT(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC, 10);
}

TEST(SafetensorsHeader, ShowsTheBeginningOfALongName) {
  const std::string name(100000, 'n');
  const std::string text = why("{\"" + name + "\":1}");
  EXPECT_EQ(text.substr(0, 208), "tensor '" + name.substr(0, 200));
  EXPECT_LT(text.size(), 300u);
}

TEST(SafetensorsHeader, RefusesOverlapsHolesAndDuplicates) {
  const auto two = [](const char* second, const char* offsets) {
    return std::string(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},")") + second +
           R"(":{"dtype":"U8","shape":[8],"data_offsets":)" + offsets + "}}";
  };
  EXPECT_EQ(why(two("b", "[8,16]")), "");
  EXPECT_NE(why(two("b", "[4,12]")).find("overlaps"), std::string::npos);
  EXPECT_NE(why(two("b", "[0,8]")).find("overlaps"), std::string::npos);
  EXPECT_NE(why(two("b", "[9,17]")).find("hole"), std::string::npos);
  EXPECT_NE(why(two("a", "[8,16]")).find("'a' twice"), std::string::npos);
}

}  // namespace
}  // namespace ptrain::safetensors
