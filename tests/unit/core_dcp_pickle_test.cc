#include <gtest/gtest.h>

#include <string>

#include "core/dcp/item.h"
#include "core/dcp/pickle.h"

namespace ptrain::dcp {
namespace {

using nlohmann::json;

std::string from_hex(std::string_view hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes.push_back(static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  return bytes;
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::string refusal(const std::string& text, const PickleLimits& limits = {}) {
  const auto tree = read_pickle(bytes_of(text), limits);
  return tree ? "accepted" : tree.error().message;
}

// pickle.dumps of {'a': [1, -2, 300, 70000, 2**31, -2**31, -2**40, 2**64-1], 'b': (True, False,
// None), 'c': 0.1, 'd': 'é'} by Python 3.11, protocols 2 and 5.
constexpr const char* kProtocol2 =
    "80027d71002858010000006171015d7102284b014afeffffff4d2c014a701101008a0500000080004a000000808a06"
    "0000000000ff8a09ffffffffffffffff0065580100000062710388894e8771045801000000637105473fb999999999"
    "999a58010000006471065802000000c3a97107752e";
constexpr const char* kProtocol5 =
    "80059563000000000000007d94288c0161945d94284b014afeffffff4d2c014a701101008a0500000080004a000000"
    "808a060000000000ff8a09ffffffffffffffff00658c01629488894e87948c016394473fb999999999999a8c016494"
    "8c02c3a994752e";

TEST(Pickle, ReadsWhatPythonWrites) {
  const json expected = {
      {"a", {1, -2, 300, 70000, 2147483648, -2147483648, -1099511627776, 18446744073709551615u}},
      {"b", {true, false, nullptr}},
      {"c", 0.1},
      {"d", "é"}};
  for (const char* hex : {kProtocol2, kProtocol5}) {
    const auto value = read_value(bytes_of(from_hex(hex)));
    ASSERT_TRUE(value) << value.error().message;
    EXPECT_EQ(*value, expected);
  }
}

TEST(Pickle, WritesPlainValuesThatReadBack) {
  const json value = {{"list", {1, -1, 255, 256, 5000000000, "text", "text", 2.5, {true, nullptr}}},
                      {"empty", json::array()},
                      {"unsigned", 18446744073709551615u}};
  EXPECT_EQ(read_value(write_value(value)).value(), value);
}

// pickle.dumps of an object whose __reduce__ says os.system('echo hi').
TEST(Pickle, RunsNothing) {
  const std::string hostile =
      from_hex("800263706f7369780a73797374656d0a710058070000006563686f20686971018571025271032e");
  const auto tree = read_pickle(bytes_of(hostile));
  ASSERT_TRUE(tree);
  EXPECT_TRUE(tree->is_global(tree->at(tree->root).items[0], "posix", "system"));
  EXPECT_EQ(read_value(bytes_of(hostile)).error().message,
            "not a plain value: it holds an object of class 'system'");
}

TEST(Pickle, RefusesAValueInsideItself) {
  EXPECT_NE(refusal(from_hex("80025d71006800612e")).find("contains itself"), std::string::npos);
}

TEST(Pickle, RefusesDeepNesting) {
  const std::string deep = std::string(5000, ']') + std::string(4999, 'a') + ".";
  EXPECT_NE(refusal(deep).find("nested too deep"), std::string::npos);
}

TEST(Pickle, RefusesHugeSizesWithoutAllocating) {
  EXPECT_NE(refusal(from_hex("8004"
                             "8dffffffffffffff7f"
                             "2e"))
                .find("bytes are missing"),
            std::string::npos);
  EXPECT_NE(refusal(from_hex("80024e72ffffffff2e")).find("out of range"), std::string::npos);
}

TEST(Pickle, RefusesMoreValuesThanTheLimit) {
  EXPECT_NE(refusal("(K\1K\2K\3l.", {.nodes = 3, .depth = 9}).find("too many values"),
            std::string::npos);
}

TEST(Pickle, RefusesUnknownOpcodesAndEmptyStacks) {
  EXPECT_NE(refusal("i.").find("opcode 0x69 is not used"), std::string::npos);
  for (const char* broken :
       {"a.", "(.", "t.", "s.", "b.", "R.", "h\1.", "}a.", "NN.", "Nb.", "1.", ""})
    EXPECT_NE(refusal(broken), "accepted") << broken;
}

TEST(Pickle, EveryTruncationIsRefused) {
  const std::string whole = from_hex(kProtocol2);
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_NE(refusal(whole.substr(0, size)), "accepted") << size;
}

// A list of two of the same list, forty times over: small to read, endless to copy.
TEST(Pickle, CopiesOfSharedValuesAreBounded) {
  std::string bomb = "]";
  for (int i = 0; i < 40; ++i)
    bomb +=
        "q\1"
        "0]h\1"
        "ah\1"
        "a";
  bomb += ".";
  EXPECT_EQ(refusal(bomb), "accepted");
  EXPECT_EQ(read_value(bytes_of(bomb)).error().message,
            "not a plain value: it holds too many values");
}

}  // namespace
}  // namespace ptrain::dcp
