#include <gtest/gtest.h>

#include "core/schedule/catalogue.h"
#include "core/schedule/generators/longest_path.h"
#include "tests/support/order_files.h"

// tests/fixtures/schedule: the lists that others' generators or a published rule give.
namespace ptrain::schedule {
namespace {

struct Known {
  const char* name;
  const char* file;
  Problem problem;
};

Problem sizes(int num_ranks, int num_virtual, int num_micro_batches, int group = 0) {
  return {.num_ranks = num_ranks,
          .num_virtual = num_virtual,
          .num_micro_batches = num_micro_batches,
          .group = group,
          .costs = {}};
}

const Known kKnown[] = {
    {"gpipe", "gpipe_p2_v1_m4", sizes(2, 1, 4)},
    {"gpipe", "gpipe_p4_v1_m8", sizes(4, 1, 8)},
    {"gpipe_lifo", "gpipe_lifo_p4_v1_m8", sizes(4, 1, 8)},
    {"gpipe_2bp", "gpipe_2bp_p4_v1_m4", sizes(4, 1, 4)},
    {"1f1b", "1f1b_p2_v1_m4", sizes(2, 1, 4)},
    {"1f1b", "1f1b_p4_v1_m2", sizes(4, 1, 2)},
    {"1f1b", "1f1b_p4_v1_m4", sizes(4, 1, 4)},
    {"1f1b", "1f1b_p4_v1_m8", sizes(4, 1, 8)},
    {"1f1b_2bp", "1f1b_2bp_p4_v1_m4", sizes(4, 1, 4)},
    {"1f1b_overlap", "1f1b_overlap_p4_v1_m8", sizes(4, 1, 8)},
    {"eager_1f1b", "eager_1f1b_p4_v1_m8", sizes(4, 1, 8)},
    {"interleaved_1f1b", "interleaved_1f1b_p2_v2_m4", sizes(2, 2, 4)},
    {"interleaved_1f1b", "interleaved_1f1b_p4_v2_m4", sizes(4, 2, 4)},
    {"interleaved_1f1b", "interleaved_1f1b_p4_v2_m8", sizes(4, 2, 8)},
    {"interleaved_1f1b", "interleaved_1f1b_G3_p2_v2_m5", sizes(2, 2, 5, 3)},
    {"interleaved_1f1b", "interleaved_1f1b_G8_p4_v2_m8", sizes(4, 2, 8, 8)},
    {"interleaved_1f1b", "torch_interleaved_1f1b_p4_v2_m3", sizes(4, 2, 3)},
    {"kimi_k2", "interleaved_1f1b_overlap_p4_v2_m8", sizes(4, 2, 8)},
    {"interleaved_h1", "sx_InterleavedH1_loop_p4_v2_m8", sizes(4, 2, 8)},
    {"interleaved_1f1b_plus_one", "sx_Interleaved1F1BPlusOne_p4_v2_m8", sizes(4, 2, 8)},
    {"breadth_first", "looped_bfs_p4_v2_m2", sizes(4, 2, 2)},
    {"breadth_first", "looped_bfs_p4_v2_m8", sizes(4, 2, 8)},
    {"breadth_first", "looped_bfs_p8_v2_m16", sizes(8, 2, 16)},
    {"breadth_first_fifo", "looped_bfs_fifo_p4_v2_m8", sizes(4, 2, 8)},
    {"zb_h1", "zb_h1_p2_v1_m4", sizes(2, 1, 4)},
    {"zb_h1", "zb_h1_p4_v1_m8", sizes(4, 1, 8)},
    {"zb_h2", "zb_h2_p4_v1_m8", sizes(4, 1, 8)},
    {"zb_h2", "zb_h2_p4_v1_m12", sizes(4, 1, 12)},
    {"interleaved_zb_1p", "torch_interleaved_zb1p_p2_v2_m8", sizes(2, 2, 8)},
    {"zb_v", "zbv_p2_v2_m4", sizes(2, 2, 4)},
    {"zb_v", "zbv_p4_v2_m8", sizes(4, 2, 8)},
    {"v_half", "v_half_p4_v2_m8", sizes(4, 2, 8)},
    {"v_half", "v_half_p4_v2_m12", sizes(4, 2, 12)},
    {"v_min", "v_min_p4_v2_m8", sizes(4, 2, 8)},
    {"v_min", "v_min_p8_v2_m16", sizes(8, 2, 16)},
    {"dualpipe_v", "dualpipev_p2_v2_m4", sizes(2, 2, 4)},
    {"dualpipe_v", "dualpipev_p4_v2_m8", sizes(4, 2, 8)},
};

TEST(Orders, AreThoseOfOthers) {
  for (const Known& known : kKnown) {
    const auto made = make(known.name, known.problem);
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_EQ(test::order_text(*made),
              test::order_text(test::read_order(known.file + std::string(".csv"))))
        << known.file;
  }
}

// The scheduler behind interleaved_h1 on other placements, and with a forward more.
TEST(Orders, OfTheLongestPathAreThoseOfSpectrax) {
  const auto expect = [](const char* file, int num_virtual, Placement placement, int extra) {
    const Schedule made = longest_path_first(sizes(4, num_virtual, 8), placement, extra);
    EXPECT_EQ(test::order_text(made), test::order_text(test::read_order(file))) << file;
  };
  expect("sx_Std1F1B_p4_v1_m8.csv", 1, Placement::kLoop, 0);
  expect("sx_InterleavedH1_contiguous_p4_v2_m8.csv", 2, Placement::kContiguous, 0);
  expect("sx_KimiK2_contiguous_p4_v2_m8.csv", 2, Placement::kContiguous, 1);
  expect("sx_KimiK2_interleaved_p4_v2_m8.csv", 2, Placement::kLoop, 1);
}

}  // namespace
}  // namespace ptrain::schedule
