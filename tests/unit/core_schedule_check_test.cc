#include <gtest/gtest.h>

#include "core/schedule/check.h"
#include "core/schedule/csv.h"
#include "core/schedule/transfers.h"
#include "tests/support/order_files.h"

namespace ptrain::schedule {
namespace {

// Why a file is refused; empty: it is not.
std::string why(const std::string& csv, int num_micro_batches = 0) {
  auto schedule = from_csv(csv, "own.csv");
  if (!schedule) return schedule.error().message;
  if (num_micro_batches > 0) schedule->num_micro_batches = num_micro_batches;
  const auto status = check(*schedule);
  return status ? "" : status.error().message;
}

TEST(Check, AcceptsOrders) {
  EXPECT_EQ(why("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n"), "");
  EXPECT_EQ(why("0F0,,0I0,0W0\n"), "");
  EXPECT_EQ(why("0F0,0F1,(0F2;0B0)OVERLAP_F_B,0B1,0B2\n"), "");
  EXPECT_EQ(why("0F0.0,0F0.1,0B0.1,0B0.0\n"), "");
}

TEST(Check, AcceptsEveryOrderThatIsPublished) {
  int orders = 0;
  for (const auto& row : test::read_table("summary.csv")) {
    if (row.at("file").starts_with("vocab_")) continue;
    const auto status = check(test::read_order(row.at("file")));
    EXPECT_TRUE(status) << row.at("file") << ": " << status.error().message;
    ++orders;
  }
  EXPECT_GE(orders, 300);
}

TEST(Check, NamesWhatIsMissing) {
  EXPECT_EQ(why("0F0,0B0,0B1\n1F0,1B0,1F1,1B1\n"), "rank 0, cell 3 (0B1): there is no 0F1");
  EXPECT_EQ(why("0F0,0B0\n1F0,1B0,1F1,1B1\n"), "rank 0 lacks 0F1");
  EXPECT_EQ(why("0F0,0F1,0B0\n"), "rank 0, cell 2 (0F1): there is no 0B1 for it");
  EXPECT_EQ(why("0F0,0I0\n"), "rank 0, cell 2 (0I0): there is no 0W0 for it");
  EXPECT_EQ(why("0F0,0W0,0B0\n"), "rank 0, cell 2 (0W0): there is no 0I0");
  EXPECT_EQ(why("0F0,0B0\n2F0,2B0\n"), "no rank works on stage 1");
  EXPECT_EQ(why("0F0,0B0\n\n1F0,1B0\n"), "rank 1 has nothing to do");
}

TEST(Check, NamesWhatComesTooEarly) {
  EXPECT_EQ(why("0F0,0W0,0I0\n"), "rank 0, cell 2 (0W0): comes before 0I0, cell 3 of rank 0");
  EXPECT_EQ(why("0B0,0F0\n"), "rank 0, cell 1 (0B0): comes before 0F0, cell 2 of rank 0");
}

TEST(Check, NamesWhatComesTwice) {
  EXPECT_EQ(why("0F0,0F0,0B0\n"), "rank 0, cell 2 (0F0): comes again after cell 1 of rank 0");
  EXPECT_EQ(why("0F0,0B0,0I0,0W0\n"), "rank 0, cell 3 (0I0): cell 2 of rank 0 has 0B0 already");
  EXPECT_EQ(why("0F0,0B0\n0F1,0B1\n"), "rank 0, cell 1 (0F0): stage 0 is on rank 1 too");
}

TEST(Check, NamesWhatIsOutOfRange) {
  EXPECT_EQ(why("0F0,0B0,0F1,0B1\n", 1), "rank 0, cell 3 (0F1): there are 1 micro-batches");
  EXPECT_EQ(why("0F0*2,0B0*2\n"),
            "rank 0, cell 1 (0F0.0*2): there are at most 2 copies of the weights");
  EXPECT_EQ(
      why("0F0,0B0,0F10,0B1\n"),
      "rank 0, cell 3 (0F10): 1 stages, 11 micro-batches and 1 slices need more than 4 cells");
  EXPECT_EQ(
      why("999999F0,0F999999\n"),
      "rank 0, cell 1 (999999F0): 1000000 stages, 1000000 micro-batches and 1 slices need more "
      "than 2 cells");
}

TEST(Check, NamesPairsThatCannotBe) {
  EXPECT_EQ(why("(0F0;0B0)OVERLAP_F_B\n"),
            "rank 0, cell 1 (0F0): 0F0 and 0B0 cannot overlap, for one needs the other");
  EXPECT_EQ(why("(0F0;0F1)OVERLAP_F_B,0B0,0B1\n"),
            "rank 0, cell 1 (0F0): a pair is of one F and one B or I");
}

TEST(Check, KeepsAMicroBatchOnOneCopy) {
  EXPECT_EQ(why("0F0.0*0,0B0.0*0,1F0.0*1,1B0.0*1\n"),
            "rank 0, cell 3 (1F0.0*1): cell 1 of rank 0 runs this micro-batch on the other copy of "
            "the weights");
}

TEST(Check, NamesTheRingThatHangs) {
  EXPECT_EQ(why("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n"),
            "the schedule hangs: rank 0 at 0B0 (cell 2) waits for 1B0 of rank 1, rank 1 at 1F1 "
            "(cell 2) waits for 0F1 of rank 0");
  EXPECT_EQ(why("0F0.1,0F0.0,0B0.1,0B0.0\n"),
            "the schedule hangs: rank 0 at 0F0.1 (cell 1) waits for 0F0 of rank 0");
}

std::string why_not_sent(const std::string& csv, Sends sends) {
  const auto steps = steps_from_csv(csv, "own.csv");
  if (!steps) return steps.error().message;
  const auto status = check_transfers(*steps, sends);
  return status ? "" : status.error().message;
}

// pytorch/pytorch#172668: what hung when RECVs were put off. 2RECV_B0 stands behind a send that
// waits for a rank that sends itself.
TEST(Transfers, HangWhereSendsWait) {
  const std::string deferred =
      "2SEND_F1,0F2,0SEND_F2,2RECV_B0,2B0\n3RECV_F1,3SEND_B0,3F1,3B1,1RECV_F2,3SEND_B1,1F2\n";
  EXPECT_EQ(why_not_sent(deferred, Sends::kRendezvous),
            "the transfers hang: rank 0 at 0SEND_F2 (cell 3) waits for 1RECV_F2 of rank 1, rank 1 "
            "at 3SEND_B0 (cell 2) waits for 2RECV_B0 of rank 0");
  const std::string crossed = "0SEND_F1,2RECV_F0\n1SEND_F0,1RECV_F1\n";
  EXPECT_EQ(why_not_sent(crossed, Sends::kRendezvous),
            "the transfers hang: rank 0 at 0SEND_F1 (cell 1) waits for 1RECV_F1 of rank 1, rank 1 "
            "at 1SEND_F0 (cell 1) waits for 2RECV_F0 of rank 0");
}

TEST(Transfers, AreEachOnceWithAPartner) {
  const std::string right = "0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n";
  EXPECT_EQ(why_not_sent(right, Sends::kAsynchronous), "");
  EXPECT_EQ(why_not_sent(right, Sends::kRendezvous), "");
  const auto asynchronous = [](const std::string& csv) {
    return why_not_sent(csv, Sends::kAsynchronous);
  };
  EXPECT_EQ(asynchronous("0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1RECV_F0,1F0,1B0,1SEND_B0\n"),
            "rank 1, cell 2 (1RECV_F0): comes twice");
  EXPECT_EQ(asynchronous("0F0,0SEND_F0,0RECV_B0,0B0\n1F0,1RECV_F0,1B0,1SEND_B0\n"),
            "rank 1, cell 1 (1F0): there is no 1RECV_F0 before it");
  EXPECT_EQ(asynchronous("0SEND_F0,0F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n"),
            "rank 0, cell 1 (0SEND_F0): there is no 0F0 before it");
  EXPECT_EQ(asynchronous("0F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n"),
            "the transfers hang: rank 0 at 0RECV_B0 (cell 2) waits for 1SEND_B0 of rank 1, rank 1 "
            "at 1RECV_F0 (cell 1) waits for 0SEND_F0, which does not come");
  EXPECT_EQ(asynchronous("0F0,0SEND_F0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n"),
            "rank 0, cell 3 (0B0): there is no 0RECV_B0 before it");
}

TEST(Transfers, NeedGatheredStages) {
  EXPECT_EQ(why_not_sent("0UNSHARD,0F0,0B0,0REDUCE_GRAD,0RESHARD\n", Sends::kAsynchronous), "");
  EXPECT_EQ(why_not_sent("0UNSHARD,0F0,0RESHARD,0B0\n", Sends::kAsynchronous),
            "rank 0, cell 4 (0B0): there is no 0UNSHARD before it");
}

// With a RECV just before its work and a SEND just after, sends may wait in GPipe, but not in 1F1B.
TEST(Transfers, OfSchedules) {
  const auto lowered = [](const std::string& csv) { return with_transfers(*from_csv(csv, "")); };
  EXPECT_TRUE(check_transfers(lowered("0F0,0F1,0B0,0B1\n1F0,1F1,1B0,1B1\n"), Sends::kRendezvous));
  const auto one_f_one_b = lowered("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
  EXPECT_FALSE(check_transfers(one_f_one_b, Sends::kRendezvous));
  EXPECT_TRUE(check_transfers(one_f_one_b, Sends::kAsynchronous));
}

}  // namespace
}  // namespace ptrain::schedule
