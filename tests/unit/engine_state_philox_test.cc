#include <gtest/gtest.h>

#include "engine/state/philox.h"

namespace ptrain::state {
namespace {

// The three philox4x32-10 lines of Random123's tests/kat_vectors (counter, key, output).
TEST(Philox, GivesThePublishedVectors) {
  EXPECT_EQ(philox({0, 0, 0, 0}, 0),
            (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, 0xffffffffffffffff),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0x299f31d0a4093822),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, CountsBlocksInTwoWords) {
  EXPECT_EQ(philox_counter((std::int64_t{5} << 32) + 7, 3, 9), (PhiloxCounter{7, 5, 3, 9}));
}

}  // namespace
}  // namespace ptrain::state
