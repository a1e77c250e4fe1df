#include <gtest/gtest.h>

#include "launcher/start/network.h"

namespace ptrain::start {
namespace {

TEST(Network, TheWayToANode) {
  EXPECT_EQ(address_towards("127.0.0.1"), "127.0.0.1");
  const auto none = address_towards("no-such-node.invalid");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ExitCode::kEnvironment);
}

TEST(Network, AnInterfaceWinsOverTheWay) {
  EXPECT_EQ(meeting_address("", "127.0.0.1"), "127.0.0.1");
  EXPECT_EQ(meeting_address("lo", "no-such-node.invalid"), "127.0.0.1");
  EXPECT_EQ(interface_of("127.0.0.1"), "lo");
  EXPECT_EQ(interface_of("192.0.2.1"), "");
  const auto none = meeting_address("ib7", "127.0.0.1");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message,
            "cluster.interface: this machine has no 'ib7' with an IPv4 address");
  EXPECT_NE(none.error().hint.find("lo (127.0.0.1)"), std::string::npos) << none.error().hint;
}

}  // namespace
}  // namespace ptrain::start
