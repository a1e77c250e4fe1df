#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <rapidcheck/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "launcher/supervise/control_server.h"

namespace ptrain::supervise {
namespace {

using std::chrono::milliseconds;
using Received = std::vector<ControlServer::Received>;

class Peer {
 public:
  explicit Peer(int port) : file_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected = ::connect(file_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  ~Peer() { ::close(file_); }

  void send(const std::string& text) {
    (void)::send(file_, text.data(), text.size(), MSG_NOSIGNAL);
  }

  // True when the other side has closed the connection.
  bool is_closed() {
    char byte;
    const ssize_t size = ::recv(file_, &byte, 1, MSG_DONTWAIT);
    return size == 0 || (size < 0 && errno == ECONNRESET);
  }

  bool connected = false;

 private:
  int file_;
};

Received drain(ControlServer& server) {
  Received all;
  for (int i = 0; i < 5; ++i)
    for (auto& one : server.poll(milliseconds(5), {})) all.push_back(std::move(one));
  return all;
}

std::string hello(const ControlServer& server, int rank, int attempt = 1) {
  return run::to_line(run::Hello{server.token(), attempt, rank, 4242 + rank, "h", "b"});
}

TEST(ControlServer, HearsRanksAndAnswers) {
  auto server = ControlServer::open(1, 2);
  ASSERT_TRUE(server);
  EXPECT_EQ(server->token().size(), 32u);
  Peer peer(server->port());
  const std::string line = hello(*server, 1);
  peer.send(line.substr(0, 10));  // lines may come in pieces
  EXPECT_TRUE(drain(*server).empty());
  peer.send(line.substr(10) + run::to_line(run::Heartbeat{3, "step", "", false, 0}));
  const auto received = drain(*server);
  ASSERT_EQ(received.size(), 2u);
  EXPECT_EQ(received[1].rank, 1);
}

TEST(ControlServer, TellsWhenARankIsGone) {
  auto server = ControlServer::open(1, 1);
  ASSERT_TRUE(server);
  {
    Peer peer(server->port());
    peer.send(hello(*server, 0));
    ASSERT_EQ(drain(*server).size(), 1u);
  }
  const auto received = drain(*server);
  ASSERT_EQ(received.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<ControlServer::Gone>(received[0].what));
}

TEST(ControlServer, StrangersAreClosedWithoutAWord) {
  auto server = ControlServer::open(1, 2);
  ASSERT_TRUE(server);
  Peer good(server->port());
  good.send(hello(*server, 0));
  drain(*server);
  const std::string refused[] = {run::to_line(run::Hello{"wrong", 1, 1, 5, "h", "b"}),
                                 run::to_line(run::Hello{std::string(32, '0'), 1, 1, 5, "h", "b"}),
                                 hello(*server, 1, 2),            // another attempt
                                 hello(*server, 2),               // no such rank
                                 hello(*server, 0),               // taken
                                 run::to_line(run::Heartbeat{}),  // no hello
                                 "GET / HTTP/1.1\r\n\r\n",
                                 std::string(run::kMaxControlLine + 1, 'x')};  // no end of line
  for (const auto& text : refused) {
    Peer peer(server->port());
    drain(*server);
    peer.send(text);
    EXPECT_TRUE(drain(*server).empty()) << text.substr(0, 60);
    EXPECT_TRUE(peer.is_closed()) << text.substr(0, 60);
  }
  EXPECT_FALSE(good.is_closed());
}

RC_GTEST_PROP(ControlServer, AnyBytesFromAStrangerAreNoNews, (const std::string& bytes)) {
  auto server = ControlServer::open(1, 1);
  RC_ASSERT(server.has_value());
  Peer peer(server->port());
  server->poll(milliseconds(5), {});
  peer.send(bytes + "\n");
  RC_ASSERT(server->poll(milliseconds(5), {}).empty());
}

}  // namespace
}  // namespace ptrain::supervise
