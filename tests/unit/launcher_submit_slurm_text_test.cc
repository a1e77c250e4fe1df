#include <gtest/gtest.h>

#include "launcher/submit/slurm_text.h"

namespace ptrain::submit {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

// As Slurm 22.05.8 writes them, with parts that say nothing here left out.
constexpr const char* kPartitions =
    "PartitionName=all AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL AllocNodes=ALL Default=YES "
    "QoS=N/A DefaultTime=NONE MaxNodes=UNLIMITED MaxTime=UNLIMITED MinNodes=0 Nodes=node[1-4] "
    "State=UP TotalCPUs=16 TotalNodes=4 TRES=cpu=16,mem=16G,node=4,billing=16\n"
    "PartitionName=short AllowGroups=ALL AllowAccounts=physics,maths AllowQos=ALL AllocNodes=ALL "
    "Default=NO QoS=N/A DefaultTime=NONE MaxNodes=2 MaxTime=00:10:00 MinNodes=0 Nodes=node[1-3] "
    "State=DOWN TotalCPUs=12 TotalNodes=3 TRES=cpu=12,mem=12G,node=3,billing=12\n";

constexpr const char* kNodes =
    "NodeName=node1 Arch=x86_64 CoresPerSocket=4  CPUAlloc=0 CPUEfctv=4 CPUTot=4 CPULoad=0.53 "
    "AvailableFeatures=(null) ActiveFeatures=(null) Gres=(null) NodeAddr=10.0.0.1 "
    "OS=Linux 6.18.44 #1 SMP PREEMPT_DYNAMIC @0  RealMemory=4096 AllocMem=0 FreeMem=19712 "
    "Sockets=1 Boards=1 State=IDLE ThreadsPerCore=1 TmpDisk=0 Weight=1 Partitions=all  \n"
    "NodeName=fat1 Arch=x86_64 CoresPerSocket=32 CPUTot=128 AvailableFeatures=fat,ib "
    "RealMemory=1 Sockets=2 State=IDLE+DRAIN ThreadsPerCore=2 Partitions=all,short \n"
    "NodeName=off1 CPUTot=8 RealMemory=1 State=IDLE* ThreadsPerCore=1 Partitions=all \n";

TEST(SlurmText, Partitions) {
  const auto found = partitions(kPartitions);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0], (Partition{"all", true, true, 4, 0, "UNLIMITED", {}}));
  EXPECT_EQ(found[1], (Partition{"short", false, false, 3, 2, "00:10:00", {"physics", "maths"}}));
  EXPECT_TRUE(partitions("slurm_load_partitions: Unable to contact slurm controller").empty());
}

TEST(SlurmText, Nodes) {
  const auto found = node_lines(kNodes);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0],
            (NodeLine{"node1", 4, 1, std::int64_t{4096} << 20, {}, {"all"}, NodeState::kIdle}));
  EXPECT_EQ(found[1],
            (NodeLine{"fat1", 64, 2, 0, {"fat", "ib"}, {"all", "short"}, NodeState::kDrained}));
  EXPECT_EQ(found[2].state, NodeState::kDown) << "the star: it does not respond";
}

// The words of scontrol's manual, under State.
TEST(SlurmText, StatesOfNodes) {
  for (const char* idle : {"IDLE", "IDLE+CLOUD+POWERED_DOWN", "IDLE+POWERING_DOWN", "IDLE+PLANNED"})
    EXPECT_EQ(node_state(idle), NodeState::kIdle) << idle;
  for (const char* busy :
       {"ALLOCATED", "MIXED", "COMPLETING", "RESERVED", "ALLOCATED+CLOUD", "IDLE+RESERVED",
        "IDLE+MAINTENANCE+RESERVED", "IDLE+MAINT", "IDLE+BLOCKED", "IDLE+COMPLETING"})
    EXPECT_EQ(node_state(busy), NodeState::kBusy) << busy;
  for (const char* drained : {"IDLE+DRAIN", "ALLOCATED+DRAIN", "MIXED+DRAIN"})
    EXPECT_EQ(node_state(drained), NodeState::kDrained) << drained;
  for (const char* down : {"DOWN", "DOWN*", "DOWN+DRAIN", "IDLE+NOT_RESPONDING", "UNKNOWN*",
                           "DOWN*+NOT_RESPONDING", "FUTURE", "IDLE*+DRAIN", "IDLE+INVALID_REG"})
    EXPECT_EQ(node_state(down), NodeState::kDown) << down;
}

// The forms in the manual of sbatch, under --time.
TEST(SlurmText, TimeLimits) {
  EXPECT_EQ(time_limit("90"), minutes(90));
  EXPECT_EQ(time_limit("90:30"), minutes(90) + seconds(30));
  EXPECT_EQ(time_limit("1:30:05"), hours(1) + minutes(30) + seconds(5));
  EXPECT_EQ(time_limit("2-12"), hours(60));
  EXPECT_EQ(time_limit("2-12:30"), hours(60) + minutes(30));
  EXPECT_EQ(time_limit("2-12:30:07"), hours(60) + minutes(30) + seconds(7));
  EXPECT_EQ(time_limit("UNLIMITED"), seconds::max());
  for (const char* bad : {"", "x", "1h", "-1", "1:2:3:4", "1-", "1:", "99999999999999999999"})
    EXPECT_FALSE(time_limit(bad)) << bad;
}

TEST(SlurmText, NothingHasNoWords) { EXPECT_EQ(words_of("(null)"), std::vector<std::string>{}); }

}  // namespace
}  // namespace ptrain::submit
