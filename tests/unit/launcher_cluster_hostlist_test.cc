#include <gtest/gtest.h>

#include "launcher/cluster/hostlist.h"

namespace ptrain::cluster {
namespace {

using Names = std::vector<std::string>;

// What `scontrol show hostnames` of Slurm 22.05 makes of the same texts.
TEST(Hostlist, IsExpandedAsScontrolDoes) {
  const std::pair<const char*, Names> cases[] = {
      {"node1", {"node1"}},
      {"node[1-3]", {"node1", "node2", "node3"}},
      {"gpu[01-03,7],head", {"gpu01", "gpu02", "gpu03", "gpu7", "head"}},
      {"n[8-11]", {"n8", "n9", "n10", "n11"}},
      {"n[098-101]", {"n098", "n099", "n100", "n101"}},
      {"r[1-2]n[1-2]", {"r1n1", "r1n2", "r2n1", "r2n2"}},
      {"a-b[1,3]-ib,c.d", {"a-b1-ib", "a-b3-ib", "c.d"}}};
  for (const auto& [text, names] : cases) {
    const auto found = expand_hostlist(text);
    ASSERT_TRUE(found) << text;
    EXPECT_EQ(*found, names) << text;
  }
}

TEST(Hostlist, WhatIsNoneIsAnError) {
  for (const char* text :
       {"n[1-", "n[]", "n[3-1]", "n[a-b]", "n[1-99999999]", ",a", "n[0-999][0-999]"})
    EXPECT_FALSE(expand_hostlist(text)) << text;
}

}  // namespace
}  // namespace ptrain::cluster
